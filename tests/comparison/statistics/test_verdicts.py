import dataclasses
import json
import math

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from headstock.comparison.statistics.hypotheses import ArmResult, TaskResult, contrasts, steps_to_solve
from headstock.comparison.statistics.testing import level_of_look
from headstock.comparison.statistics.verdicts import judge
from headstock.errors import UserError

BUDGET = 600


def arm(label, values, steps=(), floor=False):
    return ArmResult(label, floor, dict(enumerate(values)), dict(enumerate(steps)))


def text(*arms, better="lower", resolution=1e-3):
    return TaskResult("text", "bits", "bits per byte", better, None, BUDGET, resolution, arms)


def crossing(*arms):
    return TaskResult("crossing", "accuracy", "", "higher", 0.99, BUDGET, 1e-3, arms)


def solver(label, steps, floor=False):
    """An arm that solves crossing at these steps (None: stays at chance)."""
    return arm(label, [0.5 if step is None else 1.0 for step in steps], steps, floor)


seeds = st.shared(st.integers(3, 10), key="seeds")


@st.composite
def arms(draw, labels=("softmax", "differential", "uniform")):
    n = draw(seeds)
    cell = st.one_of(st.floats(-10, 10), st.integers(0, 4).map(float), st.just(None), st.just(math.nan))
    return [arm(label, draw(st.lists(cell, min_size=n, max_size=n)), floor=label == "uniform") for label in labels]


@st.composite
def solvers(draw, labels=("softmax", "differential", "uniform")):
    n = draw(seeds)
    step = st.one_of(st.integers(1, 30).map(lambda k: 20 * k), st.sampled_from([20, 40]), st.none())
    return [solver(label, draw(st.lists(step, min_size=n, max_size=n)), label == "uniform") for label in labels]


@given(arms(), solvers(), st.integers(1, 3))
def test_a_verdict_claims_exactly_when_its_interval_leaves_zero_out(words, nouns, look):
    for verdict in judge([crossing(*nouns), text(*words)], look):
        low, high = verdict.interval or (None, None)
        assert verdict.claim == ((low is not None and low > 0) or (high is not None and high < 0))
        assert verdict.claim == (verdict.kind in ("better", "worse"))
        assert not (verdict.claim and (verdict.exploratory or verdict.p > verdict.level))


@given(arms(), solvers(), st.integers(1, 3))
def test_every_verdict_is_json_and_a_sentence(words, nouns, look):
    for verdict in judge([crossing(*nouns), text(*words)], look):
        json.dumps(dataclasses.asdict(verdict), allow_nan=False)
        assert verdict.sentence.endswith(".")
        assert not any(odd in verdict.sentence for odd in ("None", "nan", "inf", "-", "  "))


MIRROR = {"better": "worse", "worse": "better"}


@given(arms(("softmax", "differential")), solvers(("softmax", "differential")))
def test_swapping_two_arms_mirrors_every_verdict(words, nouns):
    straight = judge([crossing(*nouns), text(*words)], 1)
    swapped = judge([crossing(*reversed(nouns)), text(*reversed(words))], 1)
    for one, other in zip(straight, swapped, strict=True):
        assert other.kind == MIRROR.get(one.kind, one.kind)
        assert (other.p, other.level, other.seen, other.more_seeds) == (one.p, one.level, one.seen, one.more_seeds)
        assert (other.estimate is None) == (one.estimate is None)
        assert other.estimate is None or other.estimate == -one.estimate
        assert (other.interval is None) == (one.interval is None)
        if one.interval and other.interval:
            assert other.interval == tuple(None if end is None else -end for end in reversed(one.interval))


@given(arms(), solvers(), st.randoms())
def test_the_order_of_tasks_and_arms_changes_no_verdict(words, nouns, random):
    def by_name(verdicts):
        return {(v.task, frozenset((v.arm, v.against))): (v.p, v.level, v.claim, v.pairs) for v in verdicts}

    straight = judge([crossing(*nouns), text(*words)], 1)
    others = words[1:]
    random.shuffle(others)
    assert by_name(judge([text(words[0], *others), crossing(*nouns)], 1)) == by_name(straight)


