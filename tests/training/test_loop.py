import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstock.model.transformer import build
from headstock.training.config import TrainingConfig
from headstock.training.loop import NonFiniteLoss, accumulate_gradients, take_step, train
from headstock.training.loss import plain_loss_sum
from headstock.training.optimiser import adamw
from tests.training.sources import Counting

SMALL = {"vocab_size": 11, "context": 6, "d_model": 16, "n_heads": 2, "n_layers": 1}


def _gradients(model):
    return {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("scored", [None, (2, 5)])
@given(piece_tokens=st.integers(1, 80))
def test_a_batch_in_pieces_has_the_gradient_of_the_whole(scored, piece_tokens):
    source = Counting(scored=scored)
    batch = source.batch(seed=0, index=0, size=9)
    model = build("differential", **SMALL).double().train()
    hidden = model.hidden(batch.inputs)
    whole = plain_loss_sum(model, hidden[batch.mask], batch.targets[batch.mask]) / batch.mask.sum()
    whole.backward()
    expected = _gradients(model)
    model.zero_grad()
    loss = accumulate_gradients(model, batch, TrainingConfig(steps=1, piece_tokens=piece_tokens), step=0)
    torch.testing.assert_close(loss.double(), whole.detach(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(_gradients(model), expected, rtol=1e-9, atol=1e-11)


def test_dropout_draws_the_same_whatever_the_pieces():
    batch = Counting().batch(seed=0, index=0, size=8)
    drops = {"dropout_attention": 0.3, "dropout_residual": 0.3, "dropout_embedding": 0.3}
    gradients = []
    for piece_tokens in (1, 20, 1000):
        model = build("softmax", **SMALL, **drops).double().train()
        accumulate_gradients(model, batch, TrainingConfig(steps=1, piece_tokens=piece_tokens), step=3)
        gradients.append(_gradients(model))
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(gradients[0], gradients[2], rtol=1e-9, atol=1e-11)


def test_training_learns_to_count_and_the_curve_tells():
    model = build("softmax", **SMALL)
    progress = train(model, Counting(), TrainingConfig(steps=200, evaluate_every=80, lr=1e-2))
    assert [entry["step"] for entry in progress.curve] == [80, 160, 200]
    assert progress.curve[-1]["accuracy"] == 1.0
    assert progress.curve[-1]["loss"] < progress.curve[0]["loss"]
    assert progress.seconds_per_step > 0
    assert not model.training


def test_stopping_after_any_step_and_going_on_ends_with_the_same_bits():
    config = TrainingConfig(steps=12, evaluate_every=5, warmup_steps=3, schedule="cosine", clip=0.5)
    whole = build("softmax,dropout_residual=0.2", **SMALL)
    train(whole, Counting(), config)

    class Stop(Exception):
        pass

    parts = build("softmax,dropout_residual=0.2", **SMALL)
    optimiser, progress = adamw(parts, config), None
    for stop_after in (1, 5, 7, 12):

        def after_step(now, stop_after=stop_after):
            nonlocal progress
            progress = now
            if now.steps_done == stop_after:
                raise Stop

        with pytest.raises(Stop):
            train(parts, Counting(), config, optimiser=optimiser, progress=progress, after_step=after_step)
    for (name, one), other in zip(whole.state_dict().items(), parts.state_dict().values(), strict=True):
        assert torch.equal(one, other), name


def test_every_weight_is_in_place_before_an_evaluation_begins(monkeypatch):
    order = []
    monkeypatch.setattr("headstock.training.loop.evaluate", lambda *_: order.append("evaluated") or {"loss": 1.0})
    config = TrainingConfig(steps=4, evaluate_every=2)
    train(build("softmax", **SMALL), Counting(), config, before_evaluation=lambda now: order.append(now.steps_done))
    assert order == [2, "evaluated", 4, "evaluated"]


def test_a_loss_that_is_no_number_is_refused_with_its_step():
    class Breaking(Counting):
        def batch(self, *, seed, index, size, split="train"):
            if index == 3:
                model.embed.weight.data.fill_(math.nan)
            return super().batch(seed=seed, index=index, size=size)

    model = build("softmax", **SMALL)
    with pytest.raises(NonFiniteLoss, match="nan at step 4"):
        train(model, Breaking(), TrainingConfig(steps=8, evaluate_every=8))


def test_a_clipped_step_is_no_longer_than_asked(monkeypatch):
    norms = []
    model = build("softmax", **SMALL)
    optimiser = adamw(model, TrainingConfig(steps=1))
    monkeypatch.setattr(
        optimiser, "step", lambda: norms.append(math.sqrt(sum(float((p.grad**2).sum()) for p in model.parameters())))
    )
    take_step(model, Counting(), TrainingConfig(steps=1), optimiser, 0)
    take_step(model, Counting(), TrainingConfig(steps=1, clip=0.1), optimiser, 0)
    assert norms[0] > 0.1
    assert norms[1] == pytest.approx(0.1, rel=1e-4)


def test_the_number_of_threads_is_the_configs_while_training_and_restored_after(monkeypatch):
    seen = []
    before = torch.get_num_threads()
    config = TrainingConfig(steps=1, threads=2)
    train(build("softmax", **SMALL), Counting(), config, after_step=lambda _: seen.append(torch.get_num_threads()))
    assert seen == [2]
    assert torch.get_num_threads() == before
