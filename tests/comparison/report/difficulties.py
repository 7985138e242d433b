"""The made-up comparison once more, its runs scored by difficulty too, its models looked into."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headstock.comparison.results import ArmOnTask, Comparison, Mass, OnProbe, SpanMass
from headstock.pictures.spreads import spread_of
from tests.comparison.report.example import plain

LENGTHS = [{"length": length} for length in (16, 32, 64, 128)]
CROSSED = [{"depth": depth, "length": length} for depth in (0, 0.25, 0.5, 0.75, 1.0) for length in (32, 64)]
ORDERS = [{"order": order} for order in ("random", "alternating", "grouped")]
UNIFORM = {"answer": 0.05, "noise": 0.8, "elsewhere": 0.15}


def probes(ats: Sequence[dict[str, Any]], label: str, seeds: int, best: float) -> list[OnProbe]:
    """Figures that fall from the first difficulty to the last, a little apart from seed to seed."""
    rng = random.Random(f"{label} {len(ats)}")
    found = []
    for place, at in enumerate(ats):
        values = [max(0.0, min(1.0, best - 0.08 * place + rng.gauss(0, 0.02))) for _ in range(seeds)]
        spread = spread_of(values)
        assert spread is not None
        found.append(OnProbe(at, list(values), spread.mean, spread.deviation))
    return found


def mass(arm: ArmOnTask, seeds: int) -> Mass:
    """Weights of probabilities, or of a difference that takes most of the noise away."""
    weights_are = "signed" if arm.label == "differential" else "normalised"
    spans = []
    for span, uniform in UNIFORM.items():
        shares = [uniform + 0.001 * seed for seed in range(seeds)]
        spread = spread_of(shares)
        assert spread is not None
        total = -0.02 if weights_are == "signed" and span == "noise" else spread.mean
        spans.append(SpanMass(span, list(shares), spread.mean, spread.deviation, total, uniform))
    return Mass(spans, 64, weights_are)


def with_difficulties(
    first: Sequence[dict[str, Any]] = LENGTHS, second: Sequence[dict[str, Any]] = CROSSED, seeds: int = 8
) -> Comparison:
    """Probes on both tasks, marks on the first; the uniform floor's mixer shows no weights there."""
    given = plain(seeds)
    tasks = []
    for task, ats in zip(given.tasks, (first, second), strict=True):
        arms = [
            replace(
                arm,
                probes=probes(ats, arm.label, seeds, 1.0 if arm.label != "uniform" else 0.5),
                mass=mass(arm, seeds) if task.name == "crossing" and not arm.floor else None,
            )
            for arm in task.arms
        ]
        tasks.append(replace(task, arms=arms))
    return replace(given, tasks=tasks)


def with_holes() -> Comparison:
    """Words for difficulties; one arm with no figure at one of them, another with none at all; no share to give."""
    given = with_difficulties(ORDERS, CROSSED, 2)
    tasks = []
    for task in given.tasks:
        arms = list(task.arms)
        first = arms[0].probes
        arms[0] = replace(arms[0], probes=[OnProbe(first[0].at, [math.nan, None], None, None), *first[1:]])
        arms[2] = replace(arms[2], probes=[])
        if (held := arms[1].mass) is not None:
            blank = replace(held.spans[0], shares=[None, None], mean=None, deviation=None)
            arms[1] = replace(arms[1], mass=replace(held, spans=[blank, *held.spans[1:]]))
        tasks.append(replace(task, arms=arms))
    return replace(given, tasks=tasks)
