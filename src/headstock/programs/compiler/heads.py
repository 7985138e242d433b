"""What a head must do, as numbers: a score for each pair that tells the selected keys from the others, and levels.

count     selected keys and the start token score exactly 0, the others so much less that they weigh nothing: the
          start token's weight is then 1/(1 + selected)
mean      selected keys score exactly 0; where none may be selected, the start token waits below them
pick      of the selected keys one scores highest, by a wide enough gap to weigh 1, and the others 0
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.quantities import Affine, Quantity
from headstock.programs.places import Place

Kind = Literal["count", "mean", "pick"]
LARGEST_ROOT = 32
"""√d_head, which queries are multiplied by, is taken to be at most this where exactness is judged."""


@dataclass(frozen=True)
class Dimension:
    """One number of the query times one of the key."""

    query: Affine
    key: Affine


@dataclass(eq=False)
class PlannedHead:
    """A head: what it scores by, and which numbers it carries into which quantities."""

    name: str
    kind: Kind
    time: int
    dimensions: tuple[Dimension, ...]
    place: Place | None
    score_error: float
    slack: float
    """The gap that is left for certain, over the gap that is needed."""
    carried: list[tuple[Affine, Quantity]] = field(default_factory=list)


def score_error(dimensions: tuple[Dimension, ...], domain: Domain) -> float:
    """Bound how far a score can be from what it means; 0 where every product and sum is exact."""
    size = Fraction(0)
    grids: list[Fraction | None] = []
    for dimension in dimensions:
        query, key = dimension.query, dimension.key
        size += query.largest * key.largest
        exact = query.error(domain) == 0.0 and key.error(domain) == 0.0
        grids.append(query.grid * key.grid if exact and query.grid and key.grid else None)
    known = [grid for grid in grids if grid is not None]
    if len(known) == len(grids) and (not known or size * LARGEST_ROOT / min(known) < domain.whole):
        return 0.0
    carried = sum(
        float(d.query.largest) * d.key.error(domain)
        + float(d.key.largest) * d.query.error(domain)
        + d.query.error(domain) * d.key.error(domain)
        for d in dimensions
    )
    return carried + (len(dimensions) + 4) * domain.rounding * float(size)
