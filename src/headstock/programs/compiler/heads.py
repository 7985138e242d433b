"""What a head must do, as numbers: a score for each pair that tells the selected keys from the others, and levels.

count     selected keys and the start token score exactly 0, the others so much less that they weigh nothing: the
          start token's weight is then 1/(1 + selected)
mean      selected keys score exactly 0; where none may be selected, the start token waits below them
pick      of the selected keys one scores highest, by a wide enough gap to weigh 1, and the others 0
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.quantities import Affine, Quantity
from headstock.programs.places import Place

Kind = Literal["count", "mean", "pick"]


@dataclass(frozen=True)
class Dimension:
    """One number of the query times one of the key."""

    query: Affine
    key: Affine
    query_reach: Fraction | None = None
    """The largest that the query's number itself can be, where that is less than its parts added up."""
    key_reach: Fraction | None = None

    @property
    def size(self) -> Fraction:
        """The largest that the product can be."""
        return self._query_size * self._key_size

    @property
    def _query_size(self) -> Fraction:
        return self.query.largest if self.query_reach is None else self.query_reach

    @property
    def _key_size(self) -> Fraction:
        return self.key.largest if self.key_reach is None else self.key_reach

    def carried_error(self, domain: Domain) -> float:
        """How far the product can be off for what is off in its factors."""
        query, key = self.query.error(domain), self.key.error(domain)
        if math.isinf(query) or math.isinf(key):
            return math.inf
        return float(self._query_size) * key + float(self._key_size) * query + query * key


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


def score_error(dimensions: tuple[Dimension, ...], domain: Domain, *, rounding_alone: bool = False) -> float:
    """Bound how far a score can be from what it means; 0 where every product and sum is exact.

    rounding_alone: leave out what the noise of queries and keys does, where the caller has counted that already.
    """
    size = Fraction(0)
    grids: list[Fraction | None] = []
    for dimension in dimensions:
        query, key = dimension.query, dimension.key
        size += dimension.size
        exact = query.error(domain) == 0.0 and key.error(domain) == 0.0
        grids.append(query.grid * key.grid if exact and query.grid and key.grid else None)
    known = [grid for grid in grids if grid is not None]
    if len(known) == len(grids) and (not known or (size / min(known) < domain.whole and min(known) >= domain.smallest)):
        return 0.0
    carried = sum(dimension.carried_error(domain) for dimension in dimensions)
    return (0.0 if rounding_alone else carried) + (len(dimensions) + 4) * (
        domain.rounding * float(size) + domain.smallest
    )
