"""From results to verdicts: one family of paired tests, corrected once, each beside the interval that decided it.

The procedure is set out in docs/statistics.md. Its order matters: what is tested, and by which test, is settled by
things that do not change when two arms swap names within a seed; then all p-values of the family meet Holm's
procedure together; then words.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headstock.comparison.statistics.hypotheses import ArmResult, Kind, TaskResult, Verdict, contrasts
from headstock.comparison.statistics.power import (
    FEWEST_SEEDS,
    is_exploratory,
    seeds_for_after,
    seeds_to_order,
    smallest_effect_after,
)
from headstock.comparison.statistics.sentences import sentence
from headstock.comparison.statistics.testing import FAMILY_LEVEL, OrderTest, PairedT, Step, holm, level_of_look

__all__ = ["ArmResult", "TaskResult", "Verdict", "contrasts", "judge"]


@dataclass(frozen=True)
class Pair:
    """One seed of one contrast: the two metrics at the end, and the steps to solve (None: not solved)."""

    value: float
    value_against: float
    steps: int | None
    steps_against: int | None


@dataclass(frozen=True)
class Hypothesis:
    """One contrast on one task: that the arm and its opponent are exchangeable within a seed."""

    task: TaskResult
    arm: ArmResult
    against: ArmResult
    pairs: tuple[Pair, ...]
    dropped: tuple[int, ...]

    @property
    def fixed(self) -> dict[str, float | None]:
        """The value of each of the two arms that is a fixed model."""
        arms = [arm for arm in (self.arm, self.against) if arm.fixed]
        return {arm.label: next(map(arm.value, arm.values), None) for arm in arms}

    @property
    def solved(self) -> tuple[int, int]:
        """How many of the pairs the arm and its opponent solved."""
        arm = sum(pair.steps is not None for pair in self.pairs)
        return arm, sum(pair.steps_against is not None for pair in self.pairs)

    @property
    def both_solved(self) -> bool:
        """Whether in most pairs *both* arms solved: unlike an arm's own count, this outlives any swap within a seed.

        Never of a fixed model, which has no step at which it came to solve the task.
        """
        if self.fixed:
            return False
        both = sum(pair.steps is not None and pair.steps_against is not None for pair in self.pairs)
        return both > len(self.pairs) / 2

    @property
    def not_solved(self) -> bool:
        """Whether the task can be solved and neither arm did in most of its seeds."""
        return self.task.solved_at is not None and max(self.solved) <= len(self.pairs) / 2

    def test(self) -> PairedT | OrderTest | None:
        """Choose the test; None where nothing may be claimed whatever the numbers are."""
        if len(self.pairs) < FEWEST_SEEDS or self.not_solved:
            return None
        if self.both_solved:
            return OrderTest(tuple(step_bounds(pair, self.task.budget_steps) for pair in self.pairs))
        return PairedT(tuple(pair.value - pair.value_against for pair in self.pairs), self.task.resolution)


@dataclass(frozen=True)
class Terms:
    """What all hypotheses of a family share; `next_first_level` is the level of Holm's first step at the next look."""

    tests: int
    look: int
    next_first_level: float
    exploratory: bool


def judge(tasks: Sequence[TaskResult], look: int, alpha: float = FAMILY_LEVEL) -> list[Verdict]:
    """Give a verdict for every contrast on every task, all corrected together as one family.

    `look` is 1 for the first time that results of this plan are judged, and one more each time seeds were added after
    that. The chance of any false claim, over all contrasts, tasks and looks, stays below `alpha`. Two fixed models are
    set beside each other and not tested: they are no part of the family.
    """
    asked = [hypothesis for task in tasks for hypothesis in hypotheses(task)]
    family = [hypothesis for hypothesis in asked if len(hypothesis.fixed) < 2]
    level, next_level = level_of_look(look, alpha), level_of_look(look + 1, alpha)
    if not family:
        return [_of_fixed_models(hypothesis, 0, look) for hypothesis in asked]
    seeds = max(len(task.seeds) for task in tasks)
    terms = Terms(len(family), look, next_level / len(family), is_exploratory(seeds, len(family), look, alpha))
    tests = [hypothesis.test() for hypothesis in family]
    if terms.exploratory:
        # A plan that can claim nothing rejects nothing; what it measured stands at the level of the first step.
        steps = [Step(False, level / len(family)) for _ in family]
    else:
        # A hypothesis that may not be claimed stays with p = 1: the family's size is settled before the data.
        steps = holm([1.0 if test is None else test.p for test in tests], level)
    judged = iter([_verdict(*each, terms) for each in zip(family, tests, steps, strict=True)])
    return [
        next(judged) if len(hypothesis.fixed) < 2 else _of_fixed_models(hypothesis, terms.tests, look)
        for hypothesis in asked
    ]


def hypotheses(task: TaskResult) -> list[Hypothesis]:
    """Give every contrast of a task, paired by seed."""
    arms = {arm.label: arm for arm in task.arms}
    floors = {arm.label for arm in task.arms if arm.floor}
    return [_paired(task, arms[arm], arms[against]) for arm, against in contrasts(list(arms), floors)]


def step_bounds(pair: Pair, budget_steps: int) -> tuple[float, float]:
    """Give bounds on the arm's steps to solve minus its opponent's; one that did not solve needs budget + 1 or more."""
    earliest, latest = _when(pair.steps, budget_steps)
    earliest_against, latest_against = _when(pair.steps_against, budget_steps)
    return earliest - latest_against, latest - earliest_against


