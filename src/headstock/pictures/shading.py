"""Values as shades, and shades as strokes: what a grid of cells is drawn from.

A row of cells in one shade is one stroke as thick as a cell: a tenth of the size of as many boxes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headstock.pictures.palette import stand_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHADES = 32
Line = tuple[tuple[float, float], tuple[float, float]]
"""From one place to another, in pixels."""


@dataclass(frozen=True)
class Scale:
    """From values to shades 0 to 1, below zero as negative ones."""

    low: float
    high: float
    signed: bool
    root: bool

    def shade(self, value: float) -> int:
        """Give a shade, −32 to 32."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0
        share = max(-1.0, min(1.0, share))
        return round(SHADES * math.copysign(math.sqrt(abs(share)) if self.root else abs(share), share))

    def value(self, share: float) -> float:
        """Give the value that stands for a share −1 to 1 of the strongest shade."""
        return self.low + (self.high - self.low) * (math.copysign(share * share, share) if self.root else share)


def scale_of(known: Sequence[float], *, signed: bool, zero: bool, root: bool) -> Scale:
    """Give the scale of these values; `heat` in grid.py says what the choices mean."""
    low, high = min(known, default=0.0), max(known, default=0.0)
    if signed:
        return Scale(0.0, max(abs(low), abs(high)), True, root)
    return Scale(min(0.0, low), max(0.0, high), False, root) if zero else Scale(low, high, False, root)


def runs(shades: Sequence[int | None]) -> list[tuple[int, int, int | None]]:
    """Give (first, one after the last, shade) of neighbours with one shade."""
    found, start = [], 0
    for place in range(1, len(shades) + 1):
        if place == len(shades) or shades[place] != shades[start]:
            found.append((start, place, shades[start]))
            start = place
    return found


def strokes(axes: "Axes", lines: Sequence[Line], shade: int, height: float, strongest: float) -> None:
    """Lay lines as thick as a cell in one shade; `strongest` is how much of the full colour the last one has."""
    colour = stand_in("more" if shade > 0 else "less")
    paths(axes, lines, color=colour, linewidth=height, alpha=strongest * abs(shade) / SHADES, capstyle="butt")


def paths(axes: "Axes", lines: Sequence[Line], **look: Any) -> None:
    """Draw separate lines as one path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not lines:
        return
    path = Path([point for pair in lines for point in pair], [Path.MOVETO, Path.LINETO] * len(lines))
    path.should_simplify = False
    axes.add_patch(PathPatch(path, fill=False, clip_on=False, snap=False, **look))


def ground(axes: "Axes", box: tuple[float, float, float, float]) -> None:
    """Lay the ground of cells: x, y, width and height."""
    from matplotlib.patches import Rectangle

    x, y, width, height = box
    axes.add_patch(Rectangle((x, y), width, height, facecolor=stand_in("cell"), linewidth=0, clip_on=False))
