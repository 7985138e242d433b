"""An arm beside another: what each seed's pair differs by, as pictures of means with their intervals."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from headstock.pictures.bars import bars
from headstock.pictures.lines import Series, lines
from headstock.pictures.palette import ArmLook
from headstock.pictures.picture import Picture
from headstock.studies.results import StudyResult

LEVEL = 0.95


def differences(
    result: StudyResult,
    pairs: Mapping[str, tuple[str, str]],
    figure: str,
    *,
    unit: str,
    title: str,
    name: str,
    caption: str = "",
) -> list[Picture]:
    """Draw, for each label's (row, base), the row's figure less the base's, paired by seed; nothing without a pair.

    unit: of the difference, as in "nats a token more than softmax". Intervals are Student's, each by itself; the
    verdicts' own are wider, for they hold together.
    """
    drawn: dict[str, float | tuple[float, float, float]] = {}
    for label, (row, base) in pairs.items():
        if found := _paired(result, row, base, figure):
            drawn[label] = _with_interval(found)
    if not drawn:
        return []
    interval = "95 % interval of the mean over seeds" if all(isinstance(one, tuple) for one in drawn.values()) else ""
    return [bars(drawn, unit=unit, title=title, zero=False, interval=interval, caption=caption, name=name)]


def differences_along(
    result: StudyResult,
    pairs: Mapping[str, Sequence[tuple[str, str]]],
    at: Sequence[float],
    figure: str,
    *,
    x: str,
    y: str,
    title: str,
    name: str,
    looks: Mapping[str, ArmLook] | None = None,
) -> list[Picture]:
    """Draw the same differences of each label's rows along a logarithmic axis, at one place a row, with their bands."""
    series: dict[str, Series] = {}
    bands: dict[str, Series] = {}
    for label, rows in pairs.items():
        found = [_paired(result, row, base, figure) for row, base in rows]
        if all(len(differences) > 1 for differences in found):
            middles, lows, highs = zip(*(_interval(differences) for differences in found), strict=True)
            series[label], bands[label] = (at, middles), (lows, highs)
    if not series:
        return []
    band = "95 % interval of the mean over seeds, each by itself"
    return [lines(series, x=x, y=y, title=title, log_x=True, zero=True, bands=bands, band=band, looks=looks, name=name)]


def _paired(result: StudyResult, row: str, base: str, figure: str) -> list[float]:
    """Give the difference of each seed that both have; nothing where there is none, or one is no number."""
    there = {one.name for one in result.rows}
    if row not in there or base not in there:
        return []
    ours, theirs = result.row(row).values(figure), result.row(base).values(figure)
    found = [ours[seed] - theirs[seed] for seed in sorted(set(ours) & set(theirs))]
    return found if all(map(math.isfinite, found)) else []


def _with_interval(values: list[float]) -> float | tuple[float, float, float]:
    return values[0] if len(values) == 1 else _interval(values)


def _interval(values: list[float]) -> tuple[float, float, float]:
    from scipy.stats import t

    middle = fmean(values)
    reach = float(t.ppf((1 + LEVEL) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return middle, middle - reach, middle + reach
