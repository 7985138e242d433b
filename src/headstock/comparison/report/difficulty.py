"""The primary metric by difficulty: lines along a single one, a grid for each arm where two cross, all on one scale.

A description of these runs: nothing here was tested.
"""

import math
from collections.abc import Mapping

from headstock.comparison.difficulties import Difficulties, Value, at_in_words, words, written
from headstock.comparison.report import summaries as say
from headstock.comparison.report import writing as write
from headstock.comparison.results import ArmOnTask, OnProbe, TaskOutcome
from headstock.comparison.statistics.sentences import listed
from headstock.pictures import numbers
from headstock.pictures.grid import MOST, heat
from headstock.pictures.lines import Series, lines
from headstock.pictures.palette import ArmLook
from headstock.pictures.picture import Picture
from headstock.pictures.spreads import finite

LOGARITHMIC = 4
"""From so many times the smallest value on, a difficulty that is nowhere 0 is drawn along a logarithmic axis."""
SOURCE = "result.json in the folder of each run, its probes"


def by_difficulty(task: TaskOutcome, looks: Mapping[str, ArmLook]) -> list[Picture]:
    """Give the pictures of one task; none where no run was scored at any difficulty."""
    arms = [arm for arm in task.arms if any(probe.mean is not None for probe in arm.probes)]
    if not arms:
        return []
    ats = say.probed_at(task)
    of = Difficulties.of(ats)
    if (along := of.across()) is not None and len(along[1]) > 1:
        return [_lines(task, arms, *along, looks)]
    if of.grid() and max(map(len, of.values.values())) <= MOST:
        return [_grid(task, arm, of, _largest(arms)) for arm in arms]
    return [_row_an_arm(task, arms, ats[:MOST], of)]


def _lines(
    task: TaskOutcome, arms: list[ArmOnTask], name: str, values: list[Value], looks: Mapping[str, ArmLook]
) -> Picture:
    xs = sorted(float(value) for value in values)
    series: dict[str, Series] = {}
    bands: dict[str, Series] = {}
    for arm in arms:
        probes = {float(probe.at[name]): probe for probe in arm.probes}
        ends = [_ends(probes[x]) if x in probes else (math.nan, math.nan) for x in xs]
        series[arm.label] = (xs, [_mean(probes[x]) if x in probes else math.nan for x in xs])
        bands[arm.label] = ([low for low, _ in ends], [high for _, high in ends])
    with_band = _most_seeds(arms) > 1
    return lines(
        series,
        x=words(name),
        y=f"{write.metric_with_unit(task)}, held-out",
        title=f"On {task.name}, {_along(task, arms, name, xs)}",
        log_x=xs[0] > 0 and xs[-1] >= LOGARITHMIC * xs[0],
        bands=bands if with_band else None,
        band="from the lowest to the highest seed" if with_band else "",
        looks=looks,
        caption=_caption(arms, "Line: mean over"),
        name=f"By difficulty, {task.name}",
        source=SOURCE,
    )


def _along(task: TaskOutcome, arms: list[ArmOnTask], name: str, xs: list[float]) -> str:
    """Say how the metric goes from the first value to the last."""
    metric = write.metric_words(task.metric)
    first, last = (written(int(end) if end == round(end) else end) for end in (xs[0], xs[-1]))
    if len(arms) > 3:
        ends = [_mean(probe) for arm in arms for probe in arm.probes if probe.at[name] == xs[-1]]
        low, high = (numbers.fixed(end, 2) for end in (min(ends), max(ends)))
        return f"{metric} at {words(name)} {last} lies between {low} and {high}"
    said = []
    for arm in arms:
        means = {float(probe.at[name]): probe.mean for probe in arm.probes}
        said.append(f"{numbers.fixed(means.get(xs[0]), 2)} to {numbers.fixed(means.get(xs[-1]), 2)} ({arm.label})")
    return f"{metric} from {words(name)} {first} to {last}: {listed(said)}"


def _grid(task: TaskOutcome, arm: ArmOnTask, of: Difficulties, largest: float) -> Picture:
    (down, downs), (across, acrosses) = of.values.items()
    means = {(probe.at[down], probe.at[across]): _mean(probe) for probe in arm.probes}
    known = {at: mean for at, mean in means.items() if math.isfinite(mean)}
    worst = (min if task.better == "higher" else max)(known, key=lambda at: known[at])
    best = (max if task.better == "higher" else min)(known.values())
    where = at_in_words({down: worst[0], across: worst[1]})
    metric = write.metric_words(task.metric)
    return heat(
        [[means.get((row, column), math.nan) for column in acrosses] for row in downs],
        list(map(written, downs)),
        list(map(written, acrosses)),
        title=f"{arm.label} on {task.name}: {metric} {numbers.fixed(known[worst], 2)} at {where}, "
        f"{numbers.fixed(best, 2)} at best",
        rows=words(down),
        columns=words(across),
        unit=f"{metric}, held-out",
        signed=False,
        reaches=largest,
        missing="not scored",
        caption=f"{_caption([arm], 'Mean over')} All arms have one scale.",
        name=f"By difficulty, {task.name}, {arm.label}",
        source=SOURCE,
    )


def _row_an_arm(task: TaskOutcome, arms: list[ArmOnTask], ats: list[dict[str, Value]], of: Difficulties) -> Picture:
    """Draw a row an arm and a column a difficulty: what is no number, or is more than a grid can cross."""
    means = [{at_in_words(probe.at): _mean(probe) for probe in arm.probes} for arm in arms]
    columns = [" × ".join(map(written, at.values())) for at in ats]
    return heat(
        [[of_arm.get(at_in_words(at), math.nan) for at in ats] for of_arm in means],
        [arm.label for arm in arms],
        columns,
        title=f"On {task.name}, {write.metric_words(task.metric)} by {of.in_words}",
        rows="arm",
        columns=of.in_words,
        unit=f"{write.metric_words(task.metric)}, held-out",
        signed=False,
        missing="not scored",
        caption=_caption(arms, "Mean over"),
        name=f"By difficulty, {task.name}",
        source=SOURCE,
    )


def _caption(arms: list[ArmOnTask], begins: str) -> str:
    """Say what was averaged, and how far seeds are apart at most."""
    most = _most_seeds(arms)
    apart = [probe.deviation for arm in arms for probe in arm.probes if finite(probe.deviation) is not None]
    spread = max((deviation for deviation in apart if deviation is not None), default=None)
    said = f"{begins} {numbers.count(most, 'seed')}"
    far = f", whose standard deviation is at most {numbers.small(spread, 2)}" if spread is not None else ""
    return f"{said}{far}. Not tested."


def _most_seeds(arms: list[ArmOnTask]) -> int:
    return max(sum(finite(value) is not None for value in probe.values) for arm in arms for probe in arm.probes)


def _ends(probe: OnProbe) -> tuple[float, float]:
    known = [value for value in probe.values if value is not None and math.isfinite(value)]
    return (min(known), max(known)) if known else (math.nan, math.nan)


def _mean(probe: OnProbe) -> float:
    mean = finite(probe.mean)
    return math.nan if mean is None else mean


def _largest(arms: list[ArmOnTask]) -> float:
    return max(mean for arm in arms for probe in arm.probes if math.isfinite(mean := _mean(probe)))
