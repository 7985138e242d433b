"""Which number stands for which value: numbers for themselves, words and None by their place in one code book."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from headstock.programs.compiler.domain import Domain
from headstock.programs.values import Value, in_order, is_number


class CodeBook:
    """The code of every value. Words have the same one wherever they occur, so that codes can be compared."""

    def __init__(self, domain: Domain) -> None:
        self._place: dict[Value, int] = {}
        for token in domain.vocabulary:
            if not is_number(token):
                self._place[token] = len(self._place)

    def codes(self, values: Sequence[Value]) -> dict[Value, Fraction]:
        """Give the code of each of an expression's values; where numbers stand among words, words come after them."""
        numbers = [Fraction(value) for value in values if is_number(value)]
        first = floor(max(numbers)) + 1 if numbers else 0
        codes = {}
        for value in in_order(values):
            if is_number(value):
                codes[value] = Fraction(value)
            else:
                codes[value] = Fraction(first + self._place.setdefault(value, len(self._place)))
        return codes


@dataclass(frozen=True)
class Coded:
    """A function from values to numbers that a table can hold: what `codes` says, shifted and squared."""

    codes: tuple[tuple[Value, Fraction], ...]
    shift: Fraction

    __name__ = "square"

    def __call__(self, value: Value) -> Fraction:
        """Give (code − shift)²."""
        return (dict(self.codes)[value] - self.shift) ** 2
