"""Functions of one number as ReLU units: drawn through exact points, or as steps that noise does not move.

    drawn     Σ c·relu(z − kink), straight between neighbouring values; exact in whole numbers
    steps     Σ Δ·(relu(s·(z − low)) − relu(s·(z − low) − 1)), flat around every value, up or down between them

Either may be hung up at any value, its anchor: units to the right of it open to the right, the others to the left. So
that the sum of what is open stays small.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.quantities import common_grid, power_of_two_from

Points = Sequence[tuple[Fraction, Fraction]]
"""(z, value), in order of z."""
Numbers = npt.NDArray[np.float64]
MOST_UNITS = 8_000
"""Units that one function may take."""


@dataclass(frozen=True)
class Source:
    """What is known of the number z that units read."""

    noise: float
    """How far it can be from a point."""
    relative: float
    """How much further, for each 1 of the point's size."""
    size: Fraction
    """The largest that its parts can be together, which rounding goes by."""
    single: bool
    """Whether it is one quantity, read as it is, so that nothing but the bias is added to it."""
    start: Fraction
    """What it is at the start token."""

    def noise_at(self, z: Fraction | float) -> float:
        """How far it can be from this point."""
        return self.noise + self.relative * abs(float(z))


@dataclass(frozen=True)
class Ramp:
    """relu(slope · z + bias), times weight."""

    slope: Fraction
    bias: Fraction
    weight: Fraction


@dataclass(frozen=True)
class Fitted:
    """A function of z as a sum of ramps and a constant."""

    ramps: tuple[Ramp, ...]
    constant: Fraction
    error: float
    """How far its value can be from what it means at any point, with z as noisy as was said."""
    clearance: float
    """The room between two values of z over the noise in it, at the tightest step; infinite where z is exact."""
    exact: bool

    def at(self, z: Fraction) -> Fraction:
        """Its value at a point that is free of noise."""
        total = self.constant
        for ramp in self.ramps:
            total += ramp.weight * max(Fraction(0), ramp.slope * z + ramp.bias)
        return total


def kinks(points: Points) -> int:
    """Count the units that a function takes if drawn through its points, in order."""
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(points)]
    return sum(1 for before, after in zip([Fraction(0), *slopes], slopes, strict=False) if before != after)


def jumps(points: Points) -> int:
    """Count the changes of value from each point to the next."""
    return sum(a[1] != b[1] for a, b in itertools.pairwise(points))


def drawn(points: Points, z: Source, domain: Domain) -> Fitted:
    """Draw a function through its points (z, value), in order of z."""
    best = _drawn(points, z, domain)
    if not best.exact and not z.noise and not z.relative:
        other = _drawn(_in_whole_slopes(points), z, domain)
        best = other if other.exact else best
    return best


def _in_whole_slopes(points: Points) -> Points:
    """Put a knot into each gap whose slope is no dyadic number: up or down over a part of it, and flat from there."""
    found = [points[0]]
    for (left, before), (right, after) in itertools.pairwise(points):
        slope = (after - before) / (right - left)
        if slope and common_grid([slope]) is None:
            part = power_of_two_from(right - left) / 2
            found.append((left + part, after))
        found.append((right, after))
    return found


def _drawn(points: Points, z: Source, domain: Domain) -> Fitted:
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(points)]
    best: Fitted | None = None
    for anchor in _anchors(points):
        ramps, constant = _drawn_from(points, slopes, anchor)
        if best is None or best.error or len(ramps) < len(best.ramps):
            error, exact = _bound(ramps, constant, points, z, domain)
            if best is None or (error, len(ramps)) < (best.error, len(best.ramps)):
                best = Fitted(ramps, constant, error, math.inf, exact)
    assert best is not None
    return best


def _drawn_from(points: Points, slopes: list[Fraction], anchor: int) -> tuple[tuple[Ramp, ...], Fraction]:
    ramps = []
    before = Fraction(0)
    for place in range(anchor, len(slopes)):
        if slopes[place] != before:
            ramps.append(Ramp(Fraction(1), -points[place][0], slopes[place] - before))
        before = slopes[place]
    before = Fraction(0)
    for place in range(anchor - 1, -1, -1):
        if -slopes[place] != before:
            ramps.append(Ramp(Fraction(-1), points[place + 1][0], -slopes[place] - before))
        before = -slopes[place]
    return tuple(ramps), points[anchor][1]


