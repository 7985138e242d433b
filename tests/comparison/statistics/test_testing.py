import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from headstock.comparison.statistics.testing import OrderTest, PairedT, holm, level_of_look, order_depth, order_p
from headstock.errors import UserError

differences = st.lists(st.floats(-100, 100), min_size=3, max_size=12).map(tuple)
levels = st.floats(1e-6, 0.2)
steps = st.integers(-20, 20).map(lambda tens: float(10 * tens))
one_pair = st.one_of(
    steps.map(lambda both: (both, both)),
    st.integers(1, 20).map(lambda least: (float(least), math.inf)),
    st.integers(1, 20).map(lambda least: (-math.inf, -float(least))),
    st.just((-math.inf, math.inf)),
)
bounds = st.lists(one_pair, min_size=3, max_size=16).map(tuple)


def leaves_zero_out(interval):
    low, high = interval
    return low > 0 or high < 0


@given(differences, levels)
def test_the_paired_t_test_rejects_exactly_when_its_interval_leaves_zero_out(values, level):
    test = PairedT(values, 1e-3)
    assert (test.p <= level) == leaves_zero_out(test.interval(level))


@given(differences)
def test_an_interval_at_the_level_of_p_itself_still_agrees_with_the_verdict(values):
    test = PairedT(values, 1e-3)
    assert leaves_zero_out(test.interval(test.p)) or test.p == 1
    assert not leaves_zero_out(test.interval(math.nextafter(test.p, 0)))


@given(bounds, levels)
def test_the_order_test_rejects_exactly_when_its_interval_leaves_zero_out(pairs, level):
    test = OrderTest(pairs)
    assert (test.p <= level) == leaves_zero_out(test.interval(level))
    assert test.interval(level)[0] <= test.interval(level)[1]


@pytest.mark.parametrize("seeds", [3, 5, 8, 16])
def test_the_paired_t_test_is_scipys(seeds):
    rng = np.random.default_rng(seeds)
    one, other = rng.normal(size=seeds), rng.normal(0.5, size=seeds)
    test, oracle = PairedT(tuple((one - other).tolist()), 1e-9), scipy.stats.ttest_rel(one, other)
    assert test.p == pytest.approx(oracle.pvalue, rel=1e-9)
    for level in (0.05, 0.0475 / 6):
        assert test.interval(level) == pytest.approx(tuple(oracle.confidence_interval(1 - level)), rel=1e-9)


@pytest.mark.parametrize("seeds", range(3, 20))
def test_the_order_test_is_the_exact_binomial_test(seeds):
    for contrary in range(seeds + 1):
        assert order_p(seeds, min(contrary, seeds - contrary)) == pytest.approx(
            scipy.stats.binomtest(contrary, seeds).pvalue, rel=1e-12
        )


def test_eight_seeds_in_one_order_just_pass_the_first_of_six_tests_and_seven_do_not():
    assert order_p(8, 0) == 2 / 2**8
    assert order_p(8, 0) <= level_of_look(1) / 6 < order_p(7, 0)


@given(bounds)
def test_under_the_null_no_swapping_of_names_makes_the_order_test_reject_too_often(pairs):
    # Exact, over every way in which eight seeds at most may have had their arms swapped; ties and open ends included.
    pairs = pairs[:8]
    level = 0.1
    flipped = itertools.product(*[[(low, high), (-high, -low)] for low, high in pairs])
    rejected = [OrderTest(tuple(world)).p <= level for world in flipped]
    assert sum(rejected) <= level * len(rejected)


def test_pairs_that_tie_or_are_unknown_count_against_both_directions():
    ordered = [(-40.0, -40.0)] * 8
    assert OrderTest(tuple(ordered)).p == order_p(8, 0)
    for doubtful in ((0.0, 0.0), (-math.inf, math.inf)):
        assert OrderTest((*ordered, doubtful)).p == order_p(9, 1)


def test_an_arm_that_never_solves_leaves_that_end_open():
    test = OrderTest((*[(40.0, 40.0)] * 7, (21.0, math.inf)))
    assert test.interval(0.01) == (21.0, math.inf)
    assert test.estimate == 40.0