@given(arms())
def test_turning_a_metric_upside_down_changes_no_verdict(words):
    mirrored = [
        dataclasses.replace(a, values={s: None if v is None else -v for s, v in a.values.items()}) for a in words
    ]
    for one, other in zip(judge([text(*words)], 1), judge([text(*mirrored, better="higher")], 1), strict=True):
        assert (one.kind, one.p, one.claim) == (other.kind, other.p, other.claim)


SOFTMAX = [2.31, 2.28, 2.35, 2.30, 2.33, 2.29, 2.32, 2.34]
BETTER = [2.21, 2.19, 2.24, 2.21, 2.22, 2.20, 2.21, 2.25]


def test_a_clear_difference_is_claimed_by_the_paired_t_test_of_scipy():
    verdict, *_ = judge([text(arm("softmax", SOFTMAX), arm("differential", BETTER))], 1)
    oracle = scipy.stats.ttest_rel(BETTER, SOFTMAX)
    assert (verdict.kind, verdict.test, verdict.pairs, verdict.tests) == ("better", "paired t-test", 8, 1)
    assert verdict.p == pytest.approx(oracle.pvalue)
    assert verdict.interval == pytest.approx(tuple(oracle.confidence_interval(1 - level_of_look(1))))
    assert verdict.estimate == pytest.approx(sum(BETTER) / 8 - sum(SOFTMAX) / 8)


def test_the_whole_family_pays_for_every_contrast_on_every_task():
    three = [arm("softmax", SOFTMAX), arm("differential", BETTER), arm("uniform", [3.0] * 8, floor=True)]
    verdicts = judge([crossing(*three), text(*three)], 1)
    assert [(v.task, v.arm, v.against) for v in verdicts] == [
        (task, *pair)
        for task in ("crossing", "text")
        for pair in (("differential", "softmax"), ("uniform", "softmax"), ("differential", "uniform"))
    ]
    assert {v.tests for v in verdicts} == {6}


def test_arms_are_tested_against_the_baseline_and_every_floor_once():
    assert contrasts(["a", "b"], {"b"}) == [("b", "a")]
    assert contrasts(["a", "b", "c"], {"a"}) == [("b", "a"), ("c", "a")]
    assert contrasts(["a", "b", "c", "d"], {"d"}) == [("b", "a"), ("c", "a"), ("d", "a"), ("b", "d"), ("c", "d")]
    assert contrasts(["a"], ()) == contrasts([], ()) == []
    assert judge([text(arm("a", SOFTMAX))], 1) == judge([], 1) == []


def test_arms_that_agree_on_every_seed_show_no_difference():
    verdict, *_ = judge([text(arm("softmax", SOFTMAX), arm("differential", [v + 1e-16 for v in SOFTMAX]))], 1)
    assert (verdict.kind, verdict.p, verdict.estimate, verdict.claim) == ("not distinguishable", 1.0, 0.0, False)
    assert "no difference in any of 8 seeds" in verdict.sentence


@pytest.mark.parametrize("missing", [None, math.nan, math.inf, 1e200])
def test_a_seed_without_a_number_is_left_out_and_named(missing):
    verdict, *_ = judge([text(arm("softmax", SOFTMAX), arm("differential", [*BETTER[:3], missing, *BETTER[4:]]))], 1)
    assert (verdict.pairs, verdict.dropped, verdict.claim) == (7, (3,), True)
    assert verdict.sentence.endswith("(7 seeds). Seed 3 is left out: a run of it gave no number.")


def test_too_few_pairs_claim_nothing_and_still_count_in_the_family():
    few = [*BETTER[:2], *[None] * 6]
    verdicts = judge([text(arm("softmax", SOFTMAX), arm("differential", few), arm("linear", BETTER))], 1)
    first = verdicts[0]
    assert (first.kind, first.claim, first.p, first.pairs) == ("not distinguishable", False, 1.0, 2)
    assert "2 seeds gave both a result, and a claim needs 3 or more" in verdicts[0].sentence
    assert verdicts[1].claim
    assert {v.tests for v in verdicts} == {2}


