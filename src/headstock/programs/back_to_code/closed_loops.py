"""From a causal model that reads its own tokens to the smallest machine that generates the same ones for ever."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch

from headstock.errors import UserError
from headstock.model.transformer import Transformer
from headstock.programs.back_to_code.domain import Domain, Token, domain_of
from headstock.programs.back_to_code.function import Function, function_of, refuse_looking_ahead
from headstock.programs.back_to_code.machines import aligned
from headstock.programs.back_to_code.minimise import Numbers, numbered
from headstock.programs.back_to_code.reading import Deciding, Ties, lowest_of_highest, unsteady

Window = tuple[int, ...]
MOST_WINDOWS = 100_000
"""Windows that are walked through where nothing else is said."""


@dataclass(frozen=True)
class ClosedLoop:
    """What greedy generation does from some prompts: each state says a token and has one state after it.

    No machine that generates the same has fewer states. Calling it with a prompt and a number gives that many tokens.
    """

    says: tuple[int, ...]
    """Id of the token that each state says."""
    after: tuple[int, ...]
    """State after each."""
    prompts: tuple[tuple[Window, int], ...]
    """Ids of each prompt, and its first state."""
    domain: Domain
    """The tokens by name, and the context that slides over them."""
    verified: int
    """Windows that the model sees from these prompts on, all of them; they come back, so that holds for ever."""
    margin: float
    """The least by which a likeliest token's logit stood above the next one's."""
    closest: str
    """The window where it did."""

    kind: ClassVar[str] = "closed loop"

    @property
    def size(self) -> int:
        """States."""
        return len(self.says)

    def __call__(self, prompt: Iterable[Token], count: int) -> list[Token]:
        """Give the tokens generated after one of the prompts. Raises UserError for another."""
        ids = tuple(self.domain.alphabet[place] for place in self.domain.places(prompt))
        state = dict(self.prompts).get(ids)
        if state is None:
            raise UserError(f"{self._shown(ids)!r} is not one of the prompts that were extracted: extract it too.")
        said = []
        for _ in range(count):
            said.append(self.domain.token(self.says[state]))
            state = self.after[state]
        return said

    def python(self) -> str:
        """Give a Python module of its own that generates the same: `generate(prompt, count)`."""
        from headstock.programs.back_to_code.as_python import closed_loop_in_python

        return closed_loop_in_python(self)

    def c(self) -> str:
        """Give a C program of its own that does: `generate(prompt, length, said, count)`, and a main."""
        from headstock.programs.back_to_code.as_c import closed_loop_in_c

        return closed_loop_in_c(self)

    def __str__(self) -> str:
        rows = [["state", "says", "then", "first after"]]
        for state, (said, after) in enumerate(zip(self.says, self.after, strict=True)):
            begins = ", ".join(self._shown(ids) for ids, first in self.prompts if first == state)
            rows.append([str(state), str(self.domain.token(said)), str(after), begins])
        return aligned(rows)

    def _shown(self, ids: Window) -> str:
        return " ".join(str(self.domain.token(ident)) for ident in ids)


def closed_loop(
    model: Transformer | Function,
    prompts: Sequence[Iterable[Token]],
    *,
    names: Sequence[str] | None = None,
    ties: Ties = "refuse",
    at_most: int = MOST_WINDOWS,
) -> ClosedLoop:
    """Give the smallest machine that generates, after each prompt, what the model generates greedily, for ever.

    The model sees the last `context` tokens, as `generate(overflow="slide")` lets it, and there are finitely many
    windows, so sooner or later one comes back; all that were met are read. A start token is part of the prompt.

        >>> print(closed_loop(model, ["aab"], names="ab"))
        state  says  then  first after
        0      a     1     a a b
        1      a     2
        2      b     0

    Raises UserError where the model sees ahead, a prompt is none, or more than at_most windows pass without an end.
    """
    function = function_of(model)
    refuse_looking_ahead(function)
    domain = domain_of(function, alphabet=None, names=names, start=None, longest=None, overflow="slide", at_most=None)
    given = [tuple(domain.alphabet[place] for place in domain.places(prompt)) for prompt in prompts]
    if not given or len(set(given)) != len(given):
        raise UserError(f"{len(given)} prompts were given, {len(set(given))} of them different: give each once.")
    says, deciding = _walked(function, domain, given, ties, at_most)
    _checked(function, domain, says, deciding.margin)

    windows = list(says)
    place = {window: at for at, window in enumerate(windows)}
    after = np.array([place[_slid(window, says[window], domain.context)] for window in windows])
    class_n = _classes(np.array([says[window] for window in windows]), after)
    order: dict[int, int] = {}
    member: list[int] = []
    for ids in given:
        at = place[ids[-domain.context :]]
        while int(class_n[at]) not in order:
            order[int(class_n[at])] = len(order)
            member.append(at)
            at = int(after[at])
    return ClosedLoop(
        says=tuple(says[windows[at]] for at in member),
        after=tuple(order[int(class_n[after[at]])] for at in member),
        prompts=tuple((ids, order[int(class_n[place[ids[-domain.context :]]])]) for ids in given),
        domain=domain,
        verified=len(windows),
        margin=deciding.margin,
        closest=deciding.closest,
    )


def _walked(
    function: Function, domain: Domain, prompts: list[Window], ties: Ties, at_most: int
) -> tuple[dict[Window, int], Deciding]:
    """Give what the model says after each window that it meets."""
    deciding, says = Deciding(ties), dict[Window, int]()
    with function.being_read():
        for prompt in prompts:
            window = prompt[-domain.context :]
            while window not in says:
                if len(says) >= at_most:
                    raise UserError(
                        f"after {at_most:,} windows none has come back: what is generated has no short end; give "
                        "fewer prompts, or raise at_most."
                    )
                logits_bv = function.last(torch.tensor([window]))
                says[window] = int(deciding.likeliest(logits_bv, partial(_window_of_row, domain, window)))
                window = _slid(window, says[window], domain.context)
    deciding.refuse_ties()
    return says, deciding


def _checked(function: Function, domain: Domain, says: dict[Window, int], margin: float) -> None:
    """Read every window again, those of a length together. Raises UserError where one is answered otherwise."""
    with function.being_read():
        for length in sorted({len(window) for window in says}):
            windows = [window for window in says if len(window) == length]
            for some in (windows[first : first + 1024] for first in range(0, len(windows), 1024)):
                answers = lowest_of_highest(function.rows(torch.tensor(some))[:, -1]).tolist()
                for window, answer in zip(some, answers, strict=True):
                    if answer != says[window]:
                        raise unsteady(
                            _window_of_row(domain, window), domain.token(says[window]), domain.token(answer), margin
                        )


def _classes(says: Numbers, after: Numbers) -> Numbers:
    """Number windows so that two have one number where they are followed by the same tokens for ever."""
    class_n, count = numbered(says)
    while True:
        finer_n, more = numbered(class_n, class_n[after])
        if more == count:
            return class_n
        class_n, count = finer_n, more


def _slid(window: Window, token: int, context: int) -> Window:
    return (*window, token)[-context:]


def _window_of_row(domain: Domain, window: Window, row: int = 0) -> str:
    return " ".join(str(domain.token(ident)) for ident in window)
