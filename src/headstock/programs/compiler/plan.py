"""What lowering makes and emission writes down: quantities, heads, units, and how sure each of them is."""

from dataclasses import dataclass, field
from fractions import Fraction

from headstock.programs.compiler.heads import PlannedHead
from headstock.programs.compiler.quantities import Affine, Quantity
from headstock.programs.places import Place


@dataclass(eq=False)
class PlannedUnit:
    """relu(reads), written into quantities."""

    time: int
    reads: Affine
    name: str
    place: Place | None
    writes: dict[Quantity, Fraction] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """One place where noise could have made a difference, and the proof that it does not."""

    expression: str
    """The expression, as a sentence calls it."""
    how: str
    """How it is computed."""
    error: float
    """How far its code can be from exact."""
    margin: float
    """What is there over what is needed: of a gap of scores, or of the room between two values. 1 would just do."""


@dataclass
class Plan:
    """All parts of a model, before layers and columns are given to them."""

    start: Quantity | None
    """Marks the start token, if the program needs one."""
    heads: list[PlannedHead] = field(default_factory=list)
    units: list[PlannedUnit] = field(default_factory=list)
    adds: dict[Quantity, Fraction] = field(default_factory=dict)
    """The constant part of what units make."""
    decisions: list[Decision] = field(default_factory=list)
