"""What a plan can claim, said before it runs: the number of tests, the level, the smallest effect, the order test.

Nothing here depends on results, so a dry run may print all of it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from headstock.comparison.statistics.hypotheses import contrasts, tested
from headstock.comparison.statistics.power import FEWEST_SEEDS, is_exploratory, seeds_to_order, smallest_effect
from headstock.comparison.statistics.sentences import listed, significant
from headstock.comparison.statistics.testing import FAMILY_LEVEL, level_of_look, order_depth, order_p

OrderReach = Literal["alone", "after others", "never"]


@dataclass(frozen=True)
class Reach:
    """What a plan can claim.

    `level` is the family-wise level of this look, `first_level` that of Holm's first step. `smallest_effect` is in
    spreads: standard deviations, from seed to seed, of the difference between two arms; None with a single seed.
    `order` says how a difference in steps to solve can be claimed where two arms both solve a task: alone, only after
    `order_after` other tests of the family were claimed, or never; None where no task can be solved.
    """

    seeds: int
    tests: int
    look: int
    level: float
    first_level: float
    smallest_effect: float | None
    exploratory: bool
    order: OrderReach | None
    order_after: int | None
    sentences: tuple[str, ...]


def what_can_be_claimed(
    labels: Sequence[str],
    floors: Collection[str],
    tasks: Mapping[str, bool],
    seeds: int,
    look: int = 1,
    alpha: float = FAMILY_LEVEL,
    fixed: Collection[str] = (),
) -> Reach:
    """Say what a plan of arms (the first is the baseline), tasks (by name: can it be solved?) and seeds can claim.

    fixed: arms that are scored and not trained. Of two of them no test is made, and none costs the others anything.
    """
    asked = contrasts(labels, floors)
    pairs = tested(asked, fixed)
    tests = len(pairs) * len(tasks)
    level = level_of_look(look, alpha)
    if tests == 0:
        said = _nothing(asked if tasks else [])
        return Reach(seeds, 0, look, level, level, None, True, None, None, said)
    effect = smallest_effect(seeds, tests, look, alpha=alpha) if seeds > 1 else None
    exploratory = is_exploratory(seeds, tests, look, alpha)
    solvable = [task for task, can_be_solved in tasks.items() if can_be_solved]
    trained = [pair for pair in pairs if not set(pair) & set(fixed)]
    if not trained:  # a fixed model has no steps to solve
        solvable = []
    order, after = _order_reach(seeds, tests, level) if solvable else (None, None)
    sentences = [_family(len(pairs), len(tasks), look, level)]
    if exploratory:
        sentences.append(_no_claim(seeds, tests, look, alpha))
    elif effect is not None:
        sentences.append(
            f"With {seeds} seeds a difference of {significant(effect)} spreads (standard deviations, from seed to "
            "seed, of the difference) would be seen 8 times in 10."
        )
    if order is not None and not exploratory:
        arms = "trained arms" if len(trained) < len(pairs) else "arms"
        sentences.append(_order_sentence(arms, solvable, seeds, tests, level, after))
    if fixed:
        sentences.append(_of_fixed_models([label for label in labels if label in fixed], len(asked) - len(pairs)))
    return Reach(seeds, tests, look, level, level / tests, effect, exploratory, order, after, tuple(sentences))


def _nothing(untested: Sequence[tuple[str, str]]) -> tuple[str]:
    if not untested:
        return ("Nothing is compared: a comparison needs a second arm and a task.",)
    labels = list(dict.fromkeys(label for arm, against in untested for label in (against, arm)))
    return (
        f"Nothing is tested: {listed(labels)} are fixed models, set beside each other as the plain numbers they are: "
        f"no seeds, so no interval.",
    )


def _of_fixed_models(labels: Sequence[str], untested: int) -> str:
    are, they = ("is a fixed model", "it is") if len(labels) == 1 else ("are fixed models", "they are")
    each_other = ", and against each other without a test, which costs no other test anything" if untested else ""
    by = "by the metric alone, never by steps to solve"
    return f"{listed(labels)} {are}: {they} held against trained arms {by}{each_other}."


def _order_reach(seeds: int, tests: int, level: float) -> tuple[OrderReach, int | None]:
    """Say after how many claimed others the order test's best p-value fits Holm's step."""
    best = order_p(seeds, 0)
    after = next((fallen for fallen in range(tests) if best <= level / (tests - fallen)), None)
    if after is None:
        return "never", None
    return ("after others" if after else "alone"), after


def _family(contrasts_each: int, tasks: int, look: int, level: float) -> str:
    tests = contrasts_each * tasks
    size = f"{_count(tests, 'test')} ({_count(contrasts_each, 'contrast')} × {_count(tasks, 'task')})"
    spent = f"look {look} spends {significant(level, 3)} of the chance of a false claim"
    return f"{size}: {spent}, so the first claim needs p ≤ {significant(level / tests)}."


def _no_claim(seeds: int, tests: int, look: int, alpha: float) -> str:
    enough = max(seeds, FEWEST_SEEDS)
    while is_exploratory(enough, tests, look, alpha):
        enough += 1
    effect = smallest_effect(enough, tests, look, alpha=alpha)
    return (
        f"Exploratory: {_count(seeds, 'seed')} can reach no claim here. {enough} seeds would see a difference of "
        f"{significant(effect)} spreads 8 times in 10."
    )


def _order_sentence(arms: str, solvable: Sequence[str], seeds: int, tests: int, level: float, after: int | None) -> str:
    where = f"Where two {arms} both solve {listed(solvable)}, which of them needs fewer steps"
    if after is None:
        return f"{where} cannot be claimed with {seeds} seeds: {seeds_to_order(level / tests)} could."
    agreeing = seeds - order_depth(seeds, level / (tests - after)) + 1
    agree = f"all {seeds}" if agreeing == seeds else f"{agreeing} of {seeds}"
    if after == 0:
        return f"{where} can be claimed if {agree} seeds agree."
    others = "another test has" if after == 1 else f"{after} other tests have"
    return f"{where} can be claimed if {agree} seeds agree, but only after {others} been claimed."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
