import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headstock.instruments.viewer.encoding import EXACT_UP_TO, SIDE, encoded, largest_error, levels, width_for
from tests.instruments.viewer.unpacking import weights_of

MAPS = arrays(np.float32, (5, 5), elements=st.floats(-3, 3, width=32))


@pytest.mark.parametrize("width", [1, 2])
@given(weights=MAPS, signed=st.booleans(), causal=st.booleans())
def test_a_weight_is_kept_to_within_the_error_that_is_stated(weights, signed, causal, width):
    weights = weights if signed else np.abs(weights)
    weights = np.tril(weights) if causal else weights
    (one,) = encoded(torch.from_numpy(weights[None].copy()), width)
    shown = weights_of(one, width, 5)
    # float32 rounds before the codes do
    slack = 1e-6 * one.scale
    for true, kept in zip(weights.ravel(), shown.ravel(), strict=True):
        assert abs(true - kept) <= largest_error(kept, one.scale, width, one.signed) + slack


def test_the_error_is_half_a_step_of_the_root_and_smaller_for_smaller_weights():
    assert levels(1, signed=False) == 254
    assert levels(1, signed=True) == 127
    assert levels(2, signed=False) == 65534
    assert largest_error(1.0, 1.0, 1, False) == pytest.approx(1 / 254, rel=0.01)
    assert largest_error(0.01, 1.0, 1, False) == pytest.approx(0.1 / 254, rel=0.05)
    assert largest_error(0.5, 1.0, 2, False) < 2e-5


def test_zero_and_the_largest_weight_are_kept_as_they_are():
    weights = torch.tensor([[[0.75, 0.0], [0.25, -0.5]]])
    (one,) = encoded(weights, 1)
    shown = weights_of(one, 1, 2)
    assert shown[0, 0] == 0.75
    assert shown[0, 1] == 0
    assert one.signed


def test_a_map_that_looks_at_later_keys_is_kept_whole_and_another_as_a_triangle():
    causal, free = torch.tril(torch.ones(4, 4)), torch.ones(4, 4)
    held = encoded(torch.stack([causal, free]), 1)
    assert [one.triangle for one in held] == [True, False]
    assert (weights_of(held[0], 1, 4) == causal.numpy()).all()
    assert (weights_of(held[1], 1, 4) == 1).all()


def test_what_is_no_number_stays_none_and_moves_no_other_weight():
    weights = torch.tensor([[[0.5, 0.0], [torch.nan, torch.inf]]])
    for width in (1, 2):
        (one,) = encoded(weights, width)
        shown = weights_of(one, width, 2)
        assert np.isnan(shown).tolist() == [[False, False], [True, True]]
        assert shown[0, 0] == 0.5


def test_a_map_of_zeros_is_one_of_zeros():
    (one,) = encoded(torch.zeros(1, 3, 3), 1)
    assert one.scale == 0
    assert (weights_of(one, 1, 3) == 0).all()


def test_the_small_picture_of_a_long_text_shows_a_single_large_weight():
    length = 3 * SIDE + 7
    weights = torch.zeros(1, length, length)
    weights[0, 150, 100] = -1.0
    weights[0, 3, 2] = 0.25
    (one,) = encoded(weights, 1)
    small = np.frombuffer(one.small, np.uint8).reshape(SIDE, SIDE).astype(int) - levels(1, signed=True)
    assert sorted(small[small != 0].tolist()) == [-127, 64]
    assert small[150 * SIDE // length, 100 * SIDE // length] == -127


def test_the_small_picture_of_a_short_text_is_the_map():
    (one,) = encoded(torch.tensor([[[1.0, 0.0], [0.25, 0.75]]]), 2)
    assert list(one.small) == [254, 0, 127, 220]


def test_few_weights_are_kept_in_two_bytes():
    assert width_for(EXACT_UP_TO) == 2
    assert width_for(EXACT_UP_TO + 1) == 1
