"""Simulate the verdicts of comparisons whose truth is known: false claims, power, coverage, and the limits.

    python benchmarks/verdicts.py --families 2000

The plan is the default one: softmax (baseline), differential and uniform (floor) on crossing and on text, 8 seeds,
hence six tests. A family counts as a false claim when any verdict claims a difference that is not there. Results
stand in docs/statistics.md. (Not named statistics.py: a script's folder comes first on the import path, and torch
imports the standard module of that name.)
"""

import argparse
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstock.comparison.statistics.hypotheses import ArmResult, TaskResult, Verdict
from headstock.comparison.statistics.power import smallest_effect
from headstock.comparison.statistics.testing import OrderTest, PairedT, level_of_look
from headstock.comparison.statistics.verdicts import judge

Values = NDArray[np.float64]
"""One number for every arm (rows) and seed (columns)."""

LABELS = ("softmax", "differential", "uniform")
TESTS = 6
FEW = 5
LOOKS = (8, 12, 16, 24)
BUDGET = 600
EVALUATED_EVERY = 20


@dataclass(frozen=True)
class Draw:
    """One imagined comparison: the metric on two tasks and, where the first can be solved, the steps to solve."""

    first: Values
    text: Values
    resolution: float = 1e-6
    steps: Values | None = None  # nan: not solved

    def tasks(self, seeds: int) -> list[TaskResult]:
        """Give the first `seeds` seeds as the plan's tasks."""
        solved_at = None if self.steps is None else 0.99
        crossing = TaskResult(
            "crossing", "accuracy", "", "higher", solved_at, BUDGET, self.resolution, self._arms(self.first, seeds)
        )
        text = TaskResult("text", "bits", "bits per byte", "lower", None, BUDGET, 1e-6, self._arms(self.text, seeds))
        return [crossing, text]

    def _arms(self, values: Values, seeds: int) -> list[ArmResult]:
        return [
            ArmResult(label, label == "uniform", self._row(values, i, seeds), self._steps(i, seeds))
            for i, label in enumerate(LABELS)
        ]

    def _row(self, values: Values, arm: int, seeds: int) -> dict[int, float | None]:
        return {seed: float(values[arm, seed]) for seed in range(seeds)}

    def _steps(self, arm: int, seeds: int) -> dict[int, int | None]:
        if self.steps is None:
            return {}
        row = self.steps[arm]
        return {seed: None if math.isnan(row[seed]) else int(row[seed]) for seed in range(seeds)}


World = Callable[[np.random.Generator, int], Draw]


def with_noise(noise: Callable[[np.random.Generator, tuple[int, int]], Values]) -> World:
    """Give a world in which arms share a seed's difficulty and differ by independent noise of this shape."""

    def draw(rng: np.random.Generator, seeds: int) -> Draw:
        first, text = (3 * rng.normal(size=seeds) + noise(rng, (3, seeds)) for _ in range(2))
        return Draw(first, text)

    return draw


def few_items(rng: np.random.Generator, seeds: int) -> Draw:
    """Accuracy over 50 items: many ties."""
    right = rng.binomial(50, rng.uniform(0.6, 0.98, size=seeds), size=(3, seeds)) / 50
    return Draw(right, rng.normal(size=(3, seeds)), resolution=1 / 50)


def all_or_chance(rng: np.random.Generator, seeds: int) -> Draw:
    """Every run either finds the solution or stays at chance, by the toss of a coin."""
    return Draw(np.where(rng.random((3, seeds)) < 0.5, 1.0, 0.5), rng.normal(size=(3, seeds)), resolution=1e-3)


def solving(chance: float) -> World:
    """Give a world in which runs solve the first task with this chance, at a step that depends on seed and luck."""

    def draw(rng: np.random.Generator, seeds: int) -> Draw:
        solved = rng.random((3, seeds)) < chance
        steps = 300 + 80 * rng.normal(size=seeds) + 60 * rng.normal(size=(3, seeds))
        steps = np.clip(np.ceil(steps / EVALUATED_EVERY) * EVALUATED_EVERY, EVALUATED_EVERY, BUDGET)
        accuracy = np.where(solved, 1.0, rng.uniform(0.4, 0.9, size=(3, seeds)))
        return Draw(accuracy, rng.normal(size=(3, seeds)), resolution=1e-3, steps=np.where(solved, steps, np.nan))

    return draw


