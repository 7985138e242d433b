"""Gradient norms through a training, which is left as it is."""

import pytest
import torch

from headstock.errors import UserError
from headstock.instruments.gradient_log import gradients_in_training
from headstock.instruments.gradients import gradient_norms
from headstock.model.config import ModelConfig
from headstock.model.transformer import build_from
from headstock.training.config import TrainingConfig
from headstock.training.loop import train
from tests.training.sources import Counting

SMALL = ModelConfig(vocab_size=11, context=6, d_model=16, n_layers=3, n_heads=2)


def test_a_training_with_a_log_is_the_training_without() -> None:
    config = TrainingConfig(steps=6, batch_size=4, evaluate_every=3)
    batch = Counting().batch(seed=0, index=0, size=4)
    watched, alone = build_from(SMALL), build_from(SMALL)
    log = gradients_in_training(watched, batch, every=2)
    with pytest.raises(UserError, match="train for 2 steps"):
        log.draw()
    train(watched, Counting(), config, after_step=log)
    train(alone, Counting(), config)
    assert all(torch.equal(a, b) for a, b in zip(watched.parameters(), alone.parameters(), strict=True))
    assert log.steps == [2, 4, 6]
    assert log.norms[-1].blocks.tolist() == gradient_norms(watched, batch).blocks.tolist()
    assert log.norms[0].loss != log.norms[1].loss
    drawn = log.draw()
    assert drawn.title == "Gradients by block over 6 steps"
    assert {row[0] for row in drawn.table.rows} == {"block 0", "block 1", "block 2"}


def test_an_interval_that_divides_no_step_is_refused() -> None:
    with pytest.raises(UserError, match="every=0 divides no step"):
        gradients_in_training(build_from(SMALL), Counting().batch(seed=0, index=0, size=4), every=0)
