"""The values of a program: words, numbers that are exact, True, False and None.

Whole numbers and fractions, never floats: a program means exactly what it says. Knows nothing of weights.
"""

import numbers
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from headstock.errors import UserError

Value = Any
"""What a sequence holds at a position: a word, an int, a Fraction, a bool, None, or a tuple of them."""


def canonical(value: Any, by: Any) -> Value:
    """Give a value in its one form: a fraction that is whole as an int, numpy's whole numbers as Python's.

    by: who gives it, a name or an expression. Raises UserError, naming it, for a float or a value that cannot be
    looked up or is not even equal to itself. The parts of a tuple are values too.
    """
    if value is None or isinstance(value, bool) or type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if _is_numpys_truth(value):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Rational):
        return (
            int(value.numerator) if value.denominator == 1 else Fraction(int(value.numerator), int(value.denominator))
        )
    if isinstance(value, numbers.Number):
        raise UserError(
            f"{_said(by)} gives {value!r}, and a program is exact: give a fraction, such as Fraction(1, 3)."
        )
    try:
        hash(value)
    except TypeError:
        raise UserError(f"{_said(by)} gives {value!r}, which cannot be looked up: give a tuple or a word.") from None
    if isinstance(value, tuple):
        parts = tuple(canonical(part, by) for part in value)
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    if (value == value) is not True:
        raise UserError(
            f"{_said(by)} gives {_said(value)}, which is no value of a program: give a word, a number, True, False, "
            f"None, or a tuple of them."
        )
    return value


def tokens_of_input(sequence: Any) -> list[Value]:
    """Give an input as a list of tokens: a string's characters, or what a list has. Raises UserError for neither."""
    if not isinstance(sequence, Iterable):
        raise UserError(f"the input is {sequence!r}: give a string or a list of tokens.")
    return [canonical(token, "the input") for token in sequence]


def _is_numpys_truth(value: Any) -> bool:
    """See whether it is numpy's True or False, without an import of numpy that all who read a name would pay."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.bool_)


def _said(by: Any) -> str:
    """Give how a sentence calls it; worked out only when there is a sentence."""
    return str(getattr(by, "said", by))


def is_number(value: Value) -> bool:
    """Whether one can add it: ints, fractions, and True and False, which are 1 and 0."""
    return isinstance(value, (int, Fraction))


def in_order(values: Iterable[Value]) -> list[Value]:
    """Give different values in one order, the same in every process: None, then numbers, then all else by its text."""
    return sorted(set(values), key=_rank)


def _rank(value: Value) -> tuple[int, Fraction, str]:
    if value is None:
        return 0, Fraction(0), ""
    if isinstance(value, (int, Fraction)):
        return 1, Fraction(value), ""
    return 2, Fraction(0), value if isinstance(value, str) else repr(value)


def shown(value: Value) -> str:
    """Give a value as a table shows it: T and F, 1/3, None, a word as it is."""
    if value is True or value is False:
        return "T" if value else "F"
    return str(value)


def applied(function: Callable[..., Any], arguments: Iterable[Value], by: Any) -> Value:
    """Call an author's function on the values of one position; what Python raises becomes a sentence.

    None has no rule of its own: what Python refuses to do with it is refused. Raises UserError naming `by`, the
    expression that calls it.
    """
    given = tuple(arguments)
    try:
        result = function(*given)
    except UserError:
        raise
    except Exception as error:
        if any(value is None for value in given):
            advice = "where nothing is selected an aggregate gives None: give it a default, or ask for None first"
        elif isinstance(error, ZeroDivisionError):
            advice = "give it a divisor that is never 0, such as a where() of it"
        else:
            advice = "let it take every value that can reach it"
        said = ", ".join(map(repr, given))
        raise UserError(f"{_said(by)} fails on {said} ({error}): {advice}.") from None
    return canonical(result, by)
