import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstock.tasks import drawing
from headstock.tasks.drawing import draw, draw_different

PURPOSES = st.tuples(st.sampled_from(["train", "held-out"]), st.integers(0, 2**70), st.integers(0, 10**9))


@given(st.integers(1, 10**9), st.integers(0, 50), PURPOSES)
def test_the_same_purpose_draws_the_same_numbers_within_bounds(
    below: int, count: int, purpose: tuple[str, int, int]
) -> None:
    drawn = draw(below, count, *purpose)
    assert drawn.dtype == torch.int64
    assert drawn.shape == (count,)
    assert ((drawn >= 0) & (drawn < below)).all()
    assert torch.equal(drawn, draw(below, count, *purpose))


@given(PURPOSES, PURPOSES)
def test_another_purpose_draws_other_numbers(one: tuple[str, int, int], other: tuple[str, int, int]) -> None:
    assert torch.equal(draw(10**9, 8, *one), draw(10**9, 8, *other)) == (one == other)


@given(st.integers(0, 30), st.integers(0, 30), PURPOSES)
def test_a_shorter_draw_is_the_beginning_of_a_longer_one(short: int, more: int, purpose: tuple[str, int, int]) -> None:
    assert torch.equal(draw(1000, short + more, *purpose)[:short], draw(1000, short, *purpose))


def test_draws_are_those_of_every_other_machine() -> None:
    # hashlib.shake_128(b"('train', 0, 1)").digest(32), little-endian, modulo 1000
    assert draw(1000, 4, "train", 0, 1).tolist() == [584, 510, 403, 585]


def test_draws_are_even() -> None:
    counts = torch.bincount(draw(10, 100_000, "even"), minlength=10)
    assert (counts - 10_000).abs().max() < 500


@given(st.integers(0, 12).flatmap(lambda count: st.tuples(st.just(count), st.integers(count, 30))), PURPOSES)
def test_different_numbers_are_different_within_each_row(sizes: tuple[int, int], purpose: tuple[str, int, int]) -> None:
    count, below = sizes
    drawn = draw_different(below, 5, count, *purpose)
    assert drawn.shape == (5, count)
    assert ((drawn >= 0) & (drawn < below)).all()
    assert all(len(set(row)) == count for row in drawn.tolist())
    assert torch.equal(drawn, draw_different(below, 5, count, *purpose))


def test_different_numbers_come_in_every_order_alike() -> None:
    drawn = draw_different(4, 12_000, 2, "orders")
    counts = torch.bincount(4 * drawn[:, 0] + drawn[:, 1], minlength=16).view(4, 4)
    assert counts.diagonal().eq(0).all()
    assert (counts + 1000 * torch.eye(4, dtype=torch.int64) - 1000).abs().max() < 120  # of 1,000 expected


@given(
    st.integers(0, 12).flatmap(lambda count: st.tuples(st.just(count), st.integers(count, 30))), st.integers(0, 2**32)
)
def test_a_shuffle_too_long_to_write_down_is_the_one_that_is_written_down(sizes: tuple[int, int], seed: int) -> None:
    count, below = sizes
    generator = np.random.default_rng(seed)
    other_rp = np.stack([generator.integers(place, below, 7) for place in range(count)] or [np.empty(7, int)], axis=1)
    other_rp = other_rp[:, :count]
    assert (drawing._shuffled_unseen(below, other_rp) == drawing._shuffled(below, other_rp)).all()


def test_different_ones_of_very_many_take_hardly_any_memory() -> None:
    drawn = draw_different(2**60, 1000, 3, "many")
    assert all(len(set(row)) == 3 for row in drawn.tolist())
    assert 0.48 * 2**60 < drawn.double().mean() < 0.52 * 2**60
