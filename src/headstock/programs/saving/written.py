"""Values of a program as JSON and back, each in its own type: 1, true, "1" and null stay four different things.

Whole numbers, words, True, False and None are JSON's own; a fraction is {"fraction": "1/3"}, a tuple {"tuple": [...]}.
Many numbers are written as a span or in one line.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from headstock.errors import UserError
from headstock.programs.values import Value


def written(value: Value) -> Any:
    """Give a value as JSON. Raises UserError for one of a kind that a file has no form for."""
    if isinstance(value, str) and value != value.encode(errors="ignore").decode():
        raise UserError(f"the word {value!r} is half a character, which no file can hold: give another in its place.")
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, tuple):
        return {"tuple": [written(part) for part in value]}
    raise UserError(
        f"the value {value!r} cannot be written to a file: let the program give words, numbers, True, False, None, or "
        f"tuples of them."
    )


def read(held: Any) -> Value:
    """Give the value that `written` wrote. Raises ValueError for anything else."""
    if held is None or isinstance(held, (bool, int, str)):
        return held
    if isinstance(held, dict) and list(held) == ["fraction"]:
        return Fraction(held["fraction"])
    if isinstance(held, dict) and list(held) == ["tuple"] and isinstance(held["tuple"], list):
        return tuple(read(part) for part in held["tuple"])
    raise ValueError(f"{held!r} is no value of a program")


def written_all(values: Iterable[Value]) -> Any:
    """Give several values as JSON, in order, in as little room as they allow."""
    values = list(values)
    if values and all(_is_whole(value) for value in values) and values == list(range(values[0], values[-1] + 1)):
        return {"from": values[0], "to": values[-1]}
    if values and all(_is_whole(value) or isinstance(value, Fraction) for value in values):
        return {"numbers": " ".join(map(str, values))}
    return [written(value) for value in values]


def read_all(held: Any) -> tuple[Value, ...]:
    """Give the values that `written_all` wrote. Raises ValueError, or KeyError, for anything else."""
    if isinstance(held, list):
        return tuple(read(value) for value in held)
    if isinstance(held, dict) and "from" in held:
        return tuple(range(held["from"], held["to"] + 1))
    return tuple(_number(word) for word in held["numbers"].split())


def written_numbers(numbers: Sequence[float]) -> Any:
    """Give floats as JSON, infinity as a word: JSON has none."""
    return [number if abs(number) != float("inf") else "infinite" for number in numbers]


def read_number(held: Any) -> float:
    """Give the float that `written_numbers` wrote. Raises ValueError for anything else."""
    if held == "infinite":
        return float("inf")
    if isinstance(held, bool) or not isinstance(held, (int, float)):
        raise ValueError(f"{held!r} is no number")
    return float(held)


def _is_whole(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(word: str) -> Value:
    number = Fraction(word)
    return int(number) if number.denominator == 1 else number
