"""What the table and the report both say of an arm: means and spreads over seeds, seeds that solved, ratios.

Knows nothing of words, HTML or pictures. A number that is not there, or is not finite, is None here.
"""

import math
import statistics
from dataclasses import dataclass

from headstock.comparison.difficulties import distinct
from headstock.comparison.results import ArmOnTask, CellResult, Comparison, TaskOutcome
from headstock.comparison.statistics.hypotheses import Verdict, reaches
from headstock.pictures.spreads import Spread, finite, spread_of


@dataclass(frozen=True)
class Solving:
    """How many runs solved a task, of those that finished; `median_steps` is None where most did not within `steps`.

    Of a fixed model, which is one run, `steps` is 0 and there are none to solve.
    """

    solved: int
    finished: int
    median_steps: float | None
    steps: int


def finished(arm: ArmOnTask) -> list[CellResult]:
    """Give the runs that came to their end; of a fixed model the one run that it is with every seed."""
    return [cell for cell in runs(arm) if cell.status == "finished"]


def failed(arm: ArmOnTask) -> list[CellResult]:
    """Give the runs that did not."""
    return [cell for cell in runs(arm) if cell.status != "finished"]


def runs(arm: ArmOnTask) -> list[CellResult]:
    """Give an arm's runs, each once."""
    return arm.cells if arm.trained else arm.cells[:1]


def trained(task: TaskOutcome) -> list[ArmOnTask]:
    """Give the arms that were trained, the first of which stands for the baseline where that is a fixed model."""
    return [arm for arm in task.arms if arm.trained]


def fixed(task: TaskOutcome) -> list[ArmOnTask]:
    """Give the arms that are fixed models, scored and not trained."""
    return [arm for arm in task.arms if not arm.trained]


def metric_spread(arm: ArmOnTask, split: str, metric: str) -> Spread | None:
    """Give a metric's mean and spread over an arm's finished runs."""
    return spread_of(cell.metrics.get(split, {}).get(metric) for cell in finished(arm))


def probed_at(task: TaskOutcome) -> list[dict[str, int | float | str]]:
    """Give every difficulty that an arm of the task was scored at, in the task's order."""
    return distinct(probe.at for arm in task.arms for probe in arm.probes)


def probe_spread(arm: ArmOnTask, at: dict[str, int | float | str]) -> Spread | None:
    """Give the primary metric's mean and spread at one difficulty over an arm's runs; None where it has none."""
    return next((spread_of(probe.values) for probe in arm.probes if probe.at == at), None)


def solving_step(task: TaskOutcome, arm: ArmOnTask, cell: CellResult) -> int | None:
    """Give the step at which a run solved the task, as the verdicts count it: the value at the end says whether."""
    value = finite(cell.metrics.get("held-out", {}).get(task.metric))
    if value is None or not reaches(value, task.solved_at, task.better):
        return None
    return arm.steps if cell.steps_to_solve is None else min(cell.steps_to_solve, arm.steps)


def solving(task: TaskOutcome, arm: ArmOnTask) -> Solving | None:
    """Say how many of an arm's runs solved the task and when; None for a task that has no such thing."""
    if task.solved_at is None:
        return None
    steps = [solving_step(task, arm, cell) for cell in finished(arm)]
    solved = [step for step in steps if step is not None]
    if not arm.trained:
        return Solving(len(solved), len(steps), None, 0)
    median = statistics.median([math.inf if step is None else step for step in steps]) if steps else math.inf
    return Solving(len(solved), len(steps), finite(median), arm.steps)


def nobody_solved(task: TaskOutcome) -> bool:
    """Say whether the task can be solved and no arm did in most of its runs: its arms are not ranked."""
    results = [result for arm in task.arms if (result := solving(task, arm)) is not None]
    return any(result.finished for result in results) and all(
        result.solved * 2 <= result.finished for result in results
    )


def ratio(value: float | None, baseline: float | None) -> float | None:
    """Give value / baseline; None where either is missing or the baseline is zero."""
    value, baseline = finite(value), finite(baseline)
    return None if value is None or not baseline else finite(value / baseline)


def other_metrics(task: TaskOutcome) -> list[str]:
    """Give the metrics beside the primary one, the usual ones first, in one order."""
    usual = ["loss", "perplexity", "bits_per_byte", "accuracy"]
    known = {name for arm in task.arms for cell in arm.cells for split in cell.metrics.values() for name in split}
    return [name for name in [*usual, *sorted(known - set(usual))] if name in known and name != task.metric]


def labels_of(comparison: Comparison) -> list[str]:
    """Give every arm's label once, in the order of the plan."""
    return list(dict.fromkeys(arm.label for task in comparison.tasks for arm in task.arms))


def verdicts_of(comparison: Comparison, task: TaskOutcome) -> list[Verdict]:
    """Give the verdicts on one task."""
    return [verdict for verdict in comparison.verdicts if verdict.task == task.name]
