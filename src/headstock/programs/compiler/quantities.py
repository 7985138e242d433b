"""Numbers that stand in the residual at every position, sums of them, and how far each can be from what it means.

A quantity is made once, by the embedding, a head or ReLU units, and known from then on. Half-layers count the time:
0 is the embedding, 1 the first heads, 2 the first units, 3 the second heads.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from headstock.programs.compiler.domain import Domain
from headstock.programs.places import Place
from headstock.programs.values import Value


@dataclass(eq=False)
class Quantity:
    """One number at every position."""

    name: str
    time: int
    low: Fraction
    high: Fraction
    start: Fraction = Fraction(0)
    """What it is at the start token, if there is one; known to `error` too."""
    error: float = 0.0
    """How far it can be from what it means, rounding included."""
    relative: float = 0.0
    """How much further, for each 1 of its size."""
    grid: Fraction | None = None
    """Every value is a multiple of this power of two, exactly; None where it is only near what it means."""
    place: Place | None = None
    of_token: Mapping[Value, Fraction] | None = None
    """What the embedding of each token holds, if it is embedded so."""
    of_index: tuple[Fraction, ...] | None = None
    """What the embedding of each position holds, if it is embedded so."""
    of_start: bool = False
    """1 at the start token and 0 elsewhere."""

    @property
    def largest(self) -> Fraction:
        """The largest size that it can have."""
        return max(abs(self.low), abs(self.high), abs(self.start))

    @property
    def is_exact(self) -> bool:
        """Whether it is exactly what it means."""
        return self.grid is not None


@dataclass(frozen=True, eq=False)
class Affine:
    """A sum of quantities, each times a number, and a constant."""

    terms: Mapping[Quantity, Fraction] = field(default_factory=dict)
    constant: Fraction = Fraction(0)

    @classmethod
    def of(cls, quantity: Quantity) -> "Affine":
        """The quantity itself."""
        return cls({quantity: Fraction(1)})

    def plus(self, other: "Affine") -> "Affine":
        """The sum of two."""
        terms = dict(self.terms)
        for quantity, weight in other.terms.items():
            terms[quantity] = terms.get(quantity, Fraction(0)) + weight
        return Affine({q: w for q, w in terms.items() if w}, self.constant + other.constant)

    def times(self, factor: Fraction | int) -> "Affine":
        """Each part times a number."""
        return Affine({q: w * factor for q, w in self.terms.items() if factor}, self.constant * factor)

    def shifted(self, by: Fraction | int) -> "Affine":
        """With another constant."""
        return Affine(self.terms, self.constant + by)

    @property
    def time(self) -> int:
        """When all of it is known."""
        return max((quantity.time for quantity in self.terms), default=0)

    @property
    def start(self) -> Fraction:
        """What it is at the start token."""
        return self.constant + sum((w * q.start for q, w in self.terms.items()), Fraction(0))

    @property
    def largest(self) -> Fraction:
        """The largest size that its parts can have, added up."""
        return abs(self.constant) + sum((abs(w) * q.largest for q, w in self.terms.items()), Fraction(0))

    def vanishing(self, start: Quantity | None) -> "Affine":
        """Give what is 0 at the start token and the same elsewhere."""
        if start is None or not self.start:
            return self
        return self.plus(Affine({start: -self.start}))

    @property
    def grid(self) -> Fraction | None:
        """The power of two that all of it is a multiple of, exactly; None where a part is not exact."""
        parts = [self.constant] if self.constant else []
        for quantity, weight in self.terms.items():
            if quantity.grid is None:
                return None
            parts.append(weight * quantity.grid)
        return common_grid(parts)

    def error(self, domain: Domain) -> float:
        """How far it can be from what it means when a map of the model reads it, rounding included."""
        if float(self.largest) > domain.largest:
            return math.inf
        grid = self.grid
        underflow = (len(self.terms) + 2) * domain.smallest
        if grid is not None and grid >= domain.smallest:
            if self.largest / grid < domain.whole:
                return 0.0
            underflow = 0.0
        carried = sum(abs(float(w)) * (q.error + q.relative * float(q.largest)) for q, w in self.terms.items())
        if len(self.terms) == 1 and not self.constant and _is_power_of_two(abs(next(iter(self.terms.values())))):
            return carried + underflow
        return carried + underflow + (len(self.terms) + 2) * domain.rounding * float(self.largest)


def common_grid(parts: list[Fraction]) -> Fraction | None:
    """Give the largest power of two that divides all of these; None where one is no dyadic number."""
    grid: Fraction | None = None
    for part in parts:
        if not part:
            continue
        if not _is_power_of_two(part.denominator):
            return None
        numerator = abs(part.numerator)
        own = Fraction(numerator & -numerator, part.denominator)
        grid = own if grid is None else min(grid, own)
    return Fraction(1) if grid is None else grid


def _is_power_of_two(number: Fraction | int) -> bool:
    number = Fraction(number)
    if number <= 0:
        return False
    return all(part & (part - 1) == 0 for part in (number.numerator, number.denominator))


def power_of_two_from(number: float | Fraction) -> Fraction:
    """Give the smallest power of two that is not below a positive number."""
    exponent = math.ceil(math.log2(float(number)) - 1e-12)
    return Fraction(2) ** exponent


@dataclass(frozen=True, eq=False)
class Form:
    """How an expression stands in the residual: a sum of quantities that is a code of its value."""

    affine: Affine
    codes: Mapping[Value, Fraction]
    """What the sum is for each value."""
    error: float

    @property
    def is_exact(self) -> bool:
        """Whether the sum is exactly the code."""
        return self.error == 0.0

    @property
    def time(self) -> int:
        """When it is known."""
        return self.affine.time
