"""What explains one run of a compiled model, as values. Set as text and as a page in the files beside this one."""

from dataclasses import dataclass
from fractions import Fraction

from headstock.programs.explaining.anatomy import ColumnPart, HeadPart, UnitPart
from headstock.programs.explaining.measuring import Weights
from headstock.programs.values import Value, shown

UNKNOWN = "·"
DIFFERS = "!"
NEAR = 1e-4
"""How near a weight must be to a fraction to be set as one."""


@dataclass(frozen=True)
class Explained:
    """One expression on one sequence: what the program says beside what the model holds."""

    name: str
    line: str
    source: str
    where: str
    how: str
    program: tuple[Value, ...] | None
    """None where the program is not at hand."""
    model: tuple[Value, ...] | None
    """The nearest value to what the model holds; None where the model has no number for it."""
    numbers: tuple[float, ...] | None
    """What it holds, as numbers."""
    off: tuple[float, ...] | None
    """How far the number is from the code of the program's value, or of the nearest value where that is not known."""
    moved: tuple[bool, ...]
    """At which positions it is further off than the certificate allows, or another value."""

    @property
    def differs(self) -> tuple[bool, ...]:
        """At which positions the model has another value than the program."""
        if self.program is None or self.model is None:
            return (False,) * len(self.moved)
        return tuple(a != b for a, b in zip(self.program, self.model, strict=True))


@dataclass(frozen=True)
class ExplainedHead:
    """One head on one sequence."""

    part: HeadPart
    weights: Weights
    """[query][key], over all positions that the model read, the start token included."""


@dataclass(frozen=True)
class Moved:
    """A part of the model whose weights are not what was certified."""

    part: str
    line: str
    largest: float
    """The largest change of one of its weights."""


@dataclass(frozen=True)
class Explanation:
    """How a compiled model comes to what it gives for one sequence. Made by `compiled.explain`."""

    title: str
    tokens: tuple[Value, ...]
    labels: tuple[str, ...]
    """What the model read, the start token included."""
    expressions: tuple[Explained, ...]
    heads: tuple[ExplainedHead, ...]
    units: tuple[UnitPart, ...]
    columns: tuple[ColumnPart, ...]
    moved: tuple[Moved, ...]
    """Parts that training has changed, the most changed first."""
    output: tuple[Value, ...]
    """What the model gives."""
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Explained:
        """Give an expression by its name. Raises KeyError where there is none."""
        return {one.name: one for one in self.expressions}[name]

    @property
    def agrees(self) -> bool:
        """Whether no expression has another value in the model than in the program."""
        return not any(any(one.differs) for one in self.expressions)

    def lines_of_layer(self, layer: int) -> tuple[str, ...]:
        """Give the lines that a layer's heads and units work for."""
        heads = [line for head in self.heads if head.part.layer == layer for line in head.part.lines]
        units = [part.line for part in self.units if part.layer == layer]
        return tuple(line for line in dict.fromkeys([*heads, *units]) if line)

    @property
    def n_layers(self) -> int:
        """How many layers the model has."""
        layers = [head.part.layer for head in self.heads] + [part.layer for part in self.units]
        return max(layers, default=-1) + 1

    def __str__(self) -> str:
        from headstock.programs.explaining.explanation_text import text_of

        return text_of(self)

    def _repr_html_(self) -> str:
        from headstock.programs.explaining.explanation_page import page_of

        return page_of(self)


def as_text(one: Explained, place: int) -> str:
    """Give the model's value at a position: marked where it differs, and with the number where that has moved."""
    if one.model is None or one.numbers is None:
        return UNKNOWN
    said = shown(one.model[place])
    if one.moved[place]:
        said = f"{said} ({one.numbers[place]:.3g})"
    return f"{said}{DIFFERS}" if one.differs[place] else said


def weight_as_text(weight: float, keys: int) -> str:
    """Give a weight as 0, 1, or a fraction of as many parts as there are keys, else to three places; 0 is left out."""
    if abs(weight) < NEAR / keys:
        return UNKNOWN
    fraction = Fraction(weight).limit_denominator(keys)
    return str(fraction) if abs(float(fraction) - weight) < NEAR / keys else f"{weight:.3f}"
