"""What a model is asked: every task by name, made from options that a person can write on one line.

Importing this, listing the tasks and refusing an unknown name cost no import of torch; making a task does.
"""

from collections.abc import Hashable
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from headstock.errors import UserError, near_name
from headstock.tasks.listed import BY_NAME, Entry
from headstock.tasks.options import Value, parts

if TYPE_CHECKING:
    from headstock.tasks.base import Task

__all__ = ["Entry", "about", "get", "names", "parse"]


def names() -> list[str]:
    """Give the name of every task."""
    return list(BY_NAME)


def about(name: str) -> Entry:
    """Give a task's entry, without making the task; raises UserError for an unknown name."""
    if name not in BY_NAME:
        raise UserError(f"there is no task {name!r}: {near_name(name, BY_NAME)}")
    return BY_NAME[name]


def get(name: str, /, **options: str | int | float) -> "Task":
    """Make a task; options left out take their defaults, and strings are read as on the command line.

    A task is a value: asking again gives the one already made, unless a file it reads has changed since.
    Raises UserError for an unknown name or option, for a bad value, and for a corpus that cannot be used.
    """
    entry = about(name)
    known = {option.name: option for option in entry.options}
    said = entry.completed(options)
    for given in said:
        if given not in known:
            raise UserError(f"the task {name} has no option {given!r}: {near_name(given, known)}")
    values = tuple((key, option.read(key, said.get(key, option.default))) for key, option in known.items())
    return _made(entry, values, tuple(known[key].state(value) for key, value in values))


def parse(spec: str) -> "Task":
    """Make a task from one line, `text,corpus=python-docs,context=64`; a comma inside a value is written twice.

    `parse(task.spec)` makes the same task. Raises UserError as `get` does.
    """
    name, *pairs = (part.strip() for part in parts(spec))
    options: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = (piece.strip() for piece in pair.partition("="))
        if not (key and equals and value):
            raise UserError(f"{pair!r} in {spec!r} is no option: write key=value, as in text,context=64.")
        if key in options:
            raise UserError(f"{spec!r} gives {key} twice: keep one.")
        options[key] = value
    return get(name, **options)


@lru_cache(maxsize=8)  # a text task holds its tokens, so old ones are let go
def _made(entry: Entry, values: tuple[tuple[str, Value], ...], state: Hashable) -> "Task":
    make = getattr(import_module(entry.module), entry.class_name)
    try:
        return cast("Task", make(**dict(values)))
    except MemoryError:
        spec = ",".join([entry.name, *(f"{key}={value}" for key, value in values)])
        raise UserError(f"{spec} needs more memory than there is: choose smaller numbers.") from None
