"""By which power of the length a cost grows. Knows nothing of what was measured."""

import math
from collections.abc import Sequence
from statistics import linear_regression


def exponent(lengths: Sequence[float], cost: Sequence[float]) -> float:
    """Give p of cost ~ length^p by least squares on logarithms, for two lengths or more."""
    return linear_regression([math.log(x) for x in lengths], [math.log(y) for y in cost]).slope


def exponent_with_interval(lengths: Sequence[float], cost: Sequence[float]) -> tuple[float, float, float]:
    """Give p of cost ~ length^p and its 95 % interval by Student's t, for three lengths or more."""
    from scipy.stats import t as student

    x, y = ([math.log(value) for value in values] for values in (lengths, cost))
    slope, intercept = linear_regression(x, y)
    mean = sum(x) / len(x)
    left = sum((b - intercept - slope * a) ** 2 for a, b in zip(x, y, strict=True))
    spread = sum((a - mean) ** 2 for a in x)
    half = float(student.ppf(0.975, len(x) - 2)) * math.sqrt(left / (len(x) - 2) / spread)
    return slope, slope - half, slope + half
