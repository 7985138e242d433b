"""What every part of a compiled model is for: expressions, heads, units and columns, each with the line it belongs to.

Plain data that a file can hold. Times count half-layers, as the residual is written: 0 is the embedding, 1 the first
layer's heads, 2 its units, 3 the second layer's heads.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from headstock.programs.values import Value


@dataclass(frozen=True)
class Term:
    """A number in the residual, and how much of it is counted."""

    column: int
    weight: float
    name: str
    """What stands there."""


@dataclass(frozen=True)
class Traced:
    """One expression as it is written, and how the model holds it."""

    name: str
    line: str
    """`sorting.py:12`; empty for the words of the language, such as `tokens`."""
    source: str
    """The line as it is written; empty where its file was not there."""
    where: str
    """Where it stands, as a table says it."""
    how: str
    """What computes it, as a table says it."""
    time: int | None
    """When all of it is there; None where the model has no number for it."""
    terms: tuple[Term, ...] = ()
    constant: float = 0.0
    """The code of its value is constant + Σ weight · column, at that time."""
    codes: Mapping[Value, float] | None = None
    """The code of every value that it can have; None where it is not in the model."""
    error: float = 0.0
    """How far the code may be from exact, by the certificate."""


@dataclass(frozen=True)
class HeadPart:
    """One attention head."""

    layer: int
    number: int
    name: str
    lines: tuple[str, ...]
    """Of the expressions that it works for; of heads that share queries there are several."""


@dataclass(frozen=True)
class UnitPart:
    """Units of one feed-forward that belong together, `first` to `last` of their layer."""

    layer: int
    first: int
    last: int
    name: str
    line: str

    @property
    def count(self) -> int:
        """How many they are."""
        return self.last - self.first + 1


@dataclass(frozen=True)
class Held:
    """What stands in a column, from one half-layer until before another."""

    name: str
    line: str
    since: int
    until: int | None
    """When it is taken away; None where it stays."""


@dataclass(frozen=True)
class ColumnPart:
    """One residual column, and all that stands in it, one after the other."""

    number: int
    name: str
    holds: tuple[Held, ...]


@dataclass(frozen=True)
class Anatomy:
    """All parts of a model."""

    expressions: tuple[Traced, ...]
    """In the order in which the program computes them; the last is the output."""
    heads: tuple[HeadPart, ...]
    units: tuple[UnitPart, ...]
    columns: tuple[ColumnPart, ...]
    n_layers: int


def moment(time: int) -> str:
    """Give a half-layer as a sentence calls it; layers are numbered as the model's blocks are, from 0."""
    if not time:
        return "embedding"
    return f"layer {(time - 1) // 2} {'heads' if time % 2 else 'units'}"
