"""A comparison as plain text, at most 100 columns wide where labels allow: verdicts first, then what they stand on."""

from collections.abc import Sequence

from headstock.comparison.difficulties import Difficulties, written
from headstock.comparison.report import summaries as say
from headstock.comparison.report import writing as write
from headstock.comparison.results import Comparison, TaskOutcome
from headstock.pictures import numbers
from headstock.pictures.labels import TERMINAL, elided, elided_apart, showable, wrapped

GAP = "  "
LONGEST_LABEL = 30

Row = Sequence[str]


def as_text(comparison: Comparison) -> str:
    """Give the verdicts and the figures they stand on; the same value always gives the same text, without colour."""
    blocks = [_heading(comparison)]
    blocks += [_verdicts(comparison, task) for task in comparison.tasks]
    blocks.append(wrapped([write.basis(comparison)]))
    if comparison.earlier_claims:
        blocks.append("What earlier looks claimed, at fewer seeds\n" + wrapped(comparison.earlier_claims, "  "))
    tables = [(_result_columns(task), _cost_columns(task)) if task.arms else ([], []) for task in comparison.tasks]
    # One width for all tables, so that an arm is called the same in each.
    room = min((_room(columns) for pair in tables for columns in pair), default=LONGEST_LABEL)
    for task, (results, costs) in zip(comparison.tasks, tables, strict=True):
        labels = ["arm", *elided_apart([arm.label for arm in task.arms], max(10, min(room, LONGEST_LABEL)))]
        blocks.append("\n".join([_about(task), *_aligned(labels, results), _notes(task)]))
        blocks.append(_by_difficulty(task, labels[1:]))
        blocks.append("\n".join([f"{task.name}: cost", *_aligned(labels, costs)]) if costs else "")
    if comparison.matching:
        blocks.append("Made equal, and what still differs\n" + wrapped(comparison.matching, "  "))
    return showable("\n\n".join(block for block in blocks if block) + "\n")


def _heading(comparison: Comparison) -> str:
    lines = [wrapped([comparison.title])]
    if comparison.exploratory:
        lines.append("EXPLORATORY: this plan can reach no claim; its figures describe, and decide nothing.")
    return "\n".join(lines)


def _verdicts(comparison: Comparison, task: TaskOutcome) -> str:
    verdicts = say.verdicts_of(comparison, task)
    lines = [wrapped([verdict.sentence], "* " if verdict.claim else "- ", "  ") for verdict in verdicts]
    return "\n".join(lines)


def _about(task: TaskOutcome) -> str:
    title = f"{task.name}: {write.metric_with_unit(task)}, {task.better} is better"
    return wrapped([", ".join(filter(None, [title, write.mark(task)]))])


def _result_columns(task: TaskOutcome) -> list[Row]:
    """Give what each arm reached: the primary metric with its spread, the train split, who solved, the others."""
    held_out = [say.metric_spread(arm, "held-out", task.metric) for arm in task.arms]
    train = [say.metric_spread(arm, "train", task.metric) for arm in task.arms]
    places = numbers.places_for([*held_out, *train])
    columns: list[Row] = [
        ["held-out", *(numbers.plus_minus(spread, places) for spread in held_out)],
        ["train", *(numbers.fixed(spread.mean if spread else None, places) for spread in train)],
    ]
    if task.solved_at is not None:
        results = [result for arm in task.arms if (result := say.solving(task, arm)) is not None]
        columns.append(["solved", *map(write.solved_in_words, results)])
        columns.append(["median steps", *map(write.steps_in_words, results)])
    for name in say.other_metrics(task):
        spreads = [say.metric_spread(arm, "held-out", name) for arm in task.arms]
        digits = numbers.places_for(spreads)
        columns.append([write.metric_words(name), *(numbers.fixed(s.mean if s else None, digits) for s in spreads)])
    return columns


def _notes(task: TaskOutcome) -> str:
    if not task.arms:
        return "  No arm was run."
    notes = [f"Means over seeds; {write.SPREAD_IS}."]
    if others := say.other_metrics(task):
        notes.append(f"{', '.join(map(write.metric_words, others)).capitalize()}: held-out, without claims.")
    if say.nobody_solved(task):
        notes.append("Not solved by any arm in most of its runs: they are not ranked.")
    return wrapped([*notes, write.fixed_models(task), *write.failures(task)], "  ")


def _by_difficulty(task: TaskOutcome, labels: Sequence[str]) -> str:
    """Set the primary metric by difficulty, arms side by side; nothing where no run was scored by difficulty."""
    ats = say.probed_at(task)
    if not ats:
        return ""
    of = Difficulties.of(ats)
    names = [of.in_words, *(" × ".join(map(written, at.values())) for at in ats)]
    by_arm = [[say.probe_spread(arm, at) for at in ats] for arm in task.arms]
    places = numbers.places_for((spread for spreads in by_arm for spread in spreads), most=3)
    columns = [
        [label, *(numbers.plus_minus(spread, places) for spread in spreads)]
        for label, spreads in zip(labels, by_arm, strict=True)
    ]
    if _room(columns) < max(map(len, names)):
        columns = [
            [label, *(numbers.fixed(spread.mean if spread else None, places) for spread in spreads)]
            for label, spreads in zip(labels, by_arm, strict=True)
        ]
    said = f"{task.name} by difficulty: {write.metric_with_unit(task)}, held-out, not tested"
    return "\n".join([wrapped([said]), *_aligned(names, columns)])


def _cost_columns(task: TaskOutcome) -> list[Row]:
    """Give what each arm costs on the task, seconds a step as a ratio to the baseline's."""
    costs = [arm.cost for arm in task.arms]
    base = costs[0].seconds_per_step
    return [
        ["d_ff", *(numbers.whole(cost.d_ff) for cost in costs)],
        ["parameters", *(numbers.whole(cost.parameters) for cost in costs)],
        ["FLOPs/tok", *(numbers.whole(cost.flops_per_token) for cost in costs)],
        ["cache bytes", *(numbers.whole(cost.cache_bytes) for cost in costs)],
        ["step", *(write.step_in_words(arm) for arm in task.arms)],
        ["ratio", *(numbers.times(say.ratio(cost.seconds_per_step, base)) for cost in costs)],
        ["kernel", *(elided(cost.kernel or numbers.ABSENT, 18) for cost in costs)],
    ]


def _room(columns: Sequence[Row]) -> int:
    """Give how many letters the columns leave for a label."""
    return TERMINAL - len(GAP) - sum(max(map(len, column)) + len(GAP) for column in columns)


def _aligned(labels: Row, columns: Sequence[Row]) -> list[str]:
    """Set columns beside the labels, numbers to the right; nothing where there are no columns."""
    if not columns:
        return []
    first, widths = max(map(len, labels)), [max(map(len, column)) for column in columns]
    lines = []
    for label, *cells in zip(labels, *columns, strict=True):
        right = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        lines.append(GAP + GAP.join([label.ljust(first), *right]))
    return lines
