"""The simulation of benchmarks/verdicts.py at a reduced size: seeds are fixed, so that these either hold or do not."""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from headstock.comparison.statistics.verdicts import judge

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "verdicts.py"
FAMILIES = 400
BOUND = 0.05 + 2 * math.sqrt(0.05 * 0.95 / FAMILIES)


@pytest.fixture(scope="module")
def simulation():
    spec = importlib.util.spec_from_file_location("simulated_verdicts", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize(
    "world",
    ["normal, floor far behind", "skewed noise (log-normal)", "accuracy over 50 items, ties", "solved by 60 % of runs"],
)
def test_arms_that_are_alike_are_seldom_told_apart_even_when_seeds_are_added_after_a_look(simulation, world):
    _, first, ever = simulation.false_claims(world, simulation.EXCHANGEABLE[world], FAMILIES, np.random.default_rng(1))
    assert first <= ever <= BOUND


def test_without_correction_or_a_price_of_looks_the_same_simulation_finds_many_false_claims(simulation):
    rng = np.random.default_rng(1)
    first = ever = 0
    for _ in range(FAMILIES // 2):
        draw = simulation.even(rng, max(simulation.LOOKS))
        looks = [min(v.p for v in judge(draw.tasks(seeds), 1)) <= 0.05 for seeds in simulation.LOOKS]
        first += looks[0]
        ever += any(looks)
    assert first / (FAMILIES // 2) > 0.12
    assert ever > 1.3 * first


@pytest.mark.parametrize("seeds", [5, 8, 16])
def test_a_planted_effect_is_found_as_often_as_announced(simulation, seeds):
    _, found = simulation.found_as_announced(seeds, 0.8, FAMILIES, np.random.default_rng(2))
    assert found == pytest.approx(0.8, abs=0.05 + 2 * math.sqrt(0.8 * 0.2 / FAMILIES))


@pytest.mark.parametrize("seeds", [5, 8])
def test_what_would_have_been_seen_is_seen_by_a_second_comparison(simulation, seeds):
    found = simulation.chance_of_what_would_be_seen(seeds, FAMILIES, np.random.default_rng(3))
    assert found == pytest.approx(0.8, abs=0.05 + 2 * math.sqrt(0.8 * 0.2 / FAMILIES))


def test_intervals_cover_what_is_true_as_often_as_they_say(simulation):
    by_t, by_order = simulation.coverage("normal", 8, 0.05, 1000, np.random.default_rng(4))
    assert by_t == pytest.approx(0.95, abs=0.02)
    assert by_order >= 0.95