def one_of_two(rng: np.random.Generator, seeds: int) -> Draw:
    """The worst case for t: on each seed exactly one of two arms, either one, solves the task (uniform copies one)."""
    winner = rng.random(seeds) < 0.5
    rows = np.where(np.stack([winner, ~winner, winner]), 1.0, 0.5)
    return Draw(rows, rng.normal(size=(3, seeds)), resolution=1e-3, steps=np.where(rows == 1.0, 300.0, np.nan))


def floor_is_worse(world: World) -> World:
    """Give the same world with the uniform average far behind: only the other two can be told apart falsely."""

    def draw(rng: np.random.Generator, seeds: int) -> Draw:
        alike = world(rng, seeds)
        behind = np.array([[0.0], [0.0], [30.0]])
        steps = None if alike.steps is None else np.where(behind > 0, np.nan, alike.steps)
        first = alike.first - behind if steps is None else np.where(behind > 0, 0.5, alike.first)
        return Draw(first, alike.text + behind, alike.resolution, steps)

    return draw


def seed_scaled(rng: np.random.Generator, shape: tuple[int, int]) -> Values:
    """Noise whose size depends on the seed."""
    return np.exp(rng.normal(size=shape[1])) * rng.normal(size=shape)


even = with_noise(lambda rng, shape: rng.normal(size=shape))

EXCHANGEABLE: dict[str, World] = {
    "normal": even,
    "heavy tails (t, 2 d.f.)": with_noise(lambda rng, shape: rng.standard_t(2, size=shape)),
    "skewed noise (log-normal)": with_noise(lambda rng, shape: rng.lognormal(size=shape)),
    "noise that grows with the seed": with_noise(seed_scaled),
    "accuracy over 50 items, ties": few_items,
    "all or chance": all_or_chance,
    "solved by 95 % of runs, steps tie": solving(0.95),
    "solved by 60 % of runs": solving(0.6),
    "exactly one of two solves": one_of_two,
    "normal, floor far behind": floor_is_worse(even),
    "solved by 95 %, floor far behind": floor_is_worse(solving(0.95)),
}


def unequal(second: Callable[[np.random.Generator, int], Values]) -> World:
    """Give a world of equal means where differential's noise is of another shape than the others'."""

    def draw(rng: np.random.Generator, seeds: int) -> Draw:
        def arms() -> Values:
            return np.stack([rng.normal(size=seeds), second(rng, seeds), rng.normal(size=seeds)])

        return Draw(arms(), arms())

    return draw


def collapsing(rng: np.random.Generator, seeds: int) -> Values:
    """One run in ten collapses by 10; the others are better by 1.1, so that the mean is even."""
    return np.where(rng.random(seeds) < 0.1, -10.0, 10.0 / 9) + 0.5 * rng.normal(size=seeds)


def failing_when_bad(rng: np.random.Generator, seeds: int) -> Values:
    """The worst quarter of runs (the metric's high side) gives no number at all."""
    values = rng.normal(size=seeds)
    return np.where(values > 0.6745, np.nan, values)


UNEQUAL: dict[str, World] = {
    "spreads 1 and 5, both normal": unequal(lambda rng, seeds: 5 * rng.normal(size=seeds)),
    "normal and exponential": unequal(lambda rng, seeds: rng.exponential(size=seeds) - 1),
    "normal and exponential × 5": unequal(lambda rng, seeds: 5 * (rng.exponential(size=seeds) - 1)),
    "normal and log-normal × 5": unequal(lambda rng, seeds: 5 * (rng.lognormal(size=seeds) - math.exp(0.5))),
    "one run in ten collapses": unequal(collapsing),
    "the worst quarter fails": unequal(failing_when_bad),
}


def false_claim(verdict: Verdict, world: str) -> bool:
    """Say whether a verdict claims what is not so; with the floor far behind only the other two arms are alike."""
    return verdict.claim and not ("floor far behind" in world and "uniform" in (verdict.arm, verdict.against))


