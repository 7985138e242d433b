"""How the learning rate was chosen: every arm at the same rates, on seeds that are not reported."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from markupsafe import Markup

from headstock.comparison.report import writing as write
from headstock.comparison.results import TaskOutcome, Tuning
from headstock.comparison.statistics.sentences import listed
from headstock.pictures import numbers
from headstock.pictures.axes import (
    WIDTH,
    LineEnd,
    around,
    few_ticks,
    label_ends,
    line,
    margin_for,
    markers,
    note,
    plain,
)
from headstock.pictures.palette import ArmLook, stand_in
from headstock.pictures.picture import Picture, Table
from headstock.pictures.spreads import finite
from headstock.pictures.svg import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def tuning_curves(task: TaskOutcome, looks: Mapping[str, ArmLook]) -> Picture | None:
    """Give the picture for one task; None where no arm was tuned."""
    tuned = {arm.label: arm.tuning for arm in task.arms if arm.tuning is not None and arm.tuning.rates}
    if not tuned:
        return None
    title = f"On {task.name}, {_finding(tuned)}"
    rows = [
        [
            label,
            f"{rate:g}",
            numbers.fixed(value, 4) if finite(value) is not None else "failed",
            _is_chosen(rate, tuning),
        ]
        for label, tuning in tuned.items()
        for rate, value in _points(tuning)
    ]
    return Picture(
        name=f"Tuning, {task.name}",
        title=title,
        drawing=_draw(task, looks, tuned, title),
        caption=f"Mean held-out {write.metric_words(task.metric)} at each learning rate, the same rates for every arm, "
        "on seeds that are not among those reported. Large mark: the rate chosen. Cross at the edge: a run failed.",
        table=Table(["arm", "learning rate", write.metric_words(task.metric), "chosen"], rows),
        source="comparison.json, tuning of each arm",
    )


def _points(tuning: Tuning) -> list[tuple[float, float | None]]:
    return sorted(zip(tuning.rates, tuning.values, strict=False), key=lambda point: point[0])


def _is_chosen(rate: float, tuning: Tuning) -> str:
    return "chosen" if math.isclose(rate, tuning.chosen) else ""


def _finding(tuned: Mapping[str, Tuning]) -> str:
    labels_by_rate: dict[float, list[str]] = {}
    for label, tuning in tuned.items():
        labels_by_rate.setdefault(tuning.chosen, []).append(label)
    if len(labels_by_rate) == 1:
        (rate,) = labels_by_rate
        return f"a learning rate of {rate:g} was chosen{' for every arm' if len(tuned) > 1 else ''}"
    if len(tuned) > 3:
        return f"learning rates from {min(labels_by_rate):g} to {max(labels_by_rate):g} were chosen"
    return (
        f"the learning rates chosen are {listed([f'{tuning.chosen:g} ({label})' for label, tuning in tuned.items()])}"
    )


def _draw(task: TaskOutcome, looks: Mapping[str, ArmLook], tuned: Mapping[str, Tuning], title: str) -> Markup:
    short, right = margin_for(list(tuned))
    rates = sorted({rate for tuning in tuned.values() for rate in tuning.rates})
    known = [value for tuning in tuned.values() for _, value in _points(tuning) if finite(value) is not None]
    values = [value for value in known if value is not None]
    shown = rates if len(rates) <= 4 else [rates[0], rates[len(rates) // 2], rates[-1]]

    def draw(axes: "Axes") -> None:
        plain(axes)
        axes.set_xscale("log")
        axes.set_xlim(rates[0] / 1.3, rates[-1] * 1.3)
        low, high = around(values, 0.1)
        axes.set_ylim(low, high)
        few_ticks(axes, "y")
        axes.set_xticks(shown, labels=[f"{rate:g}" for rate in shown])
        axes.set_xlabel("learning rate, by factors", color=stand_in("muted"), fontsize=11.5, labelpad=6)
        note(axes, -34, axes.bbox.height + 16, write.metric_with_unit(task), size=11.5)
        edge = high if task.better == "lower" else low
        ends = []
        for name, (label, tuning) in zip(short, tuned.items(), strict=True):
            look = looks[label]
            points = [(rate, value) for rate, value in _points(tuning) if value is not None and math.isfinite(value)]
            lost = [rate for rate, value in _points(tuning) if finite(value) is None]
            axes.plot(
                lost, [edge] * len(lost), linestyle="none", marker="x", color=stand_in(look.colour), clip_on=False
            )
            if points:
                xs, ys = [rate for rate, _ in points], [value for _, value in points]
                line(axes, xs, ys, look, marks=len(xs))
                best = [point for point in points if math.isclose(point[0], tuning.chosen)]
                markers(axes, [x for x, _ in best], [y for _, y in best], look, size=11)
                ends.append(LineEnd(name, look, *points[-1]))
            elif lost:
                ends.append(LineEnd(name, look, lost[-1], edge))
        label_ends(axes, ends)

    return drawn(WIDTH, max(250, 80 + 14 * len(tuned)), (42, right, 34, 44), title, draw)
