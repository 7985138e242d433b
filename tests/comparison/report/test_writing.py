import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock.comparison.report import writing as write
from headstock.comparison.report.summaries import Solving, spread_of
from tests.comparison.report import cases, example


@pytest.mark.parametrize(
    ("value", "written"),
    [(1.23456, "1.23"), (-0.5, "−0.50"), (-0.001, "0.00"), (1234.5, "1,234.50"), (None, "—"), (math.nan, "—")],
)
def test_numbers_have_a_real_minus_and_no_minus_zero(value, written):
    assert write.fixed(value, 2) == written


@pytest.mark.parametrize(
    ("value", "written"), [(0.0129, "12.9 ms"), (0.25, "250 ms"), (2.5, "2.50 s"), (math.inf, "—"), (None, "—")]
)
def test_a_step_is_timed_in_units_that_can_be_read(value, written):
    assert write.seconds(value) == written


def test_one_seed_has_no_spread():
    assert write.plus_minus(spread_of([1.5]), 2) == "1.50"
    assert write.plus_minus(spread_of([1.0, 2.0]), 2) == "1.50 ± 0.71"
    assert write.plus_minus(spread_of([None, math.nan]), 2) == "—"


@given(st.lists(st.one_of(st.none(), st.floats()), max_size=6))
def test_any_values_at_all_can_be_written(values):
    spread = spread_of(values)
    assert "nan" not in write.plus_minus(spread, write.places_for([spread]))


def test_an_interval_is_written_with_the_ends_that_its_sentence_says():
    for verdict in example.plain().verdicts:
        if verdict.claim and verdict.interval is not None:
            low, high = verdict.interval
            assert low is not None
            assert high is not None
            for end in write.outwards(low, high):
                assert end.lstrip("−") in verdict.sentence


@given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e6))
def test_an_interval_is_rounded_outwards(low, width):
    high = low + width
    written = [float(end.replace("−", "-").replace(",", "")) for end in write.outwards(low, high)]
    room = 1e-3 * max(abs(low), abs(high), 1e-9)
    assert written[0] <= low + room
    assert written[1] >= high - room


def test_a_median_that_never_came_is_said_to_be_late():
    assert write.steps_in_words(Solving(3, 8, None, 600)) == "not within 600"
    assert write.steps_in_words(Solving(0, 0, None, 600)) == "—"


def test_what_was_not_tested_is_not_called_indistinguishable():
    kinds = {write.kind(verdict) for verdict in cases.nothing_finished().verdicts}
    assert kinds == {"exploratory"}
    kinds = {write.kind(verdict) for verdict in cases.with_failures(everywhere=True).verdicts}
    assert "not compared" in kinds
    assert "not distinguishable" not in kinds