def _anchors(points: Points) -> list[int]:
    """Give the points that a function is tried to be hung up at: the ends, the middle, and where z is nearest 0."""
    last = len(points) - 1
    return list(dict.fromkeys([0, last, min(range(last + 1), key=lambda i: abs(points[i][0])), last // 2]))


def steps(points: Points, z: Source, domain: Domain) -> Fitted | None:
    """Give a function that is flat around every point and steps between them; None where noise leaves no room.

    Arguments as in `drawn`. The anchor is the point nearest 0, so that steps open outwards: there s·z − s·low loses
    nothing to rounding and the two units of a step differ by exactly 1.
    """
    # Points of the same value side by side need no step between them.
    anchor = min(range(len(points)), key=lambda i: (abs(points[i][0]), i))
    ramps: list[Ramp] = []
    clearance = math.inf
    for left, right in zip(range(len(points) - 1), range(1, len(points)), strict=True):
        change = points[right][1] - points[left][1]
        if not change:
            continue
        gap = points[right][0] - points[left][0]
        noise = z.noise_at(points[left][0]) + z.noise_at(points[right][0])
        free = float(gap) - noise
        if free <= float(gap) / 8:
            return None
        slope = power_of_two_from(2 / free)
        clearance = min(clearance, float(gap) / noise if noise else math.inf)
        middle = (points[right][0] + points[left][0]) / 2
        unit = 1 / (16 * slope)
        if right > anchor:  # opens to the right: 0 at the left point, 1 at the right one
            low = Fraction(round((middle - 1 / (2 * slope)) / unit)) * unit
            ramps += [Ramp(slope, -slope * low, change), Ramp(slope, -slope * low - 1, -change)]
        else:  # opens to the left: 0 at the right point, 1 at the left one
            high = Fraction(round((middle + 1 / (2 * slope)) / unit)) * unit
            ramps += [Ramp(-slope, slope * high, -change), Ramp(-slope, slope * high - 1, change)]
    constant = points[anchor][1]
    error, exact = _bound(tuple(ramps), constant, points, z, domain)
    return Fitted(tuple(ramps), constant, error, clearance, exact)


def _bound(
    ramps: tuple[Ramp, ...],
    constant: Fraction,
    points: Points,
    source: Source,
    domain: Domain,
) -> tuple[float, bool]:
    """Bound the error over all points, and say whether every value is exact."""
    if not ramps:
        exact = common_grid([constant]) is not None
        return 0.0 if exact else domain.rounding * abs(float(constant)) + domain.smallest, True
    u = domain.rounding
    slope = np.array([float(ramp.slope) for ramp in ramps])
    bias = np.array([float(ramp.bias) for ramp in ramps])
    weight = np.array([float(ramp.weight) for ramp in ramps])
    if float(source.size) * float(np.abs(slope).max()) + float(np.abs(bias).max()) > domain.largest:
        return math.inf, False
    z = np.array([float(point) for point in [*(point for point, _ in points), source.start]])
    noise = (source.noise + source.relative * np.abs(z))[:, None]
    opened = np.maximum(0.0, z[:, None] * slope + bias)  # (point, ramp)
    reach = np.abs(weight) * opened
    grid = common_grid([*(ramp.bias for ramp in ramps), source.start, *(point for point, _ in points)])
    weights = common_grid([ramp.weight for ramp in ramps] + [constant])
    if not noise.any() and grid is not None and weights is not None:
        fine = float(grid) * min(1.0, float(np.abs(slope).min()))
        read = float(source.size) * float(np.abs(slope).max()) + float(np.abs(bias).max())
        added = float(reach.sum(1).max()) + abs(float(constant))
        least = fine * min(1.0, float(weights))
        if read / fine < domain.whole and added / least < domain.whole and least >= domain.smallest:
            return 0.0, True
    # A ramp within the noise of its kink may be open by as much.
    touched = np.maximum(opened, np.maximum(0.0, z[:, None] * slope + bias + np.abs(slope) * noise))
    open_ = touched > 0
    # What is steep on either side of a point counts: noise may lead to both.
    steep = weight * slope
    sides = [open_, opened > 0, np.where(slope > 0, open_, opened > 0), np.where(slope < 0, open_, opened > 0)]
    sharpest = np.max([np.abs((side * steep).sum(1)) for side in sides], axis=0)
    product = np.abs(z[:, None] * slope)
    reading = u * (2 * (product if source.single else np.abs(slope) * float(source.size)) + 2 * np.abs(bias))
    lossless = source.single & (np.abs(z[:, None] * slope + bias) <= product) & (2 * u * product <= _bias_grids(ramps))
    per_ramp = np.where(lossless, 0.0, reading)
    rounding = (open_ * np.abs(weight) * per_ramp).sum(1)
    count = open_.sum(1)
    whole_pairs = (count <= 2) & (lossless | ~open_).all(1) & _whole_weights(ramps, constant)
    if abs(constant) > np.abs(weight).min():
        # It can be added to either of two before the other: beyond a power of two a bit would be lost.
        least = np.abs(weight) * (z[:, None] * slope + bias - np.abs(slope) * noise)
        finest = np.where(open_, np.maximum(least, 2.0**-60), 1.0).min(1, where=open_, initial=np.inf)
        most = (np.abs(weight) * touched).max(1) + abs(float(constant))
        whole_pairs &= (count == 0) | (most < 2 * np.exp2(np.floor(np.log2(np.minimum(finest, 2.0**60)))))
    adding = np.where(whole_pairs, 0.0, (count + 1) * u * ((np.abs(weight) * touched).sum(1) + abs(float(constant))))
    flat = sharpest == 0
    moved = np.where(flat, 0.0, sharpest * noise[:, 0])
    underflow = (open_ * (np.abs(weight) + 1)).sum(1) * domain.smallest
    total = moved + np.where(whole_pairs & flat, 0.0, rounding + adding + underflow)
    return float(total.max()), bool((total == 0.0).all())


def _bias_grids(ramps: tuple[Ramp, ...]) -> Numbers:
    """Give the power of two that each ramp's bias is a multiple of; 0 where its slope or its bias has none."""
    grids = [common_grid([ramp.bias]) if common_grid([ramp.slope]) == abs(ramp.slope) else None for ramp in ramps]
    return np.array([float(grid or 0) for grid in grids])


def _whole_weights(ramps: tuple[Ramp, ...], constant: Fraction) -> bool:
    return all(abs(ramp.weight) == common_grid([ramp.weight]) for ramp in ramps) and constant.denominator == 1
