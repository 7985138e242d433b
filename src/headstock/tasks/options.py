"""A task's options: how a value that a person writes becomes the value the task is made of.

Knows nothing of torch, so that listing tasks and refusing a bad option are quick.
"""

import math
import operator
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from headstock.errors import UserError, near_name

Value = str | int | float


def parts(line: str) -> list[str]:
    """Split a line at its commas; a comma of a value is written twice."""
    # A comma pair is a comma of the value: left to right, so that "a,,,b" is "a," and then "b".
    return [part.replace(",,", ",") for part in re.findall(r"(?:^|,)((?:[^,]|,,)*)", line)]


def never_changes(value: Value) -> Hashable:
    """Say that what an option stands for is decided by its value, as everything but a path is."""
    return None


@dataclass(frozen=True)
class Option:
    """One option of a task."""

    name: str
    default: Value
    meaning: str
    read: Callable[[str, Value], Value]
    """(option's name, value as given) → the one way to write that value; raises UserError."""
    state: Callable[[Value], Hashable] = never_changes
    """Value → the state of what it names (a file's time and size): a task is made anew when it has changed."""


MOST = 1_000_000
"""The largest whole number: a task of a million tokens in a row, or of so many different ones, is a slip."""


def whole(least: int) -> Callable[[str, Value], Value]:
    """Read a whole number from `least` to a million."""

    def read(name: str, value: Value) -> Value:
        wanted = f"{name} must be a whole number of at least {least}: got {value!r}."
        if isinstance(value, bool):
            raise UserError(wanted)
        try:
            number = int(value) if isinstance(value, str) else operator.index(value)  # type: ignore[arg-type]
        except (ValueError, TypeError):
            raise UserError(wanted) from None
        if number < least:
            raise UserError(wanted)
        if number > MOST:
            raise UserError(f"{name} must be at most {MOST:,}: got {value!r}.")
        return number

    return read


def share(most: float, *, zero: bool = False) -> Callable[[str, Value], Value]:
    """Read a share of at most `most`, above 0 or, where 0 has a meaning, from it on."""

    def read(name: str, value: Value) -> Value:
        wanted = f"{name} must be a share {'from 0 to' if zero else 'above 0 and at most'} {most}: got {value!r}."
        if isinstance(value, bool):
            raise UserError(wanted)
        try:
            number = float(value)
        except (ValueError, TypeError):
            raise UserError(wanted) from None
        if not math.isfinite(number) or not 0 <= number <= most or (number == 0 and not zero):
            raise UserError(wanted)
        return abs(number)

    return read


def one_of(*names: str) -> Callable[[str, Value], Value]:
    """Read one of some names."""

    def read(name: str, value: Value) -> Value:
        if value not in names:
            raise UserError(f"{name} must be {' or '.join(names)}: got {value!r}.")
        return value

    return read


def tokenizer_name(name: str, value: Value) -> Value:
    """Read `byte`, `char` or `bpe:N` with N of at least 257."""
    kind, colon, size = str(value).partition(":")
    if kind != "bpe":
        if colon or kind not in ("byte", "char"):
            raise UserError(f"there is no tokenizer {value!r}: {near_name(str(value), ('byte', 'char', 'bpe:1024'))}")
        return kind
    if not re.fullmatch(r"[0-9]{1,9}", size):
        raise UserError(f"{name}={value} lacks its vocabulary size: write it as in bpe:1024.")
    if int(size) < 257:
        raise UserError(f"{name}={value} is too small: the 256 bytes are in every bpe, so choose bpe:257 or more.")
    return f"bpe:{int(size)}"
