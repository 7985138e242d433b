"""A way to compute a function: ReLU units on one number z, through a point for each value of it."""

from dataclasses import dataclass
from fractions import Fraction

from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.quantities import Affine
from headstock.programs.compiler.units import MOST_UNITS, Fitted, Source, drawn, jumps, kinks, steps


@dataclass(frozen=True, eq=False)
class Way:
    """Units on one number."""

    units: int
    """What it costs, to be compared with other ways; 0 for one that is taken first."""
    z: Affine
    points: list[tuple[Fraction, Fraction]]
    """Every value of z, in order, and the code of the function's value there."""

    def fitted(self, domain: Domain) -> Fitted | None:
        """Give the units of the least error; None where none are sure, or they are too many."""
        z, points = self.z, self.points
        noise, relative = z.error(domain), 0.0
        single = len(z.terms) == 1 and not z.constant and abs(next(iter(z.terms.values()))) == 1
        if single:
            quantity = next(iter(z.terms))
            noise, relative = quantity.error, quantity.relative
        source = Source(noise, relative, z.largest, single, z.start)
        if not noise and not relative:
            return drawn(points, source, domain) if kinks(points) <= MOST_UNITS else None
        tried = [steps(points, source, domain) if 2 * jumps(points) <= MOST_UNITS else None]
        tried += [drawn(points, source, domain) if kinks(points) <= MOST_UNITS else None]
        sure = [fitted for fitted in tried if fitted is not None]
        return min(sure, key=lambda fitted: fitted.error, default=None)
