"""What a number of seeds can see: the power of the paired t-test, and the number of seeds that the order test needs.

Effects are in *spreads*: units of the standard deviation, from seed to seed, of the difference between two arms.
Power is computed for normal differences at the level of Holm's first step, so that it holds whatever becomes of the
family's other tests.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtri, ndtr

from headstock.comparison.statistics.testing import FAMILY_LEVEL, critical_t, level_of_look, order_p
from headstock.errors import UserError

POWER = 0.8
"""The chance, "8 times in 10", with which an effect must be found to count as one that would be seen."""

FEWEST_SEEDS = 3
"""With fewer pairs than this no claim is made."""

LARGEST_EFFECT = 4.0
"""A plan that sees only effects above this many spreads is exploratory: it can reach no claim worth the name."""

MOST_SEEDS = 1_000_000


def smallest_effect(seeds: int, tests: int, look: int = 1, power: float = POWER, alpha: float = FAMILY_LEVEL) -> float:
    """Give the smallest effect, in spreads, that is found with probability `power` at the first step of `tests`."""
    return smallest_effect_at(seeds, level_of_look(look, alpha) / _at_least_one(tests), power)


@lru_cache(maxsize=4096)
def smallest_effect_at(seeds: int, level: float, power: float = POWER) -> float:
    """Give the smallest effect, in spreads, that two or more seeds find with probability `power` at `level`."""
    if seeds < 2:
        raise UserError(f"{seeds} seed has no spread: the smallest effect needs two seeds or more.")
    if not level < power < 1:
        raise UserError(f"a power of {power} cannot be asked for: choose one between the level and 1, such as 0.8.")
    above = 1.0
    while chance_to_find(above, seeds, level) < power:
        above *= 2
    return float(brentq(lambda effect: chance_to_find(effect, seeds, level) - power, 0.0, above, xtol=1e-9))


def seeds_for(
    effect_in_spreads: float, tests: int, look: int = 1, power: float = POWER, alpha: float = FAMILY_LEVEL
) -> int:
    """Give the fewest seeds (at least `FEWEST_SEEDS`) that find such an effect with probability `power`."""
    if not effect_in_spreads > 0:
        raise UserError(f"an effect of {effect_in_spreads} spreads cannot be looked for: give one above 0.")
    level = level_of_look(look, alpha) / _at_least_one(tests)
    return seeds_for_at(effect_in_spreads, level, power)


@lru_cache(maxsize=4096)
def seeds_for_at(effect: float, level: float, power: float = POWER) -> int:
    """Give the fewest seeds, at least `FEWEST_SEEDS`, that find `effect` spreads with this power at `level`."""
    return _fewest_seeds(lambda seeds: chance_to_find(effect, seeds, level) >= power, effect)


def _fewest_seeds(suffices: Callable[[int], bool], effect: float) -> int:
    """Give the fewest seeds, from `FEWEST_SEEDS` on, that suffice; more seeds than these suffice too."""
    enough = FEWEST_SEEDS
    while not suffices(enough):
        enough *= 2
        if enough > MOST_SEEDS:
            raise UserError(f"an effect of {effect} spreads would take more than {MOST_SEEDS:,} seeds.")
    too_few = max(enough // 2, FEWEST_SEEDS - 1)
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if suffices(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def chance_to_find(effect: float, seeds: int, level: float) -> float:
    """Give the power of the two-sided paired t-test of `seeds` normal differences whose mean is `effect` spreads.

    The noncentral t distribution by its definition: averaged over the estimated spread, the chance that a normal mean
    lies beyond it. (Library routines for that distribution give nan far out, where late looks are.)
    """
    shift = effect * math.sqrt(seeds)
    edge = critical_t(seeds, level) * _estimated_spreads(seeds)
    return float(np.mean(ndtr(shift - edge) + ndtr(-shift - edge)))


@lru_cache(maxsize=4096)
def smallest_effect_after(pairs: int, level: float, power: float = POWER) -> float:
    """Give the smallest effect that seeds already run would have found, in units of the spread that they showed.

    It is larger than `smallest_effect_at`, which is in true spreads: so many times the *shown* spread is found with
    probability `power` on average over what the seeds might have shown.
    """
    above = 1.0
    while chance_after(above, pairs, pairs, level) < power:
        above *= 2
    return float(brentq(lambda effect: chance_after(effect, pairs, pairs, level) - power, 0.0, above, xtol=1e-6))


@lru_cache(maxsize=4096)
def seeds_for_after(effect: float, shown_by: int, level: float, power: float = POWER) -> int:
    """Give the fewest seeds that find `effect`, in units of the spread that `shown_by` seeds showed, at `level`."""
    return _fewest_seeds(lambda seeds: chance_after(effect, shown_by, seeds, level) >= power, effect)


def chance_after(effect: float, shown_by: int, seeds: int, level: float) -> float:
    """Give the power of `seeds` for `effect` × the spread that `shown_by` seeds show, averaged over what they show."""
    shown = _estimated_spreads(shown_by)[::8]
    shifts = effect * math.sqrt(seeds) * shown[:, None]
    edges = critical_t(seeds, level) * _estimated_spreads(seeds)[None, ::4]
    return float(np.mean(ndtr(shifts - edges) + ndtr(-shifts - edges)))


@lru_cache(maxsize=1024)
def _estimated_spreads(seeds: int) -> NDArray[np.float64]:
    """Give 2,004 equally likely values of the spread that `seeds` differences of spread 1 would show."""
    upper_tail = (np.arange(2004) + 0.5) / 2004
    spreads: NDArray[np.float64] = np.sqrt(chdtri(seeds - 1, upper_tail) / (seeds - 1))
    return spreads


def seeds_to_order(level: float, seeds: int = 0, contrary: int = 0) -> int:
    """Give how many seeds more the order test needs at `level` if they all agree and `contrary` so far do not."""
    more = 0
    while order_p(seeds + more, contrary) > level:
        more += 1
    return more


def is_exploratory(seeds: int, tests: int, look: int = 1, alpha: float = FAMILY_LEVEL) -> bool:
    """Say whether a plan can reach no claim: fewer than three seeds, or blind below four spreads."""
    return seeds < FEWEST_SEEDS or smallest_effect(seeds, tests, look, alpha=alpha) > LARGEST_EFFECT


def _at_least_one(tests: int) -> int:
    if tests < 1:
        raise UserError("nothing is tested: a comparison needs a second arm and a task.")
    return tests