def _when(steps: int | None, budget_steps: int) -> tuple[float, float]:
    return (budget_steps + 1, math.inf) if steps is None else (steps, steps)


def _paired(task: TaskResult, arm: ArmResult, against: ArmResult) -> Hypothesis:
    pairs, dropped = [], []
    for seed in task.seeds:
        value, value_against = arm.value(seed), against.value(seed)
        if value is None or value_against is None:
            dropped.append(seed)
        else:
            steps = _solving_step(task, arm, seed, value)
            pairs.append(Pair(value, value_against, steps, _solving_step(task, against, seed, value_against)))
    return Hypothesis(task, arm, against, tuple(pairs), tuple(dropped))


def _solving_step(task: TaskResult, arm: ArmResult, seed: int, value: float) -> int | None:
    """Give the step at which a seed solved the task; the value at the end decides whether it did."""
    if not task.reaches(value):
        return None
    steps = arm.steps_to_solve.get(seed)
    return task.budget_steps if steps is None else min(steps, task.budget_steps)


def _verdict(
    hypothesis: Hypothesis,
    test: PairedT | OrderTest | None,
    step: Step,
    terms: Terms,
) -> Verdict:
    task = hypothesis.task
    interval = None if test is None or terms.exploratory else test.interval(step.level)
    verdict = Verdict(
        task=task.task,
        metric=task.metric,
        arm=hypothesis.arm.label,
        against=hypothesis.against.label,
        kind=_kind(hypothesis, test, step),
        claim=step.rejected,
        exploratory=terms.exploratory,
        estimate=None if test is None else test.estimate,
        interval=None if interval is None else (_closed(interval[0]), _closed(interval[1])),
        interval_unit="steps" if isinstance(test, OrderTest) else task.unit,
        p=1.0 if test is None else test.p,
        level=step.level,
        test=_name(hypothesis, test),
        tests=terms.tests,
        look=terms.look,
        pairs=len(hypothesis.pairs),
        dropped=hypothesis.dropped,
        solved=None if task.solved_at is None else hypothesis.solved,
        seen=None,
        more_seeds=None,
        more_seeds_see=None,
        sentence="",
    )
    if not (terms.exploratory or step.rejected):
        verdict = _with_advice(verdict, test, step.level, terms.next_first_level)
    no_difference = test is not None and test.no_difference
    return replace(verdict, sentence=sentence(verdict, no_difference, hypothesis.fixed))


def _of_fixed_models(hypothesis: Hypothesis, tests: int, look: int) -> Verdict:
    """Give two fixed models' values as they are: no seeds, so no interval and no p-value."""
    task, (value, against) = hypothesis.task, hypothesis.fixed.values()
    known = value is not None and against is not None
    difference = value - against if value is not None and against is not None else None
    if difference is not None and abs(difference) < task.resolution / 2:
        difference = 0.0
    verdict = Verdict(
        task=task.task,
        metric=task.metric,
        arm=hypothesis.arm.label,
        against=hypothesis.against.label,
        kind="fixed models",
        claim=False,
        exploratory=False,
        estimate=difference,
        interval=None,
        interval_unit=task.unit,
        p=None,
        level=None,
        test="none",
        tests=tests,
        look=look,
        pairs=int(known),
        dropped=(),
        solved=None if task.solved_at is None or not known else _each_solves(task, value, against),
        seen=None,
        more_seeds=None,
        more_seeds_see=None,
        sentence="",
    )
    return replace(verdict, sentence=sentence(verdict, difference == 0, hypothesis.fixed))


def _each_solves(task: TaskResult, *values: float | None) -> tuple[int, int]:
    first, second = (int(value is not None and task.reaches(value)) for value in values)
    return first, second


def _name(hypothesis: Hypothesis, test: PairedT | OrderTest | None) -> str:
    """Name the test; against a constant the paired t-test is the one-sample test, of the trained arm's seeds."""
    if test is None:
        return "none"
    return "t-test against a fixed value" if hypothesis.fixed else test.name


def _kind(hypothesis: Hypothesis, test: PairedT | OrderTest | None, step: Step) -> Kind:
    if step.rejected and test is not None:
        below = test.interval(step.level)[1] < 0
        lower_is_better = isinstance(test, OrderTest) or hypothesis.task.better == "lower"
        return "better" if below == lower_is_better else "worse"
    if hypothesis.pairs and hypothesis.not_solved:
        return "not solved"
    return "both solved" if hypothesis.both_solved else "not distinguishable"


def _with_advice(verdict: Verdict, test: PairedT | OrderTest | None, level: float, next_level: float) -> Verdict:
    """Add what these seeds would have seen, and how many more, judged at the next look, would see half of that."""
    match test:
        case PairedT():
            seen = smallest_effect_after(test.pairs, level)
            more = seeds_for_after(seen / 2, test.pairs, next_level) - test.pairs
            return replace(verdict, seen=seen * test.spread, more_seeds=more, more_seeds_see=seen / 2 * test.spread)
        case OrderTest():
            return replace(verdict, more_seeds=seeds_to_order(next_level, test.pairs, test.contrary))
        case None:
            return verdict


def _closed(end: float) -> float | None:
    return end if math.isfinite(end) else None
