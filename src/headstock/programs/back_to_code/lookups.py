"""From a causal model to the smallest look-up that foretells the same next token."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from headstock.model.transformer import Transformer
from headstock.programs.back_to_code.domain import AT_MOST, Domain, Overflow, Token, domain_of
from headstock.programs.back_to_code.function import Function, function_of, refuse_looking_ahead
from headstock.programs.back_to_code.machines import aligned
from headstock.programs.back_to_code.reading import Ties, Told, read
from headstock.programs.back_to_code.suffixes import answered, fewest_endings, window_of


@dataclass(frozen=True)
class Row:
    """What is said after an ending."""

    ending: tuple[int, ...]
    """Ids of the last tokens, in the order in which they are read."""
    whole: bool
    """Nothing stands before them: it fits just this sequence (where there is a start token, right after that)."""
    answer: int
    """Id of the next token."""


@dataclass(frozen=True)
class Lookup:
    """A table of endings in which the longest one that fits decides the next token. No such table has fewer rows.

    Calling it with tokens, by name or id, gives the next one.
    """

    rows: tuple[Row, ...]
    """Shorter endings first; the first fits everything. Of two that fit and are as long, the whole one decides."""
    window: int
    """The fewest last tokens that decide on every sequence of at least as many; shorter ones are as they are."""
    domain: Domain
    """The sequences that it was made from."""
    verified: int
    """Sequences of the domain, all of them, on which it was held against the model."""
    margin: float
    """The least by which a likeliest token's logit stood above the next one's."""
    closest: str
    """The sequence where it did."""

    kind: ClassVar[str] = "lookup"

    @property
    def size(self) -> int:
        """Rows."""
        return len(self.rows)

    def __call__(self, tokens: Iterable[Token]) -> Token:
        """Give the token after these. Raises UserError where they are not of the domain."""
        ids = tuple(self.domain.alphabet[place] for place in self.domain.places(tokens))
        fits = (row for row in self.rows if row.ending == (ids if row.whole else ids[len(ids) - len(row.ending) :]))
        return self.domain.token(max(fits, key=lambda row: (len(row.ending), row.whole)).answer)

    def python(self) -> str:
        """Give a Python module of its own that answers as the look-up does: `next_token(tokens)`."""
        from headstock.programs.back_to_code.as_python import lookup_in_python

        return lookup_in_python(self)

    def c(self) -> str:
        """Give a C program of its own that does: `next_token(ids, count)`, and a main that answers a line each."""
        from headstock.programs.back_to_code.as_c import lookup_in_c

        return lookup_in_c(self)

    def __str__(self) -> str:
        shown = [["after", "says"]]
        for row in reversed(self.rows):
            tokens = [str(self.domain.token(ident)) for ident in row.ending]
            ending = " ".join(tokens if row.whole else ["…", *tokens])
            shown.append([ending or "the start token alone", str(self.domain.token(row.answer))])
        return aligned(shown)


def lookup(
    model: Transformer | Function,
    *,
    alphabet: Sequence[Token] | None = None,
    names: Sequence[str] | None = None,
    start: Token | None = None,
    longest: int | None = None,
    overflow: Overflow = "refuse",
    ties: Ties = "refuse",
    at_most: int = AT_MOST,
) -> Lookup:
    """Give the smallest look-up that foretells, after every sequence, the token that the model holds likeliest.

    The choices are those of `machine`. Raises UserError as `machine` does.

        >>> print(lookup(model, names="ab", overflow="slide"))
        after  says
        … b a  a
        … a    b
        …      a
    """
    function = function_of(model)
    refuse_looking_ahead(function)
    domain = domain_of(
        function, alphabet=alphabet, names=names, start=start, longest=longest, overflow=overflow, at_most=at_most
    )
    return lookup_of(domain, read(function, domain, ties))


def lookup_of(domain: Domain, told: Told) -> Lookup:
    """Give the look-up of what was read, used on the whole domain to see that it answers so."""
    endings = fewest_endings(told.by_length, domain)
    told.refuse_other(answered(endings, domain))
    return Lookup(
        rows=tuple(Row(domain.sequence(row.length, row.number), row.whole, row.answer) for row in endings),
        window=window_of(told.by_length, domain),
        domain=domain,
        verified=told.verified,
        margin=told.margin,
        closest=told.closest,
    )
