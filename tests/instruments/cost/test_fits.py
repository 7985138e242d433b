"""What is said to fit is held to a training step that was really taken."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstock.errors import UserError
from headstock.instruments.cost import PASSES, Cost, Fits, cost_by_length, longest_that_fits, turns
from headstock.instruments.cost.fits import polynomial
from headstock.instruments.memory import peak_bytes
from headstock.model.accounting import parameters
from headstock.model.config import ModelConfig, config_of
from headstock.model.transformer import build_from
from headstock.training.batch import Batch
from headstock.training.config import TrainingConfig
from headstock.training.loop import accumulate_gradients
from headstock.training.loss import loss_sum

SIZES: dict[str, Any] = {"vocab_size": 100, "context": 640, "d_model": 32, "n_heads": 4, "n_layers": 3}
LENGTHS = (256, 384, 512, 640)
"""Whole blocks of queries: what lies between is not on one line."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "SHORTEST_SAMPLE", 1e-6)
    monkeypatch.setattr(turns, "FEWEST_TURNS", 2)


def measured(config: ModelConfig, plain: bool = False, lengths: tuple[int, ...] = LENGTHS) -> Cost:
    return cost_by_length({"own": config}, lengths, parts=("block", "mixing"), plain=plain, seconds=1e-6)


def fitting(found: Cost, config: ModelConfig, memory_bytes: float, holder: str, step: str) -> Fits:
    every = longest_that_fits(found, {"own": config}, memory_bytes)
    return next(one for one in every if (one.holder, one.step) == (holder, step))


def bytes_of_a_step(config: ModelConfig, length: int, plain: bool) -> tuple[int, int]:
    """Count what evaluating and training hold of a whole model, AdamW's numbers included."""
    config = config.model_copy(update={"context": length})
    model = build_from(config)
    model.plain = plain
    ids = torch.randint(config.vocab_size, (1, length))
    batch = Batch(ids, ids, torch.ones(1, length, dtype=torch.bool))

    def evaluated() -> None:
        with torch.no_grad():
            loss_sum(model, model.hidden(ids).flatten(0, 1), ids[0])

    forward = peak_bytes(evaluated) + 4 * parameters(config).total
    model.train()
    step = TrainingConfig(steps=1)
    accumulate_gradients(model, batch, step, 0)  # from here on gradients are there
    training = peak_bytes(lambda: accumulate_gradients(model, batch, step, 0)) + 16 * parameters(config).total
    return forward, training


@pytest.mark.parametrize(
    ("variant", "plain"),
    [
        ("softmax", False),
        ("softmax", True),
        ("softmax+rope,tied=true,norm=rmsnorm,feedforward=swiglu", False),
        ("differential", False),
        ("sigmoid", False),
        ("linear", True),
        ("retention", False),
        ("table", True),
        ("lstm", False),
    ],
)
def test_a_model_is_foreseen_within_a_tenth_of_what_its_step_held(variant: str, plain: bool) -> None:
    config = config_of(variant, **SIZES)
    found, beyond = measured(config, plain), 896
    for step, held in zip(("forward", "training"), bytes_of_a_step(config, beyond, plain), strict=True):
        own = fitting(found, config, held, "model", step)
        assert own.bytes_foreseen <= held
        assert own.longest_measured == 640
        assert own.tokens == pytest.approx(beyond, rel=0.1), step


def test_more_memory_has_room_for_more_and_too_little_for_nothing() -> None:
    config = config_of("softmax", **SIZES)
    found = measured(config)
    for holder in ("mixing", "block", "model"):
        for step in ("forward", "training"):
            small, large = (fitting(found, config, 2.0**n, holder, step).tokens for n in (26, 30))
            assert 0 < small < large
        assert fitting(found, config, 1, holder, "training").tokens == 0
        # A training pass holds more than a forward pass, and a model more than its block.
        assert (
            fitting(found, config, 2**30, holder, "training").tokens
            < fitting(found, config, 2**30, holder, "forward").tokens
        )
    mixing, block, model = (fitting(found, config, 2**30, h, "training").tokens for h in ("mixing", "block", "model"))
    assert mixing > block > model


def test_training_is_never_said_to_fit_where_a_forward_pass_does_not() -> None:
    config = config_of("softmax,feedforward=none", **SIZES)
    found = measured(config, plain=True, lengths=(64, 128, 256, 512))
    for memory in (2**24, 2**28, 2**33):
        for holder in ("mixing", "block", "model"):
            forward, training = (fitting(found, config, memory, holder, step).tokens for step in PASSES)
            assert training <= forward


def test_stored_weights_fit_half_as_long_where_they_hold_four_times_as_much() -> None:
    config = config_of("softmax", **SIZES)
    found = measured(config, plain=True)
    few, more = (fitting(found, config, 2.0**n, "mixing", "forward").tokens for n in (34, 36))
    assert more / few == pytest.approx(2, rel=0.01)
    # Three maps of 4 heads, and masks of less than a tenth of that.
    assert few == pytest.approx((2**34 / (3 * 4 * 4)) ** 0.5, rel=0.05)


def test_what_was_foreseen_is_held_to_what_was_measured() -> None:
    config = config_of("softmax", **SIZES)
    plain, fast = fitting(measured(config, True), config, 2**30, "block", "training"), measured(config)
    assert plain.off_by == pytest.approx(0, abs=0.02)
    assert fitting(fast, config, 2**30, "block", "training").off_by == pytest.approx(0, abs=0.02)
    three = measured(config, True, (256, 384, 512))
    assert fitting(three, config, 2**30, "block", "training").off_by is None


def test_what_cannot_be_said_is_refused() -> None:
    config = config_of("softmax", **SIZES)
    with pytest.raises(UserError, match="own was measured at 2 lengths: what fits is read off three or more"):
        longest_that_fits(measured(config, lengths=(8, 16)), {"own": config}, 2**30)
    alone = cost_by_length({"own": config}, (8, 16, 32), parts=("mixing",), seconds=1e-6)
    with pytest.raises(UserError, match="of the block and of its mixing"):
        longest_that_fits(alone, {"own": config}, 2**30)
    with pytest.raises(UserError, match="the memory is 0 bytes"):
        longest_that_fits(alone, {"own": config}, 0)


@given(st.lists(st.integers(0, 1000), min_size=3, max_size=3), st.integers(1, 10_000))
def test_a_polynomial_without_a_negative_term_is_found_again(terms: list[int], at: int) -> None:
    def own(n: int) -> int:
        return 1 + terms[0] * 1000 + terms[1] * 100 * n + terms[2] * n * n

    found = polynomial([(n, own(n)) for n in (64, 128, 256, 512)], squared=True)
    assert found(at) == pytest.approx(own(at), rel=1e-3)
    line = polynomial([(n, 5 + 3 * n) for n in (64, 128, 256)], squared=False)
    assert line(at) == pytest.approx(5 + 3 * at, rel=1e-6)
