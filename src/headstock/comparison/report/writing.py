"""What the table and the report both say, in the same sentences."""

from collections.abc import Sequence

from headstock.comparison.report.summaries import Solving, failed, fixed
from headstock.comparison.results import ArmOnTask, Comparison, TaskOutcome
from headstock.comparison.statistics.hypotheses import Verdict
from headstock.comparison.statistics.sentences import listed
from headstock.pictures.numbers import ABSENT, count, seconds

SPREAD_IS = "± is the standard deviation from seed to seed"
NOT_TRAINED = "not trained"


def basis(comparison: Comparison) -> str:
    """Say what the verdicts were corrected for, and how often the results have been looked at."""
    if not comparison.verdicts:
        return "Nothing was compared: there are no verdicts."
    tests = comparison.verdicts[0].tests
    if not tests:
        return f"Nothing was tested, for fixed models have no seeds; look {comparison.look} at these results."
    corrected = f"Corrected for {tests} tests (Holm)" if tests > 1 else "One test, so nothing to correct for"
    return f"{corrected}; look {comparison.look} at these results; {count(comparison.seeds, 'seed')} planned."


def failures(task: TaskOutcome) -> list[str]:
    """Say which runs failed and why, one sentence for each reason an arm met."""
    said = []
    for arm in task.arms:
        seeds_by_reason: dict[str, list[int]] = {}
        for cell in failed(arm):
            seeds_by_reason.setdefault((cell.reason or "no reason was recorded").strip().rstrip("."), []).append(
                cell.seed
            )
        for reason, seeds in seeds_by_reason.items():
            named = listed([str(seed) for seed in seeds])
            where = f" on {'seed' if len(seeds) == 1 else 'seeds'} {named}" if arm.trained else ""
            said.append(f"{arm.label} failed{where}: {reason}.")
    return said


def fixed_models(task: TaskOutcome) -> str:
    """Say which arms are fixed models, and that they have no spread; empty where none is."""
    labels = [arm.label for arm in fixed(task)]
    if not labels:
        return ""
    are = "is a fixed model: one run, so no ±" if len(labels) == 1 else "are fixed models: one run each, so no ±"
    return f"{listed(labels)} {are}."


def finding(verdicts: Sequence[Verdict], most: int = 3) -> str:
    """Put the verdicts on one task in a few words, for the title of a picture."""
    if not verdicts:
        return "nothing was compared"
    if any(verdict.exploratory for verdict in verdicts):
        return "exploratory, no claim"
    if len(verdicts) > most:
        claims = sum(verdict.claim for verdict in verdicts)
        return f"{claims} of {len(verdicts)} contrasts leave zero out"
    return "; ".join(_in_short(verdict) for verdict in verdicts)


def kind(verdict: Verdict) -> str:
    """Give a verdict's kind in a word or two; of what was not tested, or may claim nothing, that it is so."""
    if verdict.exploratory:
        return "exploratory"
    if verdict.kind == "fixed models":
        return "not compared" if verdict.estimate is None else verdict.kind
    return "not compared" if verdict.test == "none" and verdict.kind != "not solved" else verdict.kind


def _in_short(verdict: Verdict) -> str:
    if not verdict.claim:
        words = {
            "not solved": "not ranked",
            "both solved": "both solve it",
            "fixed models": "are fixed models, not tested",
        }.get(kind(verdict), kind(verdict))
        return f"{verdict.arm} and {verdict.against} {words}"
    if verdict.interval_unit == "steps":
        fewer = "fewer" if verdict.kind == "better" else "more"
        return f"{verdict.arm} needs {fewer} steps than {verdict.against}"
    return f"{verdict.arm} {verdict.kind} than {verdict.against}"


def metric_words(metric: str) -> str:
    """Give a metric's name as a person writes it."""
    return metric.replace("_", " ")


def metric_with_unit(task: TaskOutcome) -> str:
    """Give the primary metric and its unit, once where they are the same words."""
    words = metric_words(task.metric)
    return words if task.unit in ("", words) else f"{words} ({task.unit})"


def mark(task: TaskOutcome) -> str:
    """Say from where the task counts as solved; empty where nothing does."""
    if task.solved_at is None:
        return ""
    return f"solved at {task.solved_at:g} or {'more' if task.better == 'higher' else 'less'}"


def step_in_words(arm: ArmOnTask) -> str:
    """Write the median seconds of a training step; of a fixed model that it is not trained."""
    return seconds(arm.cost.seconds_per_step) if arm.trained else NOT_TRAINED


def solved_in_words(result: Solving) -> str:
    """Write "7 of 8", of a fixed model "yes" or "no"; nothing where no run finished."""
    if result.finished and not result.steps:
        return "yes" if result.solved else "no"
    return f"{result.solved} of {result.finished}" if result.finished else ABSENT


def steps_in_words(result: Solving) -> str:
    """Write the median steps to solve, or "not within 600"; of a fixed model that it is not trained."""
    if not result.steps:
        return NOT_TRAINED
    if result.median_steps is None:
        return f"not within {result.steps:,}" if result.finished else ABSENT
    return f"{result.median_steps:,.0f}"
