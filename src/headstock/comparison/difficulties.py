"""What differs between the probes of a task, by name and value: the axes of its tables and pictures.

Knows nothing of arms, words or pictures.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Value = int | float | str
At = Mapping[str, Value]


@dataclass(frozen=True)
class Difficulties:
    """The names of the difficulties, in the task's order, and the values that each takes, in the probes' order."""

    values: dict[str, list[Value]]

    @classmethod
    def of(cls, probes: Sequence[At]) -> "Difficulties":
        """Read them off what probes say that they are; none where there are none."""
        names = list(dict.fromkeys(name for at in probes for name in at))
        return cls({name: list(dict.fromkeys(at[name] for at in probes if name in at)) for name in names})

    @property
    def names(self) -> list[str]:
        """As in depth, length."""
        return list(self.values)

    @property
    def in_words(self) -> str:
        """As in "depth × length"."""
        return " × ".join(map(words, self.names))

    def across(self) -> tuple[str, list[Value]] | None:
        """Give the single difficulty and its values, if there is one and its values are numbers to be drawn along."""
        if len(self.values) != 1:
            return None
        ((name, values),) = self.values.items()
        return (name, values) if all(isinstance(value, int | float) for value in values) else None

    def grid(self) -> bool:
        """Say whether there are two, which cross."""
        return len(self.values) == 2


def words(name: str) -> str:
    """Give a difficulty's name as a person writes it."""
    return name.replace("_", " ")


def written(value: Value) -> str:
    """Write a difficulty's value, numbers as short as they are."""
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


def at_in_words(at: At) -> str:
    """Say which probe it is: "depth 0.25, length 64"."""
    return ", ".join(f"{words(name)} {written(value)}" for name, value in at.items())


def distinct(probes: Iterable[At]) -> list[dict[str, Value]]:
    """Give each difficulty once, in the order in which they come."""
    found: list[dict[str, Value]] = []
    for at in probes:
        if dict(at) not in found:
            found.append(dict(at))
    return found


def found_at(probes: Sequence[Mapping[str, Any]], at: At) -> Mapping[str, Any] | None:
    """Give what a run says of one probe, as `RunResult.probes` keeps it; None where it says nothing."""
    return next((probe for probe in probes if probe["at"] == dict(at)), None)
