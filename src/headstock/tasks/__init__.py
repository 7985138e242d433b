"""What a model is asked: every task by name, made from options that a person can write on one line.

Importing this, listing the tasks and refusing an unknown name cost no import of torch; making a task does.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from headstock.errors import UserError, near_name
from headstock.tasks import corpora, program_options
from headstock.tasks.options import Option, Value, parts, share, tokenizer_name, whole

if TYPE_CHECKING:
    from headstock.tasks.base import Task

__all__ = ["Entry", "about", "get", "names", "parse"]


@dataclass(frozen=True)
class Entry:
    """A task as it is listed: what it asks in a line, its options, and where the class is that makes it."""

    name: str
    summary: str
    module: str
    class_name: str
    """Called with every option by keyword, read; the defaults are written here and nowhere else."""
    options: tuple[Option, ...]
    completed: Callable[[Mapping[str, Value]], Mapping[str, Value]] = dict
    """Options as given → options whose names are all among these, what follows from others filled in."""


_ENTRIES = {
    entry.name: entry
    for entry in (
        Entry(
            "text",
            "predict the next token of real text (a named corpus, a file or a folder)",
            "headstock.tasks.text",
            "TextTask",
            (
                Option(
                    "corpus",
                    "python-docs",
                    "python-docs, shakespeare, or the path of a text file or a folder of them",
                    corpora.corpus_name,
                    corpora.state_of,
                ),
                Option("tokenizer", "byte", "byte, char, or bpe:N with a vocabulary of N", tokenizer_name),
                Option("context", 64, "tokens in a row", whole(1)),
                Option("held_out", 0.1, "share of the text's characters, from its end, that is held out", share(0.5)),
            ),
        ),
        Entry(
            "crossing",
            "say which of two nouns a pronoun meant, where only word order tells",
            "headstock.tasks.crossing",
            "Crossing",
            (Option("held_out", 0.2, "share of the noun pairs, in order, that is held out", share(0.5)),),
        ),
        Entry(
            "crossing-leaky",
            "the same with animals that cross places, which a bag of words can answer: a control",
            "headstock.tasks.crossing",
            "LeakyCrossing",
            (Option("held_out", 0.25, "share of the pairs of animal and place that is held out", share(0.5)),),
        ),
        Entry(
            "repeats",
            "say what comes next in a random sequence that comes again",
            "headstock.tasks.repeats",
            "Repeats",
            (
                Option("length", 32, "tokens of the longest sequence; rows are twice as long", whole(2)),
                Option("vocabulary", 64, "different tokens", whole(2)),
            ),
        ),
        Entry(
            "program",
            "say what a program of the zoo gives at every position of a random sequence",
            "headstock.tasks.program",
            "ProgramTask",
            (
                Option(
                    "name",
                    "hist",
                    "a name of `headstock list programs`; the program's own choices are written as options too",
                    program_options.program_name,
                ),
                Option("length", program_options.OWN, "tokens of a sequence; own is as the program says", whole(1)),
                Option(
                    "vocab",
                    program_options.OWN,
                    "the tokens: abcd is four characters, 1,,2,,3 whole numbers, red,,green words",
                    program_options.vocabulary,
                ),
                Option(
                    "causal",
                    program_options.OWN,
                    "whether a position sees only what stands before it; own is true where the program has that mode",
                    program_options.yes_or_no,
                ),
            ),
            program_options.completed,
        ),
    )
}


def names() -> list[str]:
    """Give the name of every task."""
    return list(_ENTRIES)


def about(name: str) -> Entry:
    """Give a task's entry, without making the task; raises UserError for an unknown name."""
    if name not in _ENTRIES:
        raise UserError(f"there is no task {name!r}: {near_name(name, _ENTRIES)}")
    return _ENTRIES[name]


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
    return cast("Task", make(**dict(values)))
