"""The report's own tables: what each arm reached on a task, what it costs, and every run."""

from collections.abc import Sequence
from dataclasses import dataclass

from headstock.comparison.report import summaries as say
from headstock.comparison.report import writing as write
from headstock.comparison.results import ArmOnTask, TaskOutcome
from headstock.pictures import numbers
from headstock.pictures.palette import ArmLook
from headstock.pictures.picture import Table

SPLITS = ("held-out", "train")


@dataclass(frozen=True)
class Cell:
    """A figure, and in small beside it how it stands to the baseline's."""

    text: str
    beside: str = ""
    differs: bool = False


@dataclass(frozen=True)
class ArmRow:
    """One arm's line of a table."""

    label: str
    look: ArmLook
    role: str
    cells: list[Cell]


@dataclass(frozen=True)
class Group:
    """A heading over several columns."""

    name: str
    columns: list[str]


@dataclass(frozen=True)
class ArmTable:
    """A table with one line an arm and its columns in groups."""

    groups: list[Group]
    rows: list[ArmRow]


def results_table(task: TaskOutcome, looks: dict[str, ArmLook]) -> ArmTable:
    """Give what each arm reached: the primary metric first, the figures without claims beside it."""
    primary = _metric_columns(task, task.metric)
    groups = [Group(f"{write.metric_with_unit(task)}, {task.better} is better", ["held-out", "train"])]
    columns = primary
    if task.solved_at is not None:
        groups.append(Group(write.mark(task), ["seeds", "median steps"]))
        results = [result for arm in task.arms if (result := say.solving(task, arm)) is not None]
        columns.append([write.solved_in_words(result) for result in results])
        columns.append([write.steps_in_words(result) for result in results])
    others = say.other_metrics(task)
    if others:
        groups.append(Group("held-out, without claims", [write.metric_words(name) for name in others]))
        columns += [_means(task, name) for name in others]
    rows = [
        ArmRow(arm.label, looks[arm.label], role(place, arm), [Cell(column[place]) for column in columns])
        for place, arm in enumerate(task.arms)
    ]
    return ArmTable(groups, rows)


def _metric_columns(task: TaskOutcome, metric: str) -> list[list[str]]:
    """Give the held-out and the train column of a metric, to the same number of decimals."""
    by_split = [[say.metric_spread(arm, split, metric) for arm in task.arms] for split in SPLITS]
    places = numbers.places_for([spread for spreads in by_split for spread in spreads])
    return [[numbers.plus_minus(spread, places) for spread in spreads] for spreads in by_split]


def _means(task: TaskOutcome, metric: str) -> list[str]:
    spreads = [say.metric_spread(arm, "held-out", metric) for arm in task.arms]
    places = numbers.places_for(spreads)
    return [numbers.fixed(spread.mean if spread else None, places) for spread in spreads]


def role(place: int, arm: ArmOnTask) -> str:
    """Say whether an arm is the baseline or a floor; empty where it is neither."""
    return "baseline" if place == 0 else "floor" if arm.floor else ""


def costs_table(task: TaskOutcome, looks: dict[str, ArmLook]) -> ArmTable:
    """Give what each arm costs on the task, and beside each figure how far it is from the baseline's."""
    groups = [
        Group("parameters" if say.fixed(task) else "numbers that training changes", ["all", "non-embedding", "d_ff"]),
        Group("operations and bytes", ["FLOPs a token, forward", "full cache"]),
        Group("a training step", ["median", "kernel that ran"]),
    ]
    rows = []
    for place, arm in enumerate(task.arms):
        cost, base = arm.cost, task.arms[0].cost
        counts = [
            (cost.parameters, base.parameters),
            (cost.non_embedding, base.non_embedding),
            (cost.d_ff, base.d_ff),
            (cost.flops_per_token, base.flops_per_token),
            (cost.cache_bytes, base.cache_bytes),
        ]
        cells = [
            Cell(numbers.whole(value), numbers.difference(value, to), abs(value - to) > 0.005 * abs(to))
            for value, to in counts
        ]
        to_baseline = say.ratio(cost.seconds_per_step, base.seconds_per_step)
        beside = "" if place == 0 or to_baseline is None else numbers.times(to_baseline)
        cells.append(Cell(write.step_in_words(arm), beside, differs=bool(beside)))
        cells.append(Cell(cost.kernel or numbers.ABSENT))
        rows.append(ArmRow(arm.label, looks[arm.label], role(place, arm), cells))
    return ArmTable(groups, rows)


def runs_table(task: TaskOutcome) -> Table:
    """Give every run of a task: what it gave on both splits, and the folder that holds it.

    A fixed model is one run, whatever the seed.
    """
    metrics = [task.metric, *say.other_metrics(task)]
    head = ["arm", "seed", "learning rate", "status"]
    head += [f"{write.metric_words(name)}, {split}" for name in metrics for split in SPLITS]
    head += ["steps to solve"] if task.solved_at is not None else []
    head += ["a step", "folder"]
    rows: list[Sequence[str]] = []
    for arm in task.arms:
        for cell in say.runs(arm):
            drawn = [str(cell.seed), f"{cell.lr:g}"] if arm.trained else ["any", write.NOT_TRAINED]
            row = [arm.label, *drawn, cell.status + (f": {cell.reason}" if cell.reason else "")]
            row += [numbers.fixed(cell.metrics.get(split, {}).get(name), 4) for name in metrics for split in SPLITS]
            if task.solved_at is not None:
                step = say.solving_step(task, arm, cell)
                late = numbers.whole(step) if arm.trained else "solved, " + write.NOT_TRAINED
                row.append("not solved" if step is None else late)
            taken = numbers.seconds(cell.seconds_per_step) if arm.trained else write.NOT_TRAINED
            rows.append([*row, taken, cell.folder])
    return Table(head, rows)
