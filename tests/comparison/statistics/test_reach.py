import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock.comparison.statistics.power import smallest_effect
from headstock.comparison.statistics.reach import what_can_be_claimed
from headstock.comparison.statistics.verdicts import ArmResult, TaskResult, judge

ARMS, FLOORS, TASKS = ["softmax", "differential", "uniform"], {"uniform"}, {"crossing": True, "text": False}


def test_the_default_plan_says_what_it_can_claim():
    reach = what_can_be_claimed(ARMS, FLOORS, TASKS, seeds=8)
    assert (reach.tests, reach.order, reach.exploratory) == (6, "alone", False)
    assert reach.level == pytest.approx(0.0475)
    assert reach.smallest_effect == smallest_effect(8, 6)
    assert reach.sentences == (
        "6 tests (3 contrasts × 2 tasks): look 1 spends 0.0475 of the chance of a false claim, "
        "so the first claim needs p ≤ 0.0079.",
        "With 8 seeds a difference of 1.7 spreads (standard deviations, from seed to seed, of the difference) "
        "would be seen 8 times in 10.",
        "Where two arms both solve crossing, which of them needs fewer steps can be claimed if all 8 seeds agree.",
    )


@pytest.mark.parametrize(
    ("seeds", "order", "after", "said"),
    [
        (5, "never", None, "cannot be claimed with 5 seeds: 8 could."),
        (6, "after others", 5, "if all 6 seeds agree, but only after 5 other tests have been claimed."),
        (7, "after others", 3, "if all 7 seeds agree, but only after 3 other tests have been claimed."),
        (16, "alone", 0, "if 14 of 16 seeds agree."),
    ],
)
def test_a_plan_says_whether_an_order_of_steps_is_within_its_reach(seeds, order, after, said):
    reach = what_can_be_claimed(ARMS, FLOORS, TASKS, seeds)
    assert (reach.order, reach.order_after) == (order, after)
    assert reach.sentences[-1].endswith(said)


def test_without_a_task_that_can_be_solved_nothing_is_said_of_order():
    reach = what_can_be_claimed(ARMS, FLOORS, {"text": False}, seeds=8)
    assert reach.order is None
    assert len(reach.sentences) == 2


@pytest.mark.parametrize(("seeds", "enough"), [(1, 5), (2, 5), (4, 5)])
def test_a_plan_that_can_claim_nothing_says_so_and_what_would_help(seeds, enough):
    reach = what_can_be_claimed(ARMS, FLOORS, TASKS, seeds)
    assert reach.exploratory
    assert f"can reach no claim here. {enough} seeds would see" in reach.sentences[-1]


def test_a_single_arm_compares_nothing():
    reach = what_can_be_claimed(["softmax"], (), TASKS, seeds=8)
    assert (reach.tests, reach.exploratory) == (0, True)
    assert "second arm" in reach.sentences[0]


def test_what_can_be_claimed_is_json():
    for seeds in (1, 8):
        json.dumps(dataclasses.asdict(what_can_be_claimed(ARMS, FLOORS, TASKS, seeds)), allow_nan=False)


SUBSETS = st.sets(st.sampled_from(ARMS))


@given(SUBSETS, SUBSETS)
def test_a_plan_counts_the_tests_that_are_made(floors, fixed):
    arms = [ArmResult(name, name in floors, dict.fromkeys(range(8), 1.0), fixed=name in fixed) for name in ARMS]
    tasks = [
        TaskResult(task, "score", "", "higher", 0.9 if end else None, 9, 1e-3, arms) for task, end in TASKS.items()
    ]
    made = [verdict for verdict in judge(tasks, 1) if verdict.kind != "fixed models"]
    reach = what_can_be_claimed(ARMS, floors, TASKS, seeds=8, fixed=fixed)
    assert reach.tests == len(made)
    assert {verdict.tests for verdict in judge(tasks, 1)} == {reach.tests}


def test_steps_to_solve_are_in_reach_of_two_trained_arms_alone():
    beside = what_can_be_claimed(ARMS, FLOORS, TASKS, 8, fixed={"softmax"})
    assert "Where two trained arms both solve crossing" in beside.sentences[2]
    assert beside.sentences[3] == (
        "softmax is a fixed model: it is held against trained arms by the metric alone, never by steps to solve."
    )
    alone = what_can_be_claimed(["softmax", "differential"], (), TASKS, 8, fixed={"softmax"})
    assert (alone.tests, alone.order) == (2, None)
    both = what_can_be_claimed(ARMS, FLOORS, TASKS, 8, fixed={"softmax", "uniform"})
    assert (both.tests, both.order) == (4, None)
    assert both.sentences[-1].startswith("softmax and uniform are fixed models: they are held against trained arms")
    assert both.sentences[-1].endswith("and against each other without a test, which costs no other test anything.")


def test_a_plan_of_fixed_models_alone_tests_nothing():
    reach = what_can_be_claimed(["one", "other"], (), TASKS, 8, fixed={"one", "other"})
    assert (reach.tests, reach.exploratory) == (0, True)
    assert reach.sentences == (
        "Nothing is tested: one and other are fixed models, set beside each other as the plain numbers they are: no "
        "seeds, so no interval.",
    )
