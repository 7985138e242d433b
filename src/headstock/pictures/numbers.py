"""How tables, pictures and pages write numbers.

Numbers keep a real minus and thousands apart; one that is not there, or is not finite, is written "—".
"""

import math
from collections.abc import Callable, Iterable

from headstock.pictures.spreads import Spread, finite

ABSENT = "—"
SMALLEST = 1e-4
"""Below it a number is written with an exponent, as `small` does."""
TINIEST = 1e-300
"""Below it, and in nothing that is measured, powers of ten run out."""
LARGEST = 1e9
"""From here on a number is written with an exponent, and four digits."""
MOST_PLACES = 8
"""Decimals of an interval's end beside zero; a smaller one is written with an exponent."""


def count(number: int, noun: str) -> str:
    """Give "1 seed", "8 seeds"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def fixed(value: float | None, places: int) -> str:
    """Write a number with so many decimals, with a real minus; one too large for that with an exponent."""
    value = finite(value)
    if value is None:
        return ABSENT
    written = f"{value:,.{places}f}" if abs(value) < LARGEST else f"{value:.3e}"
    if not written.strip("-0.,"):
        written = written.lstrip("-")
    return written.replace("-", "−") if "e" not in written else written.replace("e+", "e").replace("-", "−")


def plus_minus(spread: Spread | None, places: int) -> str:
    """Write "1.623 ± 0.004"; only the mean where there is one value; with exponents where the mean would be lost."""
    if spread is None:
        return ABSENT
    lost = 0 < abs(spread.mean) < 10.0**-places

    def written(value: float) -> str:
        return small(value, 2) if lost else fixed(value, places)

    mean = written(spread.mean)
    return mean if spread.deviation is None else f"{mean} ± {written(spread.deviation)}"


def whole(value: float | None) -> str:
    """Write a count with its thousands apart."""
    return fixed(value, 0)


def times(value: float | None) -> str:
    """Write a ratio: "1.42×"."""
    value = finite(value)
    return ABSENT if value is None else f"{value:.2f}×"


def seconds(value: float | None) -> str:
    """Write a duration of a step: milliseconds below one second."""
    value = finite(value)
    if value is None:
        return ABSENT
    if value >= 1:
        return f"{value:,.2f} s"
    return f"{value * 1000:.1f} ms" if value < 0.1 else f"{value * 1000:.0f} ms"


def difference(value: float, baseline: float) -> str:
    """Write how far a count is from the baseline's, "+12.4 %"; empty where they are equal."""
    if value == baseline:
        return ""
    if not baseline:
        return ABSENT
    percent = 100 * (value / baseline - 1)
    return f"{'+' if percent > 0 else '−'}{abs(percent):.1f} %" if abs(percent) >= 0.05 else "≈"


def small(value: float | None, digits: int = 4) -> str:
    """Write an estimate, an interval's end or a p-value with so many digits, whatever their size."""
    value = finite(value)
    if value is None:
        return ABSENT
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) >= 10**digits:
        return fixed(value, 0)
    return f"{rounded:,.{digits}g}".replace("-", "−")


def outwards(low: float, high: float, edges: Iterable[float] = ()) -> tuple[str, str]:
    """Write an interval as the verdicts' sentences do: rounded outwards, to the place where half its width begins.

    One that holds zero, whose ends no sentence gives, has a digit more. An end has as many digits as it takes to stand
    on its own side of each of `edges`. Ends that are both below a ten-thousandth share an exponent.
    """
    if low < high and TINIEST < max(abs(low), abs(high)) < SMALLEST:
        return _with_one_exponent(low, high, edges)
    if low == high or all(end == round(end) and abs(end) < LARGEST for end in (low, high)):
        return small(low), small(high)
    places = max(0, -math.floor(math.log10((high - low) / 2)) + (low < 0 < high))
    known = [edge for edge in edges if math.isfinite(edge)]
    written = (_written(end, _enough(end, places, towards, known), towards) for end, towards in _ends(low, high))
    return next(written), next(written)


def _with_one_exponent(low: float, high: float, edges: Iterable[float]) -> tuple[str, str]:
    power = -math.floor(math.log10(max(abs(low), abs(high))))
    up = 10.0**power
    first, last = outwards(low * up, high * up, (edge * up for edge in edges))

    def with_it(end: str, value: float) -> str:
        mantissa, _, own = end.partition("e−")  # an end far nearer zero than the other has one already
        return f"{mantissa}e−{power + int(own or 0):02d}" if value else "0"

    return with_it(first, low), with_it(last, high)


def _enough(end: float, places: int, towards: Callable[[float], int], edges: list[float]) -> int:
    """Give so many places, or more, that rounding takes an end neither onto an edge nor over it."""

    def sides(value: float) -> list[tuple[bool, bool]]:
        return [(value < edge, value > edge) for edge in edges]

    enough = range(places, max(places, MOST_PLACES) + 1)
    return next((n for n in enough if sides(_rounded(end, n, towards)) == sides(end)), max(enough))


def _written(end: float, places: int, towards: Callable[[float], int]) -> str:
    """Write an interval's end; one beside zero that so many places would make zero has a digit of its own."""
    rounded = _rounded(end, places, towards)
    if abs(rounded) >= LARGEST:
        return fixed(_rounded(end, 3 - math.floor(math.log10(abs(rounded))), towards), 0)
    if rounded or not end:
        return fixed(rounded, places)
    places = -math.floor(math.log10(abs(end)))
    rounded = _rounded(end, places, towards)
    return fixed(rounded, places) if places <= MOST_PLACES else small(rounded, 1)


def _ends(low: float, high: float) -> tuple[tuple[float, Callable[[float], int]], ...]:
    return (low, math.floor), (high, math.ceil)


def _rounded(value: float, places: int, towards: Callable[[float], int]) -> float:
    scaled = value * 10**places
    nearest = round(scaled)
    return float(
        (nearest if math.isclose(scaled, nearest, rel_tol=1e-9, abs_tol=1e-9) else towards(scaled)) / 10**places
    )


def places_for(spreads: Iterable[Spread | None], most: int = 4) -> int:
    """Give the decimals for one column: two digits of its smallest spread, or four digits of its largest mean."""
    known = [spread for spread in spreads if spread is not None]
    deviations = [spread.deviation for spread in known if spread.deviation]
    sizes = [abs(spread.mean) for spread in known if spread.mean]
    if deviations:
        places = 1 - math.floor(math.log10(min(deviations)))
    elif sizes:
        places = 3 - math.floor(math.log10(max(sizes)))
    else:
        places = 3
    if sizes:  # never more than six digits in all
        most = min(most, max(0, 5 - math.floor(math.log10(max(sizes)))))
    return max(0, min(most, places))
