"""How each arm learnt: its primary metric on held-out data by training step, the middle of its seeds with a band."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from headstock.comparison.report import summaries as say
from headstock.comparison.report import writing as write
from headstock.comparison.results import CellResult, TaskOutcome
from headstock.comparison.statistics.sentences import listed
from headstock.pictures import numbers
from headstock.pictures.axes import WIDTH, LineEnd, around, few_ticks, label_ends, line, margin_for, note, plain
from headstock.pictures.palette import ArmLook, stand_in
from headstock.pictures.picture import Picture, Table
from headstock.pictures.spreads import finite
from headstock.pictures.svg import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST_FOR_QUARTERS = 4
MOST_ROWS = 48
"""Of one arm in the table behind the picture."""


@dataclass(frozen=True)
class Band:
    """One arm's metric at each evaluation step: how many seeds, their median and the band's edges."""

    steps: list[float]
    counts: list[int]
    medians: list[float]
    lows: list[float]
    highs: list[float]


def learning_curves(task: TaskOutcome, looks: Mapping[str, ArmLook]) -> Picture | None:
    """Give the picture for one task, of the arms that were trained; None where no run of them was evaluated."""
    arms = say.trained(task)
    bands = {arm.label: band(say.finished(arm), task.metric) for arm in arms}
    stopped = {arm.label: [curve for cell in say.failed(arm) if (curve := _curve(cell, task.metric))] for arm in arms}
    bands = {label: found for label, found in bands.items() if found.steps}
    if not bands and not any(stopped.values()):
        return None
    title = f"On {task.name}, {_finding(task, bands)}"
    drawing = _draw(task, looks, bands, stopped, title)
    rows = [
        [label, numbers.whole(step), str(n), *(numbers.fixed(value, 4) for value in values)]
        for label, found in bands.items()
        for step, n, *values in thinned(found)
    ]
    rows += [
        [f"{label}, failed after", numbers.whole(step), "1", numbers.fixed(value, 4), numbers.ABSENT, numbers.ABSENT]
        for label, curves in stopped.items()
        for curve in curves
        for step, value in curve[-1:]
    ]
    return Picture(
        name=f"Learning curves, {task.name}",
        title=title,
        drawing=drawing,
        caption=_caption(task, bands, any(stopped.values())),
        table=Table(["arm", "step", "seeds", "median", "band, low", "band, high"], rows),
        source="metrics.jsonl in the folder of each run, which has every evaluation",
    )


def band(cells: Sequence[CellResult], metric: str) -> Band:
    """Give the median and the middle half of the seeds at each step; of fewer than four seeds, the whole range."""
    by_step: dict[float, list[float]] = {}
    for cell in cells:
        for step, value in _curve(cell, metric):
            by_step.setdefault(step, []).append(value)
    found = Band([], [], [], [], [])
    for step, values in sorted(by_step.items()):
        low, high = min(values), max(values)
        if len(values) >= FEWEST_FOR_QUARTERS:
            low, _, high = statistics.quantiles(values, n=4, method="inclusive")
        found.steps.append(step)
        found.counts.append(len(values))
        found.medians.append(statistics.median(values))
        found.lows.append(low)
        found.highs.append(high)
    return found


def thinned(found: Band) -> list[tuple[float, int, float, float, float]]:
    """Give the band's rows for a table, evenly left out where they are many; the last one stays."""
    rows = list(zip(found.steps, found.counts, found.medians, found.lows, found.highs, strict=True))
    every = -(-len(rows) // MOST_ROWS)
    return rows[::-every][::-1]


def _curve(cell: CellResult, metric: str) -> list[tuple[float, float]]:
    """Give a run's (step, metric), without the evaluations that gave no number."""
    pairs = ((finite(entry.get("step")), finite(entry.get(metric))) for entry in cell.curve)
    return [(step, value) for step, value in pairs if step is not None and value is not None]


def _finding(task: TaskOutcome, bands: Mapping[str, Band]) -> str:
    """Say what the picture shows, in the order of the plan: a description of these runs, not a claim."""
    if not bands:
        return "no run came to its end"
    if task.solved_at is not None:
        return _who_solved(task)
    unit = task.unit or write.metric_words(task.metric)
    ends = {label: found.medians[-1] for label, found in bands.items()}
    if len(ends) > 3:
        low, high = (numbers.fixed(end, 2) for end in (min(ends.values()), max(ends.values())))
        return f"medians end between {low} and {high} {unit}"
    written = [f"{numbers.fixed(value, 2)} ({label})" for label, value in ends.items()]
    return f"{'medians end' if len(ends) > 1 else 'the median ends'} at {listed(written)} {unit}"


def _who_solved(task: TaskOutcome) -> str:
    results = {arm.label: result for arm in say.trained(task) if (result := say.solving(task, arm)) is not None}
    steps = max(result.steps for result in results.values())
    solvers = {label: result.median_steps for label, result in results.items() if result.median_steps is not None}
    others = [label for label, result in results.items() if label not in solvers and result.finished]
    kind = "trained arm" if say.fixed(task) else "arm"
    if not solvers:
        return f"no {kind} solves the task within {steps:,} steps in most of its seeds"
    if len(results) > 3:
        return f"{len(solvers)} of {len(results)} {kind}s solve the task within {steps:,} steps in most of their seeds"
    said = listed([f"{label} in {numbers.whole(median)}" for label, median in solvers.items()])
    rest = f"; {listed(others)} {'does' if len(others) == 1 else 'do'} not" if others else ""
    return f"the median seed solves the task with {said} steps{rest}"


def _draw(
    task: TaskOutcome,
    looks: Mapping[str, ArmLook],
    bands: Mapping[str, Band],
    stopped: Mapping[str, list[list[tuple[float, float]]]],
    title: str,
) -> Markup:
    drawn_arms = [arm.label for arm in say.trained(task) if arm.label in bands or stopped[arm.label]]
    short, right = margin_for(drawn_arms)
    height = max(270, 70 + 14 * len(drawn_arms))
    lost = [curve for curves in stopped.values() for curve in curves]
    values = [value for found in bands.values() for value in (*found.lows, *found.highs)]
    values += [value for curve in lost for _, value in curve] + ([] if task.solved_at is None else [task.solved_at])
    last = max([*(found.steps[-1] for found in bands.values()), *(curve[-1][0] for curve in lost)])
    first = min([*(found.steps[0] for found in bands.values()), *(curve[0][0] for curve in lost)])

    def draw(axes: "Axes") -> None:
        plain(axes)
        axes.set_xlim(0 if first < last else first - 1, last if first < last else last + 1)
        axes.set_ylim(
            (0, 1.03) if task.metric == "accuracy" and 0 <= min(values) <= max(values) <= 1 else around(values)
        )
        few_ticks(axes, "x")
        few_ticks(axes, "y")
        axes.set_xlabel("training step", color=stand_in("muted"), fontsize=11.5, labelpad=6)
        note(axes, -34, axes.bbox.height + 16, write.metric_with_unit(task), size=11.5)
        if task.solved_at is not None:
            axes.axhline(task.solved_at, color=stand_in("muted"), linewidth=0.9, dashes=(2, 2), clip_on=False)
        ends = []
        for label, name in zip(drawn_arms, short, strict=True):
            look = looks[label]
            for curve in stopped[label]:
                steps, levels = zip(*curve, strict=True)
                axes.plot(steps, levels, color=stand_in(look.colour), linewidth=0.8, alpha=0.8, clip_on=False)
                axes.plot(steps[-1:], levels[-1:], color=stand_in(look.colour), marker="x", markersize=6, clip_on=False)
            if label not in bands:
                step, level = max(curve[-1] for curve in stopped[label])
                ends.append(LineEnd(name, look, step, level))
                continue
            found = bands[label]
            axes.fill_between(
                found.steps,
                found.lows,
                found.highs,
                color=stand_in(look.colour),
                alpha=0.16,
                linewidth=0,
                clip_on=False,
            )
            line(axes, found.steps, found.medians, look)
            ends.append(LineEnd(name, look, found.steps[-1], found.medians[-1]))
        label_ends(axes, ends)

    return drawn(WIDTH, height, (42, right, 34, 44), title, draw)


def _caption(task: TaskOutcome, bands: Mapping[str, Band], stopped: bool) -> str:
    counts = {n for found in bands.values() for n in found.counts}
    parts = [f"Held-out {write.metric_words(task.metric)} while training; {task.better} is better."]
    if counts:
        few, many = min(counts), max(counts)
        seeds = numbers.count(many, "seed") if few == many else f"{few} to {many} seeds"
        if many == 1:
            parts.append("Line: the one seed, so there is no band.")
        elif few >= FEWEST_FOR_QUARTERS:
            parts.append(f"Line: median. Band: the middle half of {seeds}.")
        elif many < FEWEST_FOR_QUARTERS:
            parts.append(f"Line: median. Band: from the lowest to the highest of {seeds}.")
        else:
            parts.append(f"Line: median of {seeds}. Band: their middle half, of fewer than four seeds the whole range.")
    if task.solved_at is not None:
        parts.append(f"Dotted: {write.mark(task)}.")
    if stopped:
        parts.append("Thin lines that end in a cross: runs that failed, not in the medians.")
    silent = [arm.label for arm in say.trained(task) if arm.label not in bands]
    if silent:
        parts.append(f"No run of {listed(silent)} finished.")
    if fixed := say.fixed(task):
        spreads = [say.metric_spread(arm, "held-out", task.metric) for arm in fixed]
        ends = [numbers.plus_minus(spread, numbers.places_for(spreads)) for spread in spreads]
        at = listed([f"{arm.label} at {end}" for arm, end in zip(fixed, ends, strict=True)])
        parts.append(f"Not trained, so not drawn: {at}.")
    return " ".join(parts)
