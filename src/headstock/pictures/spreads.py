"""Mean and spread of a figure over seeds. A number that is not there, or is not finite, is None here."""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Finite values of one figure over seeds; `deviation` is the sample standard deviation, None for one value."""

    mean: float
    deviation: float | None
    lowest: float
    highest: float
    count: int


def finite(value: float | None) -> float | None:
    """Give a number back, or None where it is none or is not finite."""
    return value if value is not None and math.isfinite(value) else None


def spread_of(values: Iterable[float | None]) -> Spread | None:
    """Give mean and spread of the finite values; None where there is none."""
    known = [value for value in map(finite, values) if value is not None]
    if not known:
        return None
    # A value near the largest float overflows its own square: then the mean stands without a spread.
    try:
        deviation = statistics.stdev(known) if len(known) > 1 else None
        mean = statistics.fmean(known)
    except OverflowError:
        return None
    return Spread(mean, finite(deviation), min(known), max(known), len(known))
