"""How sure each contrast is: its estimate and the interval that decided it, against the line of no difference."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from headstock.comparison.report import summaries as say
from headstock.comparison.report import writing as write
from headstock.comparison.results import Comparison, TaskOutcome
from headstock.comparison.statistics.hypotheses import Verdict
from headstock.pictures import numbers
from headstock.pictures.axes import WIDTH, around, few_ticks, markers, note, plain
from headstock.pictures.labels import elided_apart
from headstock.pictures.palette import ArmLook, stand_in
from headstock.pictures.picture import Picture, Table
from headstock.pictures.spreads import finite
from headstock.pictures.svg import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 60
LONGEST_LABEL = 19


def intervals(comparison: Comparison, task: TaskOutcome, looks: Mapping[str, ArmLook]) -> list[Picture]:
    """Give a picture for each unit in which the task's contrasts were judged: its metric's, and steps."""
    by_unit: dict[str, list[Verdict]] = {}
    for verdict in say.verdicts_of(comparison, task):
        by_unit.setdefault(verdict.interval_unit, []).append(verdict)
    return [_picture(task, unit, verdicts, looks) for unit, verdicts in by_unit.items()]


def _picture(task: TaskOutcome, unit: str, verdicts: Sequence[Verdict], looks: Mapping[str, ArmLook]) -> Picture:
    in_steps = unit == "steps"
    of = "steps to solve" if in_steps else write.metric_with_unit(task)
    measured = "steps to solve" if in_steps else write.metric_words(task.metric)
    title = f"On {task.name}, {measured}: {write.finding(verdicts)}"
    head = ["contrast", "verdict", "estimate", "interval, low", "interval, high"]
    head += ["p", "level", "test", "seeds", "would see"]
    rows = [
        [
            f"{verdict.arm} − {verdict.against}",
            write.kind(verdict),
            numbers.small(verdict.estimate),
            *_ends_in_words(verdict),
            numbers.small(verdict.p),
            numbers.small(verdict.level),
            verdict.test,
            str(verdict.pairs) if verdict.p is not None else numbers.ABSENT,
            numbers.small(verdict.seen),
        ]
        for verdict in verdicts
    ]
    return Picture(
        name=f"Intervals, {task.name}, {unit or write.metric_words(task.metric)}",
        title=title,
        drawing=_draw(task, unit, verdicts, looks, title),
        caption=_caption(verdicts, of),
        table=Table(head, rows),
        source="comparison.json, verdicts",
    )


def _ends_in_words(verdict: Verdict) -> list[str]:
    if verdict.interval is None:
        return [numbers.ABSENT, numbers.ABSENT]
    return ["open" if finite(end) is None else numbers.small(end) for end in verdict.interval]


def _caption(verdicts: Sequence[Verdict], of: str) -> str:
    parts = [f"First arm less second, in {of}."]
    if any(verdict.interval for verdict in verdicts):
        parts.append(
            "Mark: estimate; line: the interval, at the level that Holm's correction gave this contrast. It leaves "
            "zero out exactly where a claim is made (filled mark, thick line)."
        )
    if any(verdict.interval and None in verdict.interval for verdict in verdicts):
        parts.append("An arrow: the data leave this end open.")
    if any(verdict.estimate is not None and not verdict.interval for verdict in verdicts):
        parts.append("Hollow mark without a line: an estimate that no interval stands behind.")
    return " ".join(parts)


def _draw(
    task: TaskOutcome, unit: str, verdicts: Sequence[Verdict], looks: Mapping[str, ArmLook], title: str
) -> Markup:
    labels = list(dict.fromkeys(name for verdict in verdicts for name in (verdict.arm, verdict.against)))
    short = dict(zip(labels, elided_apart(labels, LONGEST_LABEL), strict=True))
    shown = [0.0]
    for verdict in verdicts:
        known = map(finite, [verdict.estimate, *(verdict.interval or ())])
        shown += [number for number in known if number is not None]
    lower_is_better = unit == "steps" or task.better == "lower"
    height = ROW * len(verdicts)

    def draw(axes: "Axes") -> None:
        plain(axes, rules="")
        low, high = around(shown, 0.1)
        axes.set(xlim=(low, high), ylim=(0, height), yticks=[])
        few_ticks(axes, "x")
        axes.axvline(0, color=stand_in("ink"), linewidth=1, clip_on=False)
        width = axes.bbox.width
        named = f"difference in {'steps' if unit == 'steps' else write.metric_with_unit(task)}"
        axes.set_xlabel(named, color=stand_in("muted"), labelpad=27)
        first, second = ("better", "worse") if lower_is_better else ("worse", "better")
        if low < 0:
            note(axes, 0, -29, f"← first arm {first}")
        if high > 0:
            note(axes, width, -29, f"first arm {second} →", align="right")
        for place, verdict in enumerate(verdicts):
            base = height - ROW * place
            contrast = f"{short[verdict.arm]} − {short[verdict.against]}"
            note(axes, 0, base - 12, contrast, colour="ink", size=11.5, plate=True)
            tint = "ink" if verdict.claim else "muted"
            note(axes, 0, base - 27, _in_a_line(verdict), colour=tint, plate=True)
            _mark(axes, verdict, base - 44, looks[verdict.arm], (low, high))

    return drawn(WIDTH, height + 72, (8, 8, 4, 68), title, draw)


def _in_a_line(verdict: Verdict) -> str:
    """Give "better: −225 to −100 steps", so that a short interval can be read beside long ones."""
    if verdict.interval is None:
        return write.kind(verdict)
    low, high = (finite(end) for end in verdict.interval)
    if low is None or high is None:
        ends = [f"{word} {numbers.small(end, 3)}" for word, end in (("from", low), ("up to", high)) if end is not None]
        return f"{verdict.kind}: {ends[0] if ends else 'open at both ends'}"
    return f"{verdict.kind}: {' to '.join(numbers.outwards(low, high))}"


def _mark(axes: "Axes", verdict: Verdict, y: float, look: ArmLook, limits: tuple[float, float]) -> None:
    colour = stand_in(look.colour)
    if verdict.interval is not None:
        ends = [finite(end) for end in verdict.interval]
        near, far = (limit if end is None else end for end, limit in zip(ends, limits, strict=True))
        axes.plot([near, far], [y, y], color=colour, linewidth=3.2 if verdict.claim else 1.4, solid_capstyle="butt")
        for end, place, shape in zip(ends, (near, far), ("<", ">"), strict=True):
            open_end = end is None
            axes.plot([place], [y], marker=shape if open_end else "|", color=colour, markersize=9, clip_on=False)
    estimate = finite(verdict.estimate)
    if estimate is not None:
        markers(axes, [estimate], [y], look, filled=verdict.claim, size=5.5)
