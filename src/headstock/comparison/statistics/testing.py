"""The two tests that a verdict may rest on, each with the interval that is its inversion, and the level they share.

Both tests compare two arms over seeds, in pairs: the same seed gives both arms the same data order. Their null
hypothesis is that the two arms are exchangeable within a seed, so that swapping them would change nothing but names.

Knows nothing of arms, tasks, metrics or wording: numbers go in and numbers come out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from scipy.special import stdtr, stdtrit

from headstock.errors import UserError

FAMILY_LEVEL = 0.05
"""The chance of even one false claim in a whole family of tests, over all looks at it."""

SHARE_OF_A_LOOK = 0.95
"""Each look spends this share of the level left; at the first, 6 tests leave room for 2/2⁸, an order of 8 seeds."""


def level_of_look(look: int, alpha: float = FAMILY_LEVEL) -> float:
    """Give the level that look number `look` (1, 2, …) may spend: .0475, .002375, … of .05, which add up to `alpha`.

    The level is cut into pieces beforehand, as in Lan & DeMets (1983), but without their credit for overlapping data:
    rejecting at any look stays below `alpha` by the union bound, whatever decides when to look.
    """
    if look < 1:
        raise UserError(f"look {look} does not exist: the first look at the results is look 1.")
    if not 0 < alpha < 1:
        raise UserError(f"a family-wise level of {alpha} is no probability: choose one such as 0.05.")
    return alpha * SHARE_OF_A_LOOK * (1 - SHARE_OF_A_LOOK) ** (look - 1)


@dataclass(frozen=True)
class PairedT:
    """Student's two-sided paired t-test (1908) on the differences of two arms, one difference a seed (at least two).

    `resolution` is the smallest difference that the metric can show, such as 1 / number of scored items. Differences
    below half of it are rounding and count as zero, and the spread is taken to be no smaller than it: seeds that all
    differ by exactly one item would otherwise have no spread, and t would be infinite.
    """

    differences: tuple[float, ...]
    resolution: float

    name = "paired t-test"

    @property
    def pairs(self) -> int:
        """The number of seeds that both arms have."""
        return len(self.differences)

    @cached_property
    def seen(self) -> tuple[float, ...]:
        """The differences, with rounding noise set to zero."""
        return tuple(0.0 if abs(d) < self.resolution / 2 else d for d in self.differences)

    @cached_property
    def estimate(self) -> float:
        """The mean difference."""
        return math.fsum(self.seen) / self.pairs

    @cached_property
    def spread(self) -> float:
        """The standard deviation of the differences from seed to seed, no smaller than the resolution."""
        squares = math.fsum((d - self.estimate) ** 2 for d in self.seen)
        return max(math.sqrt(squares / (self.pairs - 1)), self.resolution)

    @property
    def no_difference(self) -> bool:
        """Whether the arms agree, to the metric's resolution, on every seed."""
        return not any(self.seen)

    @cached_property
    def p(self) -> float:
        """The two-sided p-value; 1 when there is no difference at all."""
        t = self.estimate / (self.spread / math.sqrt(self.pairs))
        return float(min(1.0, 2 * stdtr(self.pairs - 1, -abs(t))))

    def interval(self, level: float) -> tuple[float, float]:
        """Give the mean differences not rejected at `level`; they leave zero out exactly when p ≤ level."""
        half = critical_t(self.pairs, level) * self.spread / math.sqrt(self.pairs)
        size = abs(self.estimate)
        # On the boundary itself rounding must not part the interval from the verdict.
        half = min(half, math.nextafter(size, 0.0)) if self.p <= level else max(half, size)
        return self.estimate - half, self.estimate + half


@dataclass(frozen=True)
class OrderTest:
    """The exact two-sided sign test (Arbuthnott 1710) of which arm comes later within a seed; some may never come.

    A pair is what is known of "steps of one arm − steps of the other": bounds (low, high), equal where both are
    known, and infinite where one is not. A pair that may be zero counts against both directions. That is stricter
    than leaving ties out, and it is what makes the interval, between two of the ordered bounds, the inversion of the
    test.
    """

    bounds: tuple[tuple[float, float], ...]

    name = "exact sign test of order"

    @property
    def pairs(self) -> int:
        """The number of seeds that both arms have."""
        return len(self.bounds)

    @property
    def contrary(self) -> int:
        """The number of pairs that do not support the direction that most pairs support."""
        return min(sum(low <= 0 for low, _ in self.bounds), sum(high >= 0 for _, high in self.bounds))

    @property
    def no_difference(self) -> bool:
        """Whether both arms came at the same step on every seed."""
        return all(low == high == 0 for low, high in self.bounds)

    @cached_property
    def estimate(self) -> float | None:
        """The median of the differences that are ordered or tied; never is infinitely late, an infinite median None."""
        known = sorted(
            low if low == high else math.inf if low > 0 else -math.inf
            for low, high in self.bounds
            if low == high or low > 0 or high < 0
        )
        if not known:
            return None
        middle = (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2
        return middle if math.isfinite(middle) else None

    @cached_property
    def p(self) -> float:
        """The exact two-sided p-value."""
        return order_p(self.pairs, self.contrary)

    def interval(self, level: float) -> tuple[float, float]:
        """Give the median differences not rejected at `level`; they leave zero out exactly when p ≤ level.

        An end is infinite where too few pairs, or arms that never came, leave it open.
        """
        depth = order_depth(self.pairs, level)
        if depth == 0:
            return -math.inf, math.inf
        return sorted(low for low, _ in self.bounds)[depth - 1], sorted(high for _, high in self.bounds)[-depth]


@lru_cache(maxsize=4096)
def critical_t(pairs: int, level: float) -> float:
    """Give the size of t beyond which `pairs` differences are rejected at the two-sided `level`."""
    return -float(stdtrit(pairs - 1, level / 2))


@lru_cache(maxsize=4096)
def order_p(pairs: int, contrary: int) -> float:
    """Give the order test's p-value when `contrary` of `pairs` do not support the rest's direction; at best 2 / 2ⁿ."""
    ways = 2 * sum(math.comb(pairs, k) for k in range(contrary + 1))
    return min(1.0, ways / (1 << pairs))


@lru_cache(maxsize=4096)
def order_depth(pairs: int, level: float) -> int:
    """Give which of the ordered pairs, from either end, bounds the interval; 0 when even the outermost do not."""
    return next((contrary for contrary in range(pairs + 1) if order_p(pairs, contrary) > level), 0)


@dataclass(frozen=True)
class Step:
    """What Holm's procedure says of one hypothesis: whether it falls, and the level at which that was decided."""

    rejected: bool
    level: float


def holm(p_values: Sequence[float], level: float) -> list[Step]:
    """Walk through the p-values from the smallest, testing each at `level` over the number still standing (Holm 1979).

    A rejected hypothesis is given the level of the step that rejected it (equal p-values: of the first among them, so
    that order is of no account); all others are given the level of the step at which the procedure stopped.
    """
    tests = len(p_values)
    ordered = sorted(p_values)
    fallen = 0
    while fallen < tests and ordered[fallen] <= level / (tests - fallen):
        fallen += 1
    # Equal p-values fall together: the first of them met the strictest level.
    steps = []
    for p in p_values:
        rejected = fallen == tests or p < ordered[fallen]
        smaller = sum(other < p for other in p_values)
        steps.append(Step(rejected, level / (tests - (smaller if rejected else fallen))))
    return steps
