"""A power is found again, with the interval that least squares gives."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock.instruments.growth import exponent, exponent_with_interval


@given(
    st.floats(-1, 3),
    st.floats(-5, 5),
    st.lists(st.integers(1, 10_000), min_size=3, max_size=6, unique=True),
)
def test_a_power_is_found_again_with_no_room_for_another(power: float, scale: float, lengths: list[int]) -> None:
    cost = [math.exp(scale) * length**power for length in lengths]
    found, low, high = exponent_with_interval(lengths, cost)
    assert found == exponent(lengths, cost)
    assert found == pytest.approx(power, abs=1e-6)
    assert low <= found <= high
    assert high - low < 1e-4


def test_the_interval_is_the_one_that_scipy_gives() -> None:
    from scipy import stats

    lengths, seconds = [256, 512, 1024, 2048, 4096], [0.011, 0.019, 0.048, 0.15, 0.61]
    theirs = stats.linregress([math.log(x) for x in lengths], [math.log(y) for y in seconds])
    half = stats.t.ppf(0.975, 3) * theirs.stderr
    assert exponent_with_interval(lengths, seconds) == pytest.approx(
        (theirs.slope, theirs.slope - half, theirs.slope + half)
    )
