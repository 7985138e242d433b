"""What a comparison asks and what it answers: results of arms on tasks, the contrasts between them, and verdicts.

Knows nothing of runs, stores or models: a caller reads one primary metric a task, and where that task can be solved
the step at which each seed solved it, and hands them over as plain numbers.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from headstock.errors import UserError

Better = Literal["lower", "higher"]
Kind = Literal["better", "worse", "not distinguishable", "both solved", "not solved", "fixed models"]


@dataclass(frozen=True)
class ArmResult:
    """One arm on one task, seed by seed.

    `values` holds the primary metric at the end of training; None (or a value that is not finite) is a run that
    failed. `steps_to_solve` follows `steps_to_solve()`: None, or a seed left out, is a run that had not solved the
    task by its last step. A `floor` is an arm that the others are expected to beat, such as the uniform average.
    A `fixed` arm is a model that is scored and not trained: every seed gives the same value, and there are no steps.
    """

    label: str
    floor: bool
    values: Mapping[int, float | None]
    steps_to_solve: Mapping[int, int | None] = field(default_factory=dict)
    fixed: bool = False

    def value(self, seed: int) -> float | None:
        """Give the metric at the end, or None where there is no usable number (a square beyond float64 is none)."""
        value = self.values.get(seed)
        return value if value is not None and math.isfinite(value * value) else None


@dataclass(frozen=True)
class TaskResult:
    """One task of a comparison: its primary metric and every arm's results on it; the first arm is the baseline.

    `unit` follows a number in a sentence ("bits per byte", "%"). `solved_at` is the value of the metric from which
    the task counts as solved; None for a task that has no such value. `budget_steps` is the length of training.
    `resolution` is the smallest difference the metric can show, above zero: 1 / number of scored items for an
    accuracy, the rounding of a mean for a loss.
    """

    task: str
    metric: str
    unit: str
    better: Better
    solved_at: float | None
    budget_steps: int
    resolution: float
    arms: Sequence[ArmResult]

    def __post_init__(self) -> None:
        if not (self.resolution > 0 and math.isfinite(self.resolution)):
            raise UserError(
                f"the metric {self.metric!r} of {self.task} has a resolution of {self.resolution}: give the smallest "
                "difference that it can show, such as 1 / number of scored items."
            )
        _refuse_repeats([arm.label for arm in self.arms])

    @property
    def seeds(self) -> list[int]:
        """Every seed that any arm was given, in order."""
        return sorted({seed for arm in self.arms for seed in arm.values})

    def reaches(self, value: float) -> bool:
        """Say whether a value of the metric counts as solved."""
        return reaches(value, self.solved_at, self.better)


@dataclass(frozen=True)
class Verdict:
    """What may be said of one arm against another on one task. `dataclasses.asdict` of it is JSON: no nan, no infinity.

    estimate, interval   arm − against, in `interval_unit` (the metric's unit, or steps); None where nothing is
                         estimated. An end of the interval that the data leave open is None. `claim` is True exactly
                         when an interval is given and leaves zero out.
    p, level             the hypothesis' p-value, and the Holm level at which it was decided and its interval stands;
                         None of two fixed models, of which no test is made
    pairs, dropped       how many seeds were compared (of two fixed models one run each, a single pair), and those left
                         out because a run of them gave no number
    tests                how many tests the family has
    solved               how many of those pairs the arm and its opponent solved; None where the task has no such thing
    seen                 "a difference above this would have been seen 8 times in 10", in `interval_unit`
    more_seeds, more_seeds_see   this many seeds more, at the next look's level, would see a difference of this size;
                         of an order, more_seeds alone: that many would show it if all of them agreed
    """

    task: str
    metric: str
    arm: str
    against: str
    kind: Kind
    claim: bool
    exploratory: bool
    estimate: float | None
    interval: tuple[float | None, float | None] | None
    interval_unit: str
    p: float | None
    level: float | None
    test: str
    tests: int
    look: int
    pairs: int
    dropped: tuple[int, ...]
    solved: tuple[int, int] | None
    seen: float | None
    more_seeds: int | None
    more_seeds_see: float | None
    sentence: str


def contrasts(labels: Sequence[str], floors: Collection[str]) -> list[tuple[str, str]]:
    """Give the pairs (arm, against) to test: every arm against the first and against every floor, each pair once."""
    _refuse_repeats(labels)
    pairs = [(arm, labels[0]) for arm in labels[1:]]
    pairs += [(arm, floor) for floor in labels if floor in floors for arm in labels if arm != floor]
    once: dict[frozenset[str], tuple[str, str]] = {}
    for pair in pairs:
        once.setdefault(frozenset(pair), pair)
    return list(once.values())


def tested(pairs: Sequence[tuple[str, str]], fixed: Collection[str]) -> list[tuple[str, str]]:
    """Give the pairs of which a test is made: all but those of two fixed models, between which no seed makes a
    difference."""
    return [pair for pair in pairs if not fixed or not set(pair) <= set(fixed)]


def steps_to_solve(evaluations: Sequence[tuple[int, float]], solved_at: float, better: Better) -> int | None:
    """Give the first evaluation step from which the metric stays solved to the end, or None: it never came to stay.

    `evaluations` are (step, metric) in order of step. A run that reaches the mark and falls back has not solved the
    task yet.
    """
    first: int | None = None
    for step, value in evaluations:
        if not reaches(value, solved_at, better):
            first = None
        elif first is None:
            first = step
    return first


def reaches(value: float, solved_at: float | None, better: Better) -> bool:
    """Say whether a value of the metric is at the mark or beyond it; never, where there is no mark."""
    if solved_at is None:
        return False
    return value >= solved_at if better == "higher" else value <= solved_at


def _refuse_repeats(labels: Sequence[str]) -> None:
    repeated = sorted({label for label in labels if list(labels).count(label) > 1})
    if repeated:
        raise UserError(f"two arms are named {repeated[0]!r}: give each arm a name of its own.")
