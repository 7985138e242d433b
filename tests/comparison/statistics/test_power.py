import math

import numpy as np
import pytest
import scipy.stats

from headstock.comparison.statistics.power import (
    chance_after,
    chance_to_find,
    is_exploratory,
    seeds_for,
    seeds_for_after,
    seeds_to_order,
    smallest_effect,
    smallest_effect_after,
)
from headstock.comparison.statistics.testing import critical_t, level_of_look, order_p
from headstock.errors import UserError

FIRST_OF_SIX = level_of_look(1) / 6


@pytest.mark.parametrize("seeds", [3, 5, 8, 16, 60])
@pytest.mark.parametrize("effect", [0.0, 0.3, 1.0])
def test_power_is_that_of_the_noncentral_t_distribution(seeds, effect):
    t = critical_t(seeds, FIRST_OF_SIX)
    oracle = scipy.stats.nct(seeds - 1, effect * math.sqrt(seeds)) if effect else scipy.stats.t(seeds - 1)
    assert chance_to_find(effect, seeds, FIRST_OF_SIX) == pytest.approx(oracle.sf(t) + oracle.cdf(-t), abs=3e-5)


@pytest.mark.parametrize("look", [1, 2, 3, 6])
@pytest.mark.parametrize("seeds", [2, 3, 8, 24])
def test_the_smallest_effect_is_found_8_times_in_10(seeds, look):
    effect = smallest_effect(seeds, 6, look)
    assert chance_to_find(effect, seeds, level_of_look(look) / 6) == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize("look", [1, 2])
@pytest.mark.parametrize("effect", [0.2, 0.8, 1.6648, 3.0])
def test_the_number_of_seeds_is_the_fewest_that_see_the_effect(effect, look):
    seeds = seeds_for(effect, 6, look)
    assert smallest_effect(seeds, 6, look) <= effect < smallest_effect(seeds - 1, 6, look)


def test_a_look_more_needs_seeds_more():
    assert smallest_effect(8, 6, look=2) > smallest_effect(8, 6, look=1)
    assert seeds_for(1.0, 6, look=2) > seeds_for(1.0, 6, look=1)


@pytest.mark.parametrize("pairs", [4, 8, 16])
def test_what_would_have_been_seen_allows_for_not_knowing_the_spread(pairs):
    said = smallest_effect_after(pairs, FIRST_OF_SIX)
    assert said > smallest_effect(pairs, 6)
    rng = np.random.default_rng(0)
    shown = np.sqrt(rng.chisquare(pairs - 1, 2000) / (pairs - 1))
    found = np.mean([chance_to_find(said * spread, pairs, FIRST_OF_SIX) for spread in shown])
    assert found == pytest.approx(0.8, abs=0.02)


def test_seeds_to_add_are_the_fewest_that_see_what_is_promised():
    said = smallest_effect_after(8, FIRST_OF_SIX) / 2
    next_level = level_of_look(2) / 6
    seeds = seeds_for_after(said, 8, next_level)
    assert chance_after(said, 8, seeds, next_level) >= 0.8 > chance_after(said, 8, seeds - 1, next_level)


@pytest.mark.parametrize(("seeds", "contrary"), [(0, 0), (8, 0), (8, 3), (9, 1)])
def test_the_order_test_needs_no_fewer_seeds_than_it_says(seeds, contrary):
    more = seeds_to_order(0.001, seeds, contrary)
    assert order_p(seeds + more, contrary) <= 0.001
    assert more == 0 or order_p(seeds + more - 1, contrary) > 0.001


def test_two_seeds_or_a_plan_blind_below_four_spreads_are_exploratory():
    assert is_exploratory(2, 1)
    assert not is_exploratory(3, 1)
    assert [is_exploratory(seeds, 6) for seeds in (3, 4, 5, 8)] == [True, True, False, False]
    assert is_exploratory(8, 6, look=3)


def test_nonsense_is_refused_with_advice():
    with pytest.raises(UserError, match="two seeds"):
        smallest_effect(1, 6)
    with pytest.raises(UserError, match="second arm"):
        smallest_effect(8, 0)
    with pytest.raises(UserError, match="above 0"):
        seeds_for(0.0, 6)
    with pytest.raises(UserError, match="more than"):
        seeds_for(1e-5, 6)
    with pytest.raises(UserError, match=r"such as 0\.8"):
        smallest_effect(8, 6, power=1.0)
