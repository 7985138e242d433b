"""What a step of training took, arm by arm, beside the kernel that mixed: bars from zero."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from markupsafe import Markup

from headstock.comparison.report import summaries as say
from headstock.comparison.results import TaskOutcome
from headstock.comparison.statistics.sentences import listed
from headstock.pictures import numbers
from headstock.pictures.axes import WIDTH, few_ticks, note, plain
from headstock.pictures.labels import elided, elided_apart
from headstock.pictures.palette import ArmLook, stand_in
from headstock.pictures.picture import Picture, Table
from headstock.pictures.spreads import finite
from headstock.pictures.svg import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 44
BAR = 13


def cost_of_a_step(task: TaskOutcome, looks: Mapping[str, ArmLook]) -> Picture | None:
    """Give the picture for one task, of the arms that were trained; None where no step was timed."""
    arms = say.trained(task)
    taken = {arm.label: finite(arm.cost.seconds_per_step) for arm in arms}
    if not any(taken.values()):
        return None
    title = f"On {task.name}, {_finding(taken)}"
    base = next(iter(taken.values()))
    rows = [
        [
            arm.label,
            numbers.seconds(taken[arm.label]),
            numbers.times(say.ratio(taken[arm.label], base)),
            arm.cost.kernel or numbers.ABSENT,
            *(numbers.seconds(end) for end in _ends(_runs(task, arm.label))),
        ]
        for arm in arms
    ]
    to = "baseline" if arms[0] is task.arms[0] else arms[0].label
    fixed = [arm.label for arm in say.fixed(task)]
    return Picture(
        name=f"Cost of a step, {task.name}",
        title=title,
        drawing=_draw(task, looks, taken, title),
        caption="Seconds for one training step. Bar: median of the arm's runs, from zero; ticks: each run. "
        f"Beside each name, the kernel that mixed, as read off the operations that ran. Context {task.context:,}, "
        f"batch {task.batch_size:,}." + (f" Not trained, so without a step: {listed(fixed)}." if fixed else ""),
        table=Table(["arm", "median", f"to {to}", "kernel", "fastest run", "slowest run"], rows),
        source="result.json and environment.json in the folder of each run",
    )


def _runs(task: TaskOutcome, label: str) -> list[float]:
    arm = next(arm for arm in task.arms if arm.label == label)
    return [cell.seconds_per_step for cell in say.finished(arm) if (finite(cell.seconds_per_step) or 0) > 0]


def _ends(values: list[float]) -> tuple[float | None, float | None]:
    return (min(values), max(values)) if values else (None, None)


def _finding(taken: Mapping[str, float | None]) -> str:
    (baseline, base), *others = taken.items()
    ratios = {label: found for label, value in others if (found := say.ratio(value, base)) is not None}
    if base is None:
        timed = sum(value is not None for value in taken.values())
        return f"{numbers.count(timed, 'arm')} could be timed, {baseline} not"
    if not ratios:
        return f"a step of {baseline} takes {numbers.seconds(base)}"
    if len(ratios) > 3:
        low, high = (numbers.times(end) for end in (min(ratios.values()), max(ratios.values())))
        return f"a step takes {low} to {high} the {numbers.seconds(base)} of {baseline}"
    said = listed([f"{numbers.times(found)} ({label})" for label, found in ratios.items()])
    return f"a step takes {said} the {numbers.seconds(base)} of {baseline}"


def _draw(task: TaskOutcome, looks: Mapping[str, ArmLook], taken: Mapping[str, float | None], title: str) -> Markup:
    short = dict(zip(taken, elided_apart(list(taken), 22), strict=True))
    known = [value for value in taken.values() if value is not None]
    longest = max([*known, *(run for label in taken for run in _runs(task, label))])
    scale, unit = (1000.0, "milliseconds") if longest < 1 else (1.0, "seconds")
    height = ROW * len(taken)
    base = next(iter(taken.values()))

    def draw(axes: "Axes") -> None:
        plain(axes, rules="x")
        axes.set(xlim=(0, longest * scale * 1.04), ylim=(0, height), yticks=[])
        few_ticks(axes, "x")
        axes.axvline(0, color=stand_in("muted"), linewidth=0.9)
        axes.set_xlabel(f"{unit} a step", color=stand_in("muted"), labelpad=6)
        width = axes.bbox.width
        for place, arm in enumerate(say.trained(task)):
            top, value = height - ROW * place, taken[arm.label]
            name = short[arm.label]
            if arm.cost.kernel:
                room = 44 - len(name)
                name += f" · {elided(arm.cost.kernel, max(10, room))}"
            note(axes, 3, top - 11, name, colour="ink", size=11.5, plate=True)
            if value is None:
                note(axes, 3, top - 28, "not timed")
                continue
            said = f"{numbers.seconds(value)}{'' if place == 0 else ', ' + numbers.times(say.ratio(value, base))}"
            note(axes, width, top - 11, said, colour="ink", align="right", size=11.5, plate=True)
            axes.barh([top - 29], [value * scale], height=BAR, color=stand_in(looks[arm.label].colour), alpha=0.85)
            runs = [run * scale for run in _runs(task, arm.label)]
            axes.vlines(runs, top - 29 - BAR / 2, top - 29 + BAR / 2, color=stand_in("ink"), linewidth=0.7)

    return drawn(WIDTH, height + 54, (8, 8, 4, 46), title, draw)
