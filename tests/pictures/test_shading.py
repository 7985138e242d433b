import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock.pictures.shading import SHADES, runs, scale_of

values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


@given(values, st.booleans(), st.booleans(), st.booleans())
def test_a_larger_value_is_never_a_weaker_shade(known, signed, zero, root):
    scale = scale_of(known, signed=signed, zero=zero, root=root)
    shades = [scale.shade(value) for value in sorted(known)]
    assert shades == sorted(shades)
    assert -SHADES <= shades[0] <= shades[-1] <= SHADES


@given(values, st.booleans())
def test_what_is_signed_is_shaded_alike_on_both_sides_of_zero(known, root):
    scale = scale_of(known, signed=True, zero=True, root=root)
    assert scale.shade(0.0) == 0
    for value in known:
        assert scale.shade(-value) == -scale.shade(value)
        assert scale.shade(value) * value >= 0
    assert max(abs(scale.shade(value)) for value in known) == (SHADES if any(known) else 0)


@given(values, st.booleans(), st.booleans(), st.integers(0, SHADES))
def test_the_scale_beside_a_grid_says_of_each_shade_what_it_stands_for(known, zero, root, shade):
    scale = scale_of(known, signed=False, zero=zero, root=root)
    if scale.high - scale.low > 1e-9 * abs(scale.high):
        assert scale.shade(scale.value(shade / SHADES)) == shade
        assert scale.value(1.0) == pytest.approx(max([*known, *([0.0] if zero else [])]))


def test_the_scale_begins_at_zero_unless_it_is_asked_not_to():
    assert scale_of([3.0, 4.0], signed=False, zero=True, root=False).shade(3.0) == 24
    assert scale_of([3.0, 4.0], signed=False, zero=False, root=False).shade(3.0) == 0
    assert scale_of([-3.0, -4.0], signed=False, zero=True, root=False).shade(0.0) == SHADES


def test_small_weights_are_seen_by_their_square_root():
    assert scale_of([1.0], signed=False, zero=True, root=True).shade(0.25) == SHADES / 2
    assert math.isclose(scale_of([1.0], signed=False, zero=True, root=True).value(0.5), 0.25)


@given(st.lists(st.sampled_from([None, 0, 1]), min_size=1, max_size=30))
def test_runs_are_the_row_again_and_no_two_neighbours_are_alike(shades):
    found = runs(shades)
    assert [shade for start, end, shade in found for _ in range(start, end)] == shades
    assert all(one[2] != other[2] for one, other in pairwise(found))
