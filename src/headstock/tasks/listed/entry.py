"""What is known of a task without making it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headstock.tasks.options import Option, Value


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