def test_a_task_that_neither_arm_solved_is_not_ranked_whatever_the_averages_are():
    low, high = (
        arm("softmax", [0.50 + s / 1000 for s in range(8)]),
        arm("differential", [0.90 + s / 999 for s in range(8)]),
    )
    verdict, *_ = judge([crossing(low, high)], 1)
    assert (verdict.kind, verdict.claim, verdict.p, verdict.interval) == ("not solved", False, 1.0, None)


def test_an_arm_that_solves_is_better_by_its_metric_than_one_that_does_not():
    verdict, *_ = judge([crossing(solver("softmax", [None] * 8), solver("differential", [300] * 8))], 1)
    assert (verdict.kind, verdict.test, verdict.solved) == ("better", "paired t-test", (8, 0))


def test_two_arms_that_solve_are_compared_by_the_order_of_their_steps():
    slow, fast = solver("softmax", [400, 380, 460, 420, 400, 440, 380, 500]), solver("differential", [300] * 8)
    verdict, *_ = judge([crossing(slow, fast)], 1)
    assert (verdict.kind, verdict.test, verdict.interval_unit) == ("better", "exact sign test of order", "steps")
    assert verdict.p == scipy.stats.binomtest(8, 8).pvalue
    assert (verdict.interval, verdict.estimate) == ((-200, -80), -110)


def test_two_arms_that_solve_in_no_certain_order_are_both_solved():
    one, other = solver("softmax", [400] * 8), solver("differential", [300] * 4 + [500] * 4)
    verdict, *_ = judge([crossing(one, other)], 1)
    assert (verdict.kind, verdict.claim, verdict.p) == ("both solved", False, 1.0)
    assert verdict.more_seeds is not None
    assert verdict.more_seeds > 0


def test_a_run_that_never_solved_is_later_than_any_that_did():
    one, other = solver("softmax", [600] * 5 + [None] * 3), solver("differential", [580] * 8)
    verdict, *_ = judge([crossing(one, other)], 1)
    assert (verdict.kind, verdict.interval) == ("better", (None, -20))


def test_a_run_that_never_solved_is_later_than_one_that_did_at_the_last_step():
    one, other = solver("softmax", [600] * 5 + [None] * 3), solver("differential", [580] * 5 + [600] * 3)
    verdict, *_ = judge([crossing(one, other)], 1)
    assert (verdict.kind, verdict.interval) == ("better", (None, -1))


def test_arms_that_solve_on_different_seeds_are_compared_by_the_metric():
    # Each solves 5 of 8, yet both only 2: an arm's own count changes when arms swap within a seed, "both" does not.
    one = solver("softmax", [300] * 5 + [None] * 3)
    other = solver("differential", [None] * 3 + [300] * 5)
    verdict, *_ = judge([crossing(one, other)], 1)
    assert (verdict.test, verdict.solved, verdict.kind) == ("paired t-test", (5, 5), "not distinguishable")


@given(solvers(("softmax", "differential")), st.data())
def test_swapping_arms_within_a_seed_never_changes_whether_both_solved(nouns, data):
    swapped = {s for s in nouns[0].values if data.draw(st.booleans())}

    def mixed(mine, other):
        pick = {s: other if s in swapped else mine for s in mine.values}
        return dataclasses.replace(
            mine,
            values={s: a.values[s] for s, a in pick.items()},
            steps_to_solve={s: a.steps_to_solve[s] for s, a in pick.items()},
        )

    one, other = nouns
    before, *_ = judge([crossing(one, other)], 1)
    after, *_ = judge([crossing(mixed(one, other), mixed(other, one))], 1)
    by_order = "exact sign test of order"
    assert (before.test == by_order) == (after.test == by_order)


def test_the_value_at_the_end_decides_whether_a_seed_solved():
    fell_back = arm("softmax", [0.7] * 8, [100] * 8)
    only_at_the_end = arm("differential", [1.0] * 8, [None] * 8)
    verdict, *_ = judge([crossing(fell_back, only_at_the_end)], 1)
    assert verdict.solved == (8, 0)


