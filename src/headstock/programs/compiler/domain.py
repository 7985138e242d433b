"""What a compiled program may be given: its vocabulary, its lengths, its mode, and the numbers it is to be exact in."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import torch

from headstock.errors import UserError, near_name
from headstock.programs.values import Value, canonical, shown

MOST_POINTS = 60_000
"""Combinations of values that a pass goes through, one by one."""
MOST_TOKENS = 10_000
"""Tokens that a program may be compiled for."""
DtypeName = Literal["float32", "float64", "bfloat16", "float16"]
DTYPES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass(frozen=True)
class Domain:
    """Every sequence of 1 to max_length tokens of a vocabulary, read in one mode, in one dtype."""

    vocabulary: tuple[Value, ...]
    max_length: int
    causal: bool
    dtype: DtypeName = "float32"

    @classmethod
    def of(cls, vocabulary: Any, max_length: Any, causal: bool, dtype: str) -> "Domain":
        """Raises UserError for a vocabulary, a length or a dtype that is none."""
        if not isinstance(vocabulary, Iterable):
            raise UserError(f"the vocabulary is {vocabulary!r}: give a string or a list of tokens, as in vocab='abc'.")
        tokens = tuple(canonical(token, "the vocabulary") for token in vocabulary)
        if not tokens:
            raise UserError(
                "the vocabulary is empty: give the tokens that the program can be given, as in vocab='abc'."
            )
        twice = next((token for place, token in enumerate(tokens) if token in tokens[:place]), None)
        if twice is not None:
            raise UserError(f"the vocabulary has {twice!r} twice: give each token once.")
        odd = next((token for token in tokens if not is_token(token)), ...)
        if odd is not ...:
            raise UserError(f"the vocabulary has {odd!r}: tokens are words or whole numbers, so give one in its place.")
        names = [shown(token) for token in tokens]
        if len(set(names)) < len(names):
            raise UserError("two tokens of the vocabulary look the same, such as 1 and '1': use one kind.")
        if isinstance(max_length, bool) or not isinstance(max_length, Integral):
            raise UserError(f"max_length is {max_length!r}: give a whole number of tokens.")
        if not 1 <= int(max_length) <= MOST_TOKENS:
            raise UserError(f"max_length is {max_length}: give 1 or more, and at most {MOST_TOKENS:,}.")
        if dtype not in DTYPES:
            raise UserError(f"unknown dtype {dtype!r}: {near_name(str(dtype), DTYPES)}")
        return cls(tokens, int(max_length), causal, dtype)  # type: ignore[arg-type]

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype itself."""
        return DTYPES[self.dtype]

    @property
    def wider(self) -> str:
        """What a sentence advises where rounding is in the way; empty where no dtype rounds less."""
        if self.dtype == "float64":
            return ""
        return f", or compile it with dtype={'float64' if self.dtype == 'float32' else 'float32'!r}"

    @property
    def rounding(self) -> float:
        """The unit roundoff u: a number is stored with a relative error of at most u."""
        return torch.finfo(self.torch_dtype).eps / 2

    @property
    def smallest(self) -> float:
        """Below this a number is rounded by more than `rounding` of its size, or becomes 0: at most by so much."""
        return torch.finfo(self.torch_dtype).smallest_normal

    @property
    def whole(self) -> int:
        """Up to here whole numbers, and sums of them in any order, are exact."""
        return int(1 / self.rounding)

    @property
    def largest(self) -> float:
        """Numbers stay below this, so that sums of a few of them are finite."""
        return torch.finfo(self.torch_dtype).max / 8

    @property
    def needed_gap(self) -> float:
        """How far a score must lie below the highest for its weight to be exactly 0.

        Softmax runs in float32, or in float64 for a float64 model; below half the smallest number, exp gives 0.
        """
        wide = torch.finfo(torch.float64 if self.dtype == "float64" else torch.float32)
        return -math.log(wide.smallest_normal) - math.log(wide.eps / 2)

    @property
    def gap(self) -> int:
        """The gap that scores are laid out with, the next power of two."""
        return int(2 ** math.ceil(math.log2(self.needed_gap)))

    @property
    def sequences(self) -> int:
        """How many sequences there are in all."""
        return sum(len(self.vocabulary) ** length for length in range(1, self.max_length + 1))

    def refuse(self, sequence: list[Value]) -> None:
        """Raise UserError for a sequence that is not in the domain."""
        if not sequence:
            raise UserError("the input has 0 tokens, and the program is read a token at a time: give it one at least.")
        if len(sequence) > self.max_length:
            raise UserError(
                f"the input has {len(sequence)} tokens, and the program is compiled for 1 to {self.max_length}: "
                f"compile it again with a larger max_length."
            )
        for token in sequence:
            if token not in self.vocabulary:
                names = [shown(known) for known in self.vocabulary]
                like = next((known for known in self.vocabulary if shown(known) == shown(token)), None)
                near = near_name(str(token), names) if like is None else f"did you mean {like!r}?"
                raise UserError(f"the token {token!r} is not in the program's vocabulary: {near}")


def is_token(value: Value) -> bool:
    """Whether a value can be read as a token: a word or a whole number; True and 1 would be one token and two."""
    return isinstance(value, (str, int)) and not isinstance(value, bool)
