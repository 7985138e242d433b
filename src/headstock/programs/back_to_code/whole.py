"""From a model that reads a sequence whole to a look-up of what stands on each of its rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from torch import Tensor

from headstock.model.transformer import Transformer
from headstock.programs.back_to_code.domain import AT_MOST, Domain, Token, domain_of
from headstock.programs.back_to_code.function import Function, function_of
from headstock.programs.back_to_code.machines import aligned
from headstock.programs.back_to_code.reading import TOKENS, Deciding, Ties, lowest_of_highest, unsteady

Ids = tuple[int, ...]


@dataclass(frozen=True)
class WholeLookup:
    """A row a sequence, and in it the likeliest token of every position. Nothing is merged: it is plain, not small.

    Calling it with tokens, by name or id, gives as many.
    """

    rows: tuple[tuple[Ids, Ids], ...]
    """Ids of each sequence, shorter ones first, and those that stand on its positions."""
    domain: Domain
    """The sequences that it was made from."""
    verified: int
    """Sequences of the domain, all of them, on which it was held against the model."""
    margin: float
    """The least by which a likeliest token's logit stood above the next one's."""
    closest: str
    """The sequence where it did, on one of its positions."""

    kind: ClassVar[str] = "whole look-up"

    @property
    def size(self) -> int:
        """Rows."""
        return len(self.rows)

    def __call__(self, tokens: Iterable[Token]) -> list[Token]:
        """Give the token on each position of these. Raises UserError where they are not of the domain."""
        places = self.domain.places(tokens)
        number = 0
        for place in places:
            number = number * self.domain.base + place
        at = sum(self.domain.base**length for length in range(1, len(places))) + number
        return [self.domain.token(ident) for ident in self.rows[at][1]] if places else []

    def python(self) -> str:
        """Give a Python module of its own that answers as the look-up does: `tokens_of(tokens)`."""
        from headstock.programs.back_to_code.as_python import whole_in_python

        return whole_in_python(self)

    def c(self) -> str:
        """Give a C program of its own that does: `tokens_of(ids, count, said)`, and a main that answers a line each."""
        from headstock.programs.back_to_code.as_c import whole_in_c

        return whole_in_c(self)

    def __str__(self) -> str:
        rows = [[" ".join(str(self.domain.token(ident)) for ident in side) for side in row] for row in self.rows]
        return aligned([["of", "says"], *rows])


def whole_lookup(
    model: Transformer | Function,
    *,
    alphabet: Sequence[Token] | None = None,
    names: Sequence[str] | None = None,
    start: Token | None = None,
    longest: int | None = None,
    ties: Ties = "refuse",
    at_most: int = AT_MOST,
) -> WholeLookup:
    """Give the look-up of what the model holds likeliest on every position of every sequence, seeing it whole.

    For a model with causal=false; one that is causal is told more shortly by `machine(...).after_each`. The choices
    are those of `machine`; what stands on the start token is left out.

    Raises UserError as `machine` does.
    """
    function = function_of(model)
    domain = domain_of(
        function, alphabet=alphabet, names=names, start=start, longest=longest, overflow="refuse", at_most=at_most
    )
    deciding, rows = Deciding(ties), list[tuple[Ids, Ids]]()
    with function.being_read():
        for length, numbers, logits_nv in _read(function, domain, TOKENS):
            # A row of logits is a position: row // length is the sequence that it belongs to.
            likeliest_n = deciding.likeliest(logits_nv, partial(_sequence_of_row, domain, length, numbers))
            said = likeliest_n.reshape(-1, length).tolist()
            rows += [(domain.sequence(length, n), tuple(ids)) for n, ids in zip(numbers, said, strict=True)]
        deciding.refuse_ties()
        unchecked = iter(rows)
        for length, numbers, logits_nv in _read(function, domain, TOKENS // 3):
            said = lowest_of_highest(logits_nv).reshape(-1, length).tolist()
            for number, ids, (_, claimed) in zip(numbers, said, unchecked, strict=False):
                for one, other in zip(claimed, ids, strict=True):
                    if one != other:
                        after = domain.said(length, number)
                        raise unsteady(after, domain.token(one), domain.token(other), deciding.margin)
    return WholeLookup(tuple(rows), domain, len(rows), deciding.margin, deciding.closest)


def _read(function: Function, domain: Domain, tokens: int) -> Iterator[tuple[int, list[int], Tensor]]:
    """Give (length, numbers, logits), a row of logits a position, in batches of about as many tokens."""
    for length in range(1, domain.longest + 1):
        for numbers_b in domain.batches(length, tokens):
            logits_bqv = function.rows(domain.ids(length, numbers_b))[:, -length:]
            yield length, numbers_b.tolist(), logits_bqv.flatten(0, 1)


def _sequence_of_row(domain: Domain, length: int, numbers: list[int], row: int) -> str:
    return domain.said(length, numbers[row // length])