def false_claims(name: str, world: World, families: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """Give the shares of families with a false claim: with few seeds, at the first look, and at any of four looks."""
    few = first = ever = 0
    for _ in range(families):
        draw = world(rng, max(LOOKS))
        found = [
            any(false_claim(verdict, name) for verdict in judge(draw.tasks(seeds), look))
            for look, seeds in enumerate(LOOKS, start=1)
        ]
        few += any(false_claim(verdict, name) for verdict in judge(draw.tasks(FEW), 1))
        first += found[0]
        ever += any(found)
    return few / families, first / families, ever / families


def text_verdict(draw: Draw, seeds: int) -> Verdict:
    """Give the verdict on differential against softmax on text."""
    sought = ("text", "differential", "softmax")
    return next(v for v in judge(draw.tasks(seeds), 1) if (v.task, v.arm, v.against) == sought)


def found_as_announced(seeds: int, announced: float, families: int, rng: np.random.Generator) -> tuple[float, float]:
    """Give the effect announced to be found with this chance, and the share of families that do find it, on text."""
    effect = smallest_effect(seeds, TESTS, power=announced)
    shift = effect * math.sqrt(2)  # the difference of two arms of spread 1 has spread √2
    found = 0
    for _ in range(families):
        draw = even(rng, seeds)
        draw.text[1] -= shift
        found += text_verdict(draw, seeds).kind == "better"
    return effect, found / families


def chance_of_what_would_be_seen(seeds: int, families: int, rng: np.random.Generator) -> float:
    """Give how often a second comparison finds what the first says "would have been seen 8 times in 10"."""
    return float(np.mean([_sees_what_was_said(seeds, rng) for _ in range(families)]))


def _sees_what_was_said(seeds: int, rng: np.random.Generator) -> bool:
    seen = None
    while seen is None:  # a false claim says nothing of what would have been seen
        seen = text_verdict(even(rng, seeds), seeds).seen
    draw = even(rng, seeds)
    draw.text[1] -= seen
    return text_verdict(draw, seeds).kind == "better"


DIFFERENCES: dict[str, tuple[Callable[[np.random.Generator, int], Values], float, float]] = {
    # drawn how, true mean, true median
    "normal": (lambda rng, n: rng.normal(size=n), 0.0, 0.0),
    "heavy tails (t, 3 d.f.)": (lambda rng, n: rng.standard_t(3, size=n), 0.0, 0.0),
    "uniform": (lambda rng, n: rng.uniform(-1, 1, size=n), 0.0, 0.0),
    "exponential": (lambda rng, n: rng.exponential(size=n), 1.0, math.log(2)),
    "log-normal": (lambda rng, n: rng.lognormal(size=n), math.exp(0.5), 1.0),
}


def coverage(shape: str, seeds: int, level: float, families: int, rng: np.random.Generator) -> tuple[float, float]:
    """Give how often the intervals of the t-test and of the order test hold the true mean and the true median."""
    draw, mean, median = DIFFERENCES[shape]
    by_t = by_order = 0
    for _ in range(families):
        values = draw(rng, seeds).tolist()
        low, high = PairedT(tuple(values), 1e-9).interval(level)
        by_t += low <= mean <= high
        low, high = OrderTest(tuple((value, value) for value in values)).interval(level)
        by_order += low <= median <= high
    return by_t / families, by_order / families


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that Markdown reads too."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    print(f"\n{title}\n")
    for row in [head, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |", flush=True)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--families", type=int, default=2000, help="simulated comparisons for every line (default 2000)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the simulation (default 1)")
    options = parser.parse_args()
    families, rng = options.families, np.random.default_rng(options.seed)
    started = time.perf_counter()

    bound = 0.05 + 2 * math.sqrt(0.05 * 0.95 / families)
    head = ["arms alike", f"{FEW} seeds", f"{LOOKS[0]} seeds", f"looks at {', '.join(map(str, LOOKS))}"]
    rows = [[name, *map(percent, false_claims(name, world, families, rng))] for name, world in EXCHANGEABLE.items()]
    table(f"False claims in a family of {TESTS} tests (bound {percent(bound)})", head, rows)

    rows = [
        [str(seeds), f"{effect:.2f}", percent(announced), percent(found)]
        for seeds in (5, 8, 10, 16)
        for announced in (0.5, 0.8, 0.95)
        for effect, found in [found_as_announced(seeds, announced, families, rng)]
    ]
    table("Planted effects", ["seeds", "effect in spreads", "announced", "found"], rows)

    rows = [[str(seeds), percent(chance_of_what_would_be_seen(seeds, families, rng))] for seeds in (5, 8, 10, 16)]
    table('What "would have been seen 8 times in 10", in a second comparison', ["seeds", "found"], rows)

    rows = [
        [shape, str(seeds), *map(percent, (1 - level, *coverage(shape, seeds, level, families, rng)))]
        for shape in DIFFERENCES
        for seeds in (5, 8, 10)
        for level in (0.05, level_of_look(1) / TESTS)
    ]
    table("Coverage of intervals", ["differences", "seeds", "nominal", "t (mean)", "order (median)"], rows)

    head[0] = "equal means, unlike arms"
    rows = [[name, *map(percent, false_claims(name, world, families, rng))] for name, world in UNEQUAL.items()]
    table("Limits: false claims where arms are not exchangeable", head, rows)
    print(f"\n{families} families a line, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