def test_a_task_is_solved_at_the_step_from_which_it_stays_solved():
    evaluations = [(100, 0.5), (200, 0.995), (300, 0.98), (400, 0.99), (500, 1.0)]
    assert steps_to_solve(evaluations, 0.99, "higher") == 400
    assert steps_to_solve(evaluations[:3], 0.99, "higher") is None
    assert steps_to_solve([(1, 3.0), (2, 0.1)], 0.1, "lower") == 2
    assert steps_to_solve([(1, math.nan)], 0.1, "lower") is None
    assert steps_to_solve([], 0.1, "lower") is None


def test_an_exploratory_plan_claims_nothing_however_large_the_difference():
    for n in (2, 3):
        verdicts = judge(
            [text(*[arm(name, [float(i + s / 1e3) for s in range(n)]) for i, name in enumerate("abcd")])], 1
        )
        assert all(v.exploratory and not v.claim and v.interval is None for v in verdicts)


def test_a_later_look_asks_for_more():
    differential = [value - 0.02 - 0.03 * (seed % 2) for seed, value in enumerate(SOFTMAX)]
    task = text(arm("softmax", SOFTMAX), arm("differential", differential))
    assert [judge([task], look)[0].claim for look in (1, 2, 3)] == [True, True, False]


def test_bad_input_is_refused_with_advice():
    with pytest.raises(UserError, match="name of its own"):
        text(arm("softmax", SOFTMAX), arm("softmax", BETTER))
    for resolution in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(UserError, match="smallest difference"):
            text(resolution=resolution)
    with pytest.raises(UserError, match="look 1"):
        judge([], 0)


def fixed(label, value, n=8, floor=False):
    return dataclasses.replace(arm(label, [value] * n, [0] * n, floor), fixed=True)


@given(st.lists(st.floats(-10, 10), min_size=3, max_size=10), st.floats(-10, 10))
def test_against_a_fixed_model_the_trained_arm_s_seeds_alone_are_tested(values, level):
    (verdict,) = judge([text(fixed("program", level, len(values)), arm("softmax", values), resolution=1e-9)], 1)
    assert verdict.test == "t-test against a fixed value"
    differences = [value - level for value in values]
    if max(values) - min(values) > 1e-3 and min(map(abs, differences)) > 1e-8:
        assert verdict.p == pytest.approx(scipy.stats.ttest_1samp(values, level).pvalue, rel=1e-6, abs=1e-12)


@given(solvers(), st.sampled_from([0.5, 1.0]))
def test_a_fixed_model_is_never_ahead_or_behind_by_steps(nouns, value):
    n = len(nouns[0].values)
    for order in ([fixed("program", value, n), *nouns], [*nouns, fixed("program", value, n, floor=True)]):
        for verdict in judge([crossing(*order)], 1):
            if "program" in (verdict.arm, verdict.against):
                assert verdict.interval_unit != "steps"
                assert verdict.kind != "both solved"
                assert "fewer" not in verdict.sentence


@given(arms(), solvers(), st.integers(1, 3))
def test_a_second_fixed_model_costs_the_others_nothing(words, nouns, look):
    n = len(words[0].values)
    models = [fixed("program", 1.0, n), fixed("other", 0.5, n)]

    def judged(count):
        tasks = [crossing(*models[:count], *nouns), text(*models[:count], *words)]
        tasks = [dataclasses.replace(t, arms=[dataclasses.replace(a, floor=False) for a in t.arms]) for t in tasks]
        return judge(tasks, look)

    with_both = judged(2)
    apart = [verdict for verdict in with_both if verdict.kind == "fixed models"]
    assert [(v.arm, v.against, v.p, v.level, v.interval, v.claim) for v in apart] == [
        ("other", "program", None, None, None, False)
    ] * 2
    assert [verdict for verdict in with_both if verdict.kind != "fixed models"] == judged(1)