def test_too_few_seeds_for_an_order_leave_both_ends_open():
    assert OrderTest(((1.0, 1.0),) * 5).interval(0.01) == (-math.inf, math.inf)
    assert order_depth(5, 0.01) == 0


@given(differences, levels, st.integers(-20, 20))
def test_scaling_a_metric_scales_its_interval_and_leaves_p_alone(values, level, power):
    scale = 2.0**power
    test, scaled = PairedT(values, 1e-3), PairedT(tuple(scale * d for d in values), scale * 1e-3)
    assert scaled.p == test.p
    assert scaled.interval(level) == tuple(scale * end for end in test.interval(level))


@given(differences, levels)
def test_swapping_the_arms_mirrors_the_interval(values, level):
    test, swapped = PairedT(values, 1e-3), PairedT(tuple(-d for d in values), 1e-3)
    assert swapped.p == test.p
    assert swapped.interval(level) == tuple(-end for end in reversed(test.interval(level)))


@given(bounds, levels)
def test_swapping_the_arms_mirrors_an_order(pairs, level):
    test, swapped = OrderTest(pairs), OrderTest(tuple((-high, -low) for low, high in pairs))
    assert swapped.p == test.p
    assert swapped.interval(level) == tuple(-end for end in reversed(test.interval(level)))


@pytest.mark.parametrize("values", [(0.0,) * 8, (1e-16, -2e-16, 0.0, 1e-16, 3e-16, 1e-16, 1e-16, 1e-16), (4e-4,) * 8])
def test_differences_that_are_rounding_are_no_difference(values):
    test = PairedT(values, 1e-3)
    assert (test.no_difference, test.p, test.estimate) == (True, 1.0, 0.0)
    assert not leaves_zero_out(test.interval(0.05))


def test_one_item_of_difference_on_every_seed_is_no_infinite_t():
    one_item = 1 / 200
    assert PairedT((one_item,) * 8, one_item).p == pytest.approx(2 * scipy.stats.t.sf(math.sqrt(8), 7))


def test_looks_spend_less_and_less_and_all_of_them_no_more_than_the_level():
    spent = [level_of_look(look) for look in range(1, 40)]
    assert spent[:3] == pytest.approx([0.0475, 0.002375, 0.00011875])
    assert sum(spent) == pytest.approx(0.05)
    for nothing in (0, -1):
        with pytest.raises(UserError, match="look 1"):
            level_of_look(nothing)
    with pytest.raises(UserError, match=r"0\.05"):
        level_of_look(1, alpha=5)


def adjusted(p_values):
    """Holm's adjusted p-values, by the textbook."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    result, highest = [0.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        result[index] = highest
    return result


p_values = st.lists(
    st.one_of(st.sampled_from([0.0, 0.0078125, 0.001, 0.01, 1.0]), st.floats(0, 1)), min_size=1, max_size=9
)


@given(p_values)
def test_holm_rejects_what_the_textbooks_adjusted_p_values_do(ps):
    for step, p in zip(holm(ps, 0.0475), adjusted(ps), strict=True):
        if not math.isclose(p, 0.0475, rel_tol=1e-12):
            assert step.rejected == (p <= 0.0475)


@given(p_values)
def test_each_hypothesis_stands_on_its_own_level_the_one_that_decided_it(ps):
    for step, p in zip(holm(ps, 0.0475), ps, strict=True):
        assert step.rejected == (p <= step.level)


@given(p_values, st.randoms())
def test_the_order_of_hypotheses_is_of_no_account(ps, random):
    shuffled = list(range(len(ps)))
    random.shuffle(shuffled)
    straight = holm(ps, 0.0475)
    assert holm([ps[i] for i in shuffled], 0.0475) == [straight[i] for i in shuffled]


@given(p_values, st.data())
def test_stronger_evidence_for_one_hypothesis_withdraws_no_claim(ps, data):
    which = data.draw(st.integers(0, len(ps) - 1))
    stronger = [p / 2 if i == which else p for i, p in enumerate(ps)]
    for before, after in zip(holm(ps, 0.0475), holm(stronger, 0.0475), strict=True):
        assert after.rejected >= before.rejected
