"""From a causal model to the smallest machine that foretells the same next token."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from headstock.model.transformer import Transformer
from headstock.programs.back_to_code.domain import AT_MOST, Domain, Overflow, Token, domain_of
from headstock.programs.back_to_code.function import Function, function_of, refuse_looking_ahead
from headstock.programs.back_to_code.minimise import NOWHERE, Numbers, States, smallest
from headstock.programs.back_to_code.reading import Answers, Ties, Told, read


@dataclass(frozen=True)
class Machine:
    """Reads tokens one by one from state 0, and answers in each state with the next token. No machine has fewer states.

    Calling it with tokens, by name or id, gives the next one.
    """

    answers: tuple[int | None, ...]
    """Id of the next token in each state; None in a first state where nothing was read and nothing is said."""
    steps: tuple[tuple[int | None, ...], ...]
    """State after each, by place in the alphabet; None where the longest sequences of the domain have ended."""
    domain: Domain
    """The sequences that it was made from."""
    verified: int
    """Sequences of the domain, all of them, on which it was held against the model."""
    margin: float
    """The least by which a likeliest token's logit stood above the next one's."""
    closest: str
    """The sequence where it did."""

    kind: ClassVar[str] = "machine"

    @property
    def size(self) -> int:
        """States."""
        return len(self.answers)

    def __call__(self, tokens: Iterable[Token]) -> Token:
        """Give the token after these. Raises UserError where they are not of the domain."""
        return self._said(self._states(tokens)[-1])

    def after_each(self, tokens: Iterable[Token]) -> list[Token]:
        """Give what stands on every row of the model: the token after each beginning of these, the shortest first.

        Where the model sees a start token, the first is what follows that. Raises UserError as a call does.
        """
        states = self._states(tokens)
        return [self._said(state) for state in states[0 if self.domain.start is not None else 1 :]]

    def python(self) -> str:
        """Give a Python module of its own that answers as the machine does: `next_token(tokens)`."""
        from headstock.programs.back_to_code.as_python import machine_in_python

        return machine_in_python(self)

    def c(self) -> str:
        """Give a C program of its own that does: `next_token(ids, count)`, and a main that answers a line each."""
        from headstock.programs.back_to_code.as_c import machine_in_c

        return machine_in_c(self)

    def __str__(self) -> str:
        domain = self.domain
        head = ["state", "says", *(f"on {domain.token(ident)}" for ident in domain.alphabet)]
        rows = [
            [str(state), "" if said is None else str(domain.token(said)), *("" if n is None else str(n) for n in steps)]
            for state, (said, steps) in enumerate(zip(self.answers, self.steps, strict=True))
        ]
        return aligned([head, *rows])

    def _states(self, tokens: Iterable[Token]) -> list[int]:
        states = [0]
        for place in self.domain.places(tokens):
            after = self.steps[states[-1]][place]
            assert after is not None
            states.append(after)
        return states

    def _said(self, state: int) -> Token:
        said = self.answers[state]
        assert said is not None
        return self.domain.token(said)


def machine(
    model: Transformer | Function,
    *,
    alphabet: Sequence[Token] | None = None,
    names: Sequence[str] | None = None,
    start: Token | None = None,
    longest: int | None = None,
    overflow: Overflow = "refuse",
    ties: Ties = "refuse",
    at_most: int = AT_MOST,
) -> Machine:
    """Give the smallest machine that foretells, after every sequence, the token that the model holds likeliest.

    alphabet: ids or names of the tokens that are read; all but the start token where not given.
    names: what each id of the vocabulary is called.
    start: a token that the model sees before every sequence; then it also says what comes first.
    longest: tokens of the longest sequence; what fits the context where not given. What the machine does past it is
    free, which can save states.
    overflow: "slide" takes sequences of any length, of which the model sees the last `context` tokens, as
    `generate(overflow="slide")` lets it; all of them are decided by the windows, and every window is read.
    ties: "refuse", or "lowest" to take the lowest id of two equally likely ones.
    at_most: sequences that are read before it is refused.

        >>> machine(model, names="ab", overflow="slide")("aab")
        'a'

    Raises UserError where the model sees ahead or a choice is outside its range, as Domain and `read` do.
    """
    function = function_of(model)
    refuse_looking_ahead(function)
    domain = domain_of(
        function, alphabet=alphabet, names=names, start=start, longest=longest, overflow=overflow, at_most=at_most
    )
    return machine_of(domain, read(function, domain, ties))


def machine_of(domain: Domain, told: Told) -> Machine:
    """Give the machine of what was read, run on the whole domain to see that it answers so."""
    states = smallest(told.by_length, domain)
    told.refuse_other(answered(states, domain))
    return Machine(
        answers=tuple(_or_none(answer) for answer in states.answers.tolist()),
        steps=tuple(tuple(_or_none(after) for after in row) for row in states.steps.tolist()),
        domain=domain,
        verified=told.verified,
        margin=told.margin,
        closest=told.closest,
    )


def answered(states: States, domain: Domain) -> dict[int, Answers]:
    """Run a machine on every sequence of the domain, and give its answers by length.

    In an endless domain also see that a full window decides the state, whatever came before: then every longer
    sequence is answered as its window is. Raises RuntimeError where it does not.
    """
    at: Numbers = np.zeros(1, dtype=np.int64)
    answers = {0: states.answers[at]}
    for length in range(1, domain.longest + 1):
        at = states.steps[at].reshape(-1)
        answers[length] = states.answers[at]
    if domain.endless and not np.array_equal(states.steps[at].reshape(-1), np.tile(at, domain.base)):
        raise RuntimeError("the machine remembers more than the window holds: this is a defect.")
    return answers


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Give rows of cells as text, columns aligned to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _or_none(number: int) -> int | None:
    return None if number == NOWHERE else number
