import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headstock.pictures import numbers
from headstock.pictures.spreads import spread_of


@pytest.mark.parametrize(
    ("value", "written"),
    [(1.23456, "1.23"), (-0.5, "−0.50"), (-0.001, "0.00"), (1234.5, "1,234.50"), (None, "—"), (math.nan, "—")],
)
def test_numbers_have_a_real_minus_and_no_minus_zero(value, written):
    assert numbers.fixed(value, 2) == written


@pytest.mark.parametrize(
    ("value", "written"), [(0.0129, "12.9 ms"), (0.25, "250 ms"), (2.5, "2.50 s"), (math.inf, "—"), (None, "—")]
)
def test_a_step_is_timed_in_units_that_can_be_read(value, written):
    assert numbers.seconds(value) == written


def test_one_seed_has_no_spread():
    assert numbers.plus_minus(spread_of([1.5]), 2) == "1.50"
    assert numbers.plus_minus(spread_of([1.0, 2.0]), 2) == "1.50 ± 0.71"
    assert numbers.plus_minus(spread_of([2e-8, 4e-8]), 4) == "3e−08 ± 1.4e−08"
    assert numbers.plus_minus(spread_of([None, math.nan]), 2) == "—"


@given(st.lists(st.one_of(st.none(), st.floats()), max_size=6))
def test_any_values_at_all_can_be_written(values):
    spread = spread_of(values)
    assert "nan" not in numbers.plus_minus(spread, numbers.places_for([spread]))


@given(st.floats(1e-12, 1), st.floats(0.01, 10))
def test_an_end_beside_zero_is_not_written_as_zero(end, width):
    for low, high in ((end, end + width), (-end - width, -end)):
        written = [float(said.replace("−", "-")) for said in numbers.outwards(low, high)]
        assert all(written)
        assert (written[0] > 0) == (low > 0)


@given(st.integers(-(10**14), 10**14), st.floats(0, 1e14))
def test_ends_past_a_thousand_million_are_rounded_outwards_too(low, width):
    assume(width > 1e-3 * abs(low))
    low, high = float(low), low + width
    written = [float(end.replace("−", "-").replace(",", "")) for end in numbers.outwards(low, high)]
    assert written[0] <= low + 1e-9 * abs(low)
    assert written[1] >= high - 1e-9 * abs(high)


@pytest.mark.parametrize(
    ("value", "written"),
    [(24672, "24,672"), (221664, "221,664"), (-1234.4, "−1,234"), (9999.7, "10,000"), (2.0, "2"), (1e-7, "1e−07")],
)
def test_thousands_stand_apart_whatever_the_size(value, written):
    assert numbers.small(value) == written


@given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e6))
def test_an_interval_is_rounded_outwards(low, width):
    high = low + width
    written = [float(end.replace("−", "-").replace(",", "")) for end in numbers.outwards(low, high)]
    room = 1e-3 * max(abs(low), abs(high), 1e-9)
    assert written[0] <= low + room
    assert written[1] >= high - room


@given(st.floats(-1e-4, 1e-4), st.floats(1e-9, 1e-4), st.floats(-1e-3, 1e-3), st.integers(0, 200))
def test_ends_near_zero_are_rounded_outwards_too(low, width, edge, smaller):
    low, high, edge = (value / 10.0**smaller for value in (low, low + width, edge))
    assume(0 < max(abs(low), abs(high)) < 1e-4 and min(abs(low - edge), abs(high - edge)) > 1e-3 * (high - low))
    written = numbers.outwards(low, high, (edge,))
    ends = [float(end.replace("−", "-")) for end in written]
    room = 1e-3 * (high - low)
    assert ends[0] <= low + room
    assert ends[1] >= high - room
    assert (ends[0] > edge, ends[1] > edge) == (low > edge, high > edge)


@pytest.mark.parametrize(
    ("low", "high", "edges", "written"),
    [
        (8.3e-8, 1.17e-7, (), ("0.8e−07", "1.2e−07")),
        (0.0, 2.24e-5, (), ("0", "3e−05")),
        (-2e-5, 3.3e-6, (), ("−2.0e−05", "0.4e−05")),
        (1.7e-7, 2.4e-7, (4.8e-7,), ("1.7e−07", "2.4e−07")),
        (1.063, 1.485, (), ("1.0", "1.5")),
        (1.063, 1.485, (1.0,), ("1.06", "1.5")),
        (0.794, 1.0089, (0.7,), ("0.79", "1.1")),
        (0.75, 12.0, (0.7,), ("0.75", "12")),
        (0.66, 0.6996, (0.7, math.inf), ("0.66", "0.6996")),
        (1.0, 1.5, (1.0,), ("1.0", "1.5")),
    ],
)
def test_an_end_stands_on_its_own_side_of_an_edge(low, high, edges, written):
    assert numbers.outwards(low, high, edges) == written


@given(st.floats(-100, 100), st.floats(1e-3, 50), st.floats(-100, 100))
def test_no_end_is_rounded_onto_or_over_an_edge(low, width, edge):
    high = low + width
    assume(min(abs(low - edge), abs(high - edge)) > 1e-6)
    for end, said in zip((low, high), numbers.outwards(low, high, (edge,)), strict=True):
        written = float(said.replace("−", "-"))
        assert (written > edge) == (end > edge)
        assert (written < edge) == (end < edge)
