"""The domain: which token sequences a model is asked about, numbered so that arrays hold one answer each.

A sequence of `length` tokens is the number whose digits, in base `len(alphabet)`, are the places of its tokens in the
alphabet, the first token the highest: number // base is the sequence without its last token.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from headstock.errors import UserError, near_name
from headstock.programs.back_to_code.function import Function

Overflow = Literal["refuse", "slide"]
Token = int | str
AT_MOST = 2_000_000
"""Sequences that are read where nothing else is said."""


@dataclass(frozen=True)
class Domain:
    """All sequences of up to `longest` tokens of an alphabet; endless ones too where the context slides."""

    alphabet: tuple[int, ...]
    """Ids of the tokens that are read."""
    longest: int
    """Tokens of the longest sequence that is asked about; of the window where the domain is endless."""
    context: int
    """Most tokens that the model sees at once."""
    start: int | None = None
    """Id of a token that the model sees before each sequence, and that belongs to none."""
    endless: bool = False
    """Longer sequences belong to the domain too: the model sees the last `context` tokens of each."""
    names: tuple[str, ...] | None = None
    """What every id of the vocabulary is called, where it has a name."""

    @property
    def base(self) -> int:
        """Different tokens that are read."""
        return len(self.alphabet)

    @property
    def lengths(self) -> range:
        """Lengths that are asked about: from 0 where a start token stands before nothing."""
        return range(1 if self.start is None else 0, self.longest + 1)

    @property
    def size(self) -> int:
        """Sequences that are asked about, one by one."""
        return sum(self.base**length for length in self.lengths)

    def ids(self, length: int, numbers_b: Tensor) -> Tensor:
        """Give what the model sees of the sequences of a length with these numbers, int64 (batch, time)."""
        places = [(numbers_b // self.base ** (length - 1 - at)) % self.base for at in range(length)]
        digits_bq = torch.stack(places, dim=1) if places else torch.zeros(len(numbers_b), 0, dtype=torch.int64)
        ids_bq = torch.tensor(self.alphabet, dtype=torch.int64)[digits_bq]
        if self.start is not None:
            ids_bq = torch.cat([torch.full((len(ids_bq), 1), self.start), ids_bq], dim=1)
        return ids_bq[:, -self.context :]

    def sequence(self, length: int, number: int) -> tuple[int, ...]:
        """Give the ids of one sequence, without the start token."""
        return tuple(self.alphabet[number // self.base ** (length - 1 - at) % self.base] for at in range(length))

    def token(self, ident: int) -> Token:
        """Give what a token is called: its name, or its id where there are no names."""
        return ident if self.names is None else self.names[ident]

    def said(self, length: int, number: int) -> str:
        """Show one sequence in a sentence."""
        tokens = [self.token(ident) for ident in self.sequence(length, number)]
        return " ".join(map(str, tokens)) if tokens else "the start token alone"

    def places(self, tokens: Iterable[Token]) -> list[int]:
        """Give the places in the alphabet of the tokens of one sequence, each given by name or id.

        Raises UserError where the sequence is not of the domain.
        """
        place: dict[Token, int] = {ident: at for at, ident in enumerate(self.alphabet)}
        if self.names is not None:
            place |= {self.names[ident]: at for at, ident in enumerate(self.alphabet)}
        given = list(tokens)
        unread = [token for token in given if token not in place]
        if unread:
            known = [str(self.token(ident)) for ident in self.alphabet]
            raise UserError(f"{unread[0]!r} is not of the alphabet: {near_name(str(unread[0]), known)}")
        if not given and self.start is None:
            raise UserError("the sequence is empty: give at least one token.")
        if len(given) > self.longest and not self.endless:
            raise UserError(
                f"{len(given)} tokens are past the {self.longest} that were extracted: give at most {self.longest}, "
                "or extract with overflow='slide'."
            )
        return [place[token] for token in given]

    @property
    def reach(self) -> str:
        """Say in a phrase which sequences belong to the domain."""
        return "sequences of any length" if self.endless else f"sequences of up to {self.longest} tokens"

    def batches(self, length: int, tokens: int) -> Iterator[Tensor]:
        """Give the numbers of all sequences of a length, int64, in batches of about as many tokens."""
        at_once, size = max(1, tokens // max(1, length)), self.base**length
        for first in range(0, size, at_once):
            yield torch.arange(first, min(first + at_once, size))


def domain_of(
    function: Function,
    *,
    alphabet: Sequence[Token] | None,
    names: Sequence[str] | None,
    start: Token | None,
    longest: int | None,
    overflow: Overflow,
    at_most: int | None,
) -> Domain:
    """Give the domain that was asked for.

    at_most: sequences that it may have; None where it is walked through in part only.

    Raises UserError for a token that is none, a sequence past the context, and more than at_most sequences.
    """
    called = _names(function, names)
    first = None if start is None else _id(function, called, start)
    read = _alphabet(function, called, alphabet, first)
    if overflow not in ("refuse", "slide"):
        raise UserError(f"overflow is {overflow!r}: choose 'refuse' or 'slide'.")
    endless = overflow == "slide"
    room = function.context if endless or first is None else function.context - 1
    if longest is None:
        longest = room
    elif endless and longest != room:
        raise UserError(
            f"longest={longest} cannot be asked for with overflow='slide', where sequences have no end and the window "
            f"is the context of {room}: leave longest out, or choose overflow='refuse'."
        )
    if not isinstance(longest, int) or not 1 <= longest <= room:
        after = "" if first is None else " after the start token"
        raise UserError(
            f"longest={longest!r} tokens do not fit a context of {function.context}{after}: choose from 1 to {room}."
            if room
            else f"a context of {function.context} has no room{after}: leave the start token out."
        )
    domain = Domain(read, longest, function.context, first, endless, called)
    if at_most is not None:
        refuse_too_many(domain, at_most)
    return domain


def refuse_too_many(domain: Domain, at_most: int) -> None:
    """Raise UserError where a domain has more sequences than are to be read, and say what would fit."""
    if domain.size <= at_most:
        return
    fits = max((n for n in range(domain.longest) if sum(domain.base**i for i in range(n + 1)) <= at_most), default=0)
    shorter = f"choose longest={fits} or less, a smaller alphabet" if fits else "choose a smaller alphabet"
    if domain.endless:
        shorter = "choose a smaller alphabet, or overflow='refuse' with a smaller longest"
    raise UserError(
        f"there are {domain.size:,} sequences of up to {domain.longest} tokens over an alphabet of {domain.base}, and "
        f"at most {at_most:,} are read: {shorter}, or raise at_most."
    )


def _names(function: Function, names: Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    called = tuple(names)
    if len(called) != function.vocab_size or len(set(called)) != len(called):
        raise UserError(
            f"{len(called)} names, {len(set(called))} of them different, were given for a vocabulary of "
            f"{function.vocab_size}: give each id a name of its own."
        )
    return called


def _alphabet(
    function: Function, names: tuple[str, ...] | None, alphabet: Sequence[Token] | None, start: int | None
) -> tuple[int, ...]:
    if alphabet is None:
        return tuple(ident for ident in range(function.vocab_size) if ident != start)
    read = tuple(_id(function, names, token) for token in alphabet)
    if not read or len(set(read)) != len(read):
        raise UserError(f"the alphabet is {list(alphabet)}: give each token that is read, once.")
    if start in read:
        raise UserError(f"the start token {alphabet[read.index(start)]!r} is read too: leave it out of the alphabet.")
    return read


def _id(function: Function, names: tuple[str, ...] | None, token: Token) -> int:
    """Give the id of a token given by name or id."""
    if isinstance(token, str):
        if names is None:
            raise UserError(f"the token {token!r} is given by a name, but ids have none: give its id, or names.")
        if token not in names:
            raise UserError(f"{token!r} is no token: {near_name(token, names)}")
        return names.index(token)
    if not 0 <= token < function.vocab_size:
        raise UserError(f"{token} is no token: give ids from 0 to {function.vocab_size - 1}.")
    return token
