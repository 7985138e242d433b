"""An arm beside another: what each seed's pair differs by, as a picture of means with their intervals."""

import math
from collections.abc import Mapping
from statistics import fmean, stdev

from headstock.pictures.bars import bars
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
        there = {one.name for one in result.rows}
        if row not in there or base not in there:
            continue
        ours, theirs = result.row(row).values(figure), result.row(base).values(figure)
        found = [ours[seed] - theirs[seed] for seed in sorted(set(ours) & set(theirs))]
        if found and all(map(math.isfinite, found)):
            drawn[label] = _with_interval(found)
    if not drawn:
        return []
    interval = "95 % interval of the mean over seeds" if all(isinstance(one, tuple) for one in drawn.values()) else ""
    return [bars(drawn, unit=unit, title=title, zero=False, interval=interval, caption=caption, name=name)]


def _with_interval(values: list[float]) -> float | tuple[float, float, float]:
    if len(values) == 1:
        return values[0]
    from scipy.stats import t

    middle = fmean(values)
    reach = float(t.ppf((1 + LEVEL) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return middle, middle - reach, middle + reach
