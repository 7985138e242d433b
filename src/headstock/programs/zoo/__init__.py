"""The zoo: programs with their sources, to run, to compile, and to learn from.

p.zoo.sort, p.zoo.shift(2)                  # functions that make a Program; one without choices is one as it stands
zoo.get("sort"), zoo.get("shift,by=2")      # the same by name, as a command writes it
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

from headstock.errors import UserError, near_name
from headstock.programs.program import Program
from headstock.programs.zoo.adding import addition, carries, long_addition
from headstock.programs.zoo.binary import increment, parity
from headstock.programs.zoo.brackets import dyck, pair_balance, shuffle_dyck
from headstock.programs.zoo.ciphers import caesar
from headstock.programs.zoo.counting import count, double_hist, fraction_of_previous, hist, length
from headstock.programs.zoo.moving import copy, induction, last_occurrence, repeat, reverse, shift
from headstock.programs.zoo.ordering import most_frequent, sort, sort_freq
from headstock.programs.zoo.patterns import aab, ab, detect

__all__ = [
    "PROGRAMS",
    "aab",
    "ab",
    "addition",
    "caesar",
    "carries",
    "copy",
    "count",
    "detect",
    "double_hist",
    "dyck",
    "fraction_of_previous",
    "get",
    "hist",
    "increment",
    "induction",
    "last_occurrence",
    "length",
    "long_addition",
    "most_frequent",
    "pair_balance",
    "parity",
    "repeat",
    "reverse",
    "shift",
    "shuffle_dyck",
    "sort",
    "sort_freq",
]

PROGRAMS: dict[str, Callable[..., Program]] = {
    make.__name__.replace("_", "-"): make
    for make in (
        *(length, hist, double_hist, count, fraction_of_previous),
        *(copy, reverse, shift, last_occurrence, induction, repeat),
        *(sort, sort_freq, most_frequent),
        *(detect, aab, ab, caesar),
        *(pair_balance, dyck, shuffle_dyck),
        *(parity, increment, long_addition, carries, addition),
    )
}
"""Name → a function that makes the program; all its choices have defaults."""


def get(spec: str) -> Program:
    """Make a program from one line, `shift` or `shift,by=2`; a comma inside a value is written twice.

    `get(program.name)` makes the same program. Raises UserError for an unknown name or choice, and for a bad value.
    """
    # A comma pair is a comma of the value: left to right, so that "a,,,b" is "a," and then "b".
    name, *pairs = (part.replace(",,", ",") for part in re.findall(r"(?:^|,)((?:[^,]|,,)*)", spec))
    name = name.strip().replace("_", "-")
    if name not in PROGRAMS:
        raise UserError(f"there is no program {name!r} in the zoo: {near_name(name, PROGRAMS)}")
    make = PROGRAMS[name]
    known = inspect.signature(make).parameters
    choices: dict[str, Any] = {}
    for pair in pairs:
        key, is_pair, value = (part.strip() for part in pair.partition("="))
        if not is_pair:
            raise UserError(f"{pair!r} in {spec!r} has no value: write it as key=value.")
        if not known:
            raise UserError(f"the program {name} has no choices: leave out {pair!r}.")
        if key not in known:
            raise UserError(f"the program {name} has no choice {key!r}: {near_name(key, known)}")
        if key in choices:
            raise UserError(f"{spec!r} gives {key} twice: give it once.")
        choices[key] = _read(key, value, known[key].annotation)
    return make(**choices)


def _read(key: str, value: str, wanted: type) -> Any:
    if wanted is not int:
        return value
    try:
        return int(value)
    except ValueError:
        raise UserError(f"{key} must be a whole number: got {value!r}.") from None
