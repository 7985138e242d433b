"""Rounding by the largest |x| is a symmetric grid about zero, worked out by hand."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstock.errors import UserError
from headstock.instruments.rounding import refuse_rounding, rounded

BY_HAND = torch.tensor([[-1.0, 0.4, 0.0], [0.1, 0.2, 0.6]])
numbers = st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("bits", "per", "expected"),
    [
        (1, "tensor", [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
        (2, "tensor", [[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
        (2, "row", [[-1.0, 0.0, 0.0], [0.0, 0.0, 0.6]]),
        (3, "tensor", [[-1.0, 1 / 3, 0.0], [0.0, 1 / 3, 2 / 3]]),
        (3, "row", [[-1.0, 1 / 3, 0.0], [0.0, 0.2, 0.6]]),
    ],
)
def test_few_bits_by_hand(bits: int, per: str, expected: list[list[float]]) -> None:
    torch.testing.assert_close(rounded(BY_HAND, bits, per), torch.tensor(expected))


@given(numbers, st.integers(1, 16))
def test_the_grid_is_symmetric_keeps_zero_and_its_ends_and_errs_by_half_a_step(some: list[float], bits: int) -> None:
    x = torch.tensor([*some, 0.0], dtype=torch.float64)
    given_back = rounded(x, bits)
    assert torch.equal(rounded(-x, bits), -given_back)
    assert (given_back[x == 0] == 0).all()
    levels, largest = 2 ** (bits - 1) - 1, x.abs().max()
    if levels:
        assert torch.equal(given_back[x.abs() == largest], x[x.abs() == largest])
        assert (given_back - x).abs().max() <= largest / levels / 2 * (1 + 1e-9)
        steps = given_back / largest.clamp(min=1e-300) * levels
        torch.testing.assert_close(steps, steps.round(), rtol=0, atol=1e-6)
    assert len(given_back.unique()) <= 2**bits


@given(numbers)
def test_many_bits_change_nothing_but_rounding(some: list[float]) -> None:
    x = torch.tensor(some, dtype=torch.float64)
    torch.testing.assert_close(rounded(x, 32), x, rtol=0, atol=float(x.abs().max()) / 2**31)


@pytest.mark.parametrize("per", ["tensor", "row"])
@pytest.mark.parametrize("bits", [1, 4])
def test_what_is_hidden_stays_hidden_and_is_no_largest(bits: int, per: str) -> None:
    x = torch.tensor([[1.0, -math.inf, 0.3], [-math.inf, -math.inf, -math.inf]])
    alone = rounded(torch.tensor([[1.0, 0.3]]), bits, per)
    given_back = rounded(x, bits, per)
    assert torch.equal(given_back[0, [0, 2]], alone[0])
    assert (given_back[x == -math.inf] == -math.inf).all()
    assert not given_back.isnan().any()


def test_the_dtype_stays_and_nothing_is_rounded_to_nothing() -> None:
    assert rounded(torch.ones(3, dtype=torch.bfloat16), 4).dtype == torch.bfloat16
    assert rounded(torch.zeros(2, 0), 4, "row").shape == (2, 0)
    assert torch.equal(rounded(torch.zeros(2, 3), 4, "row"), torch.zeros(2, 3))


@pytest.mark.parametrize("bits", [0, 33, 2.5, True, "4"])
def test_bits_that_make_no_grid_are_refused(bits: object) -> None:
    with pytest.raises(UserError, match="choose a whole number from 1 to 32"):
        refuse_rounding(bits, "tensor")  # type: ignore[arg-type]


def test_a_scale_of_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="row"):
        refuse_rounding(4, "rows")
