"""λ is followed through a training, and the training does not notice."""

import pytest
import torch

from headstock.errors import UserError
from headstock.instruments.lambda_log import lambdas_in_training
from headstock.instruments.lambdas import lambda_values
from headstock.model.transformer import Transformer, build
from headstock.training.config import TrainingConfig
from headstock.training.loop import Progress, train
from tests.training.sources import Counting

CONFIG = TrainingConfig(steps=6, batch_size=4, evaluate_every=2, lr=0.01)
IDS = Counting().batch(seed=0, index=0, size=4).inputs


def small(mixer: str, n_layers: int = 3) -> Transformer:
    return build(mixer, vocab_size=11, context=6, d_model=16, n_layers=n_layers, n_heads=2)


@pytest.mark.parametrize("mixer", ["differential", "differential2"])
def test_it_looks_at_every_evaluation_and_the_training_is_the_same(mixer: str) -> None:
    watched, alone = small(mixer), small(mixer)
    log = lambdas_in_training(watched, IDS)
    at_start = lambda_values(alone, IDS).by_layer
    train(watched, Counting(), CONFIG, before_evaluation=log)
    by_step = []
    train(alone, Counting(), CONFIG, before_evaluation=lambda _: by_step.append(lambda_values(alone, IDS)))
    assert all(torch.equal(a, b) for a, b in zip(watched.parameters(), alone.parameters(), strict=True))
    assert log.steps == [2, 4, 6]
    assert torch.equal(log.by_layer, torch.stack([values.by_layer for values in by_step]))
    assert torch.equal(log.at_start, at_start)
    assert not torch.equal(log.by_layer[0], log.by_layer[2])


def test_quartiles_are_those_over_tokens_and_heads() -> None:
    model = small("differential2")
    log = lambdas_in_training(model, IDS)
    train(model, Counting(), CONFIG, before_evaluation=log)
    by_token = lambda_values(model, IDS).by_token
    assert by_token is not None
    assert log.quartiles is not None
    assert log.quartiles.shape == (3, 3, 3)
    for place, part in enumerate((0.25, 0.5, 0.75)):
        torch.testing.assert_close(log.quartiles[2, :, place], by_token.flatten(1).quantile(part, dim=1))
    assert lambdas_in_training(small("differential")).quartiles is None


def test_padding_has_no_share_in_it() -> None:
    model = small("differential2")
    real = torch.tensor([[True] * 4 + [False] * 2]).expand(4, -1)
    padded, alone = (lambdas_in_training(model, ids, real=r) for ids, r in ((IDS, real), (IDS[:, :4], None)))
    for log in (padded, alone):
        log(Progress(steps_done=1))
    torch.testing.assert_close(padded.by_layer, alone.by_layer)
    torch.testing.assert_close(padded.quartiles, alone.quartiles)


def test_it_looks_every_so_many_steps_and_once_at_one() -> None:
    model = small("differential")
    log = lambdas_in_training(model, every=3)
    train(model, Counting(), CONFIG, before_evaluation=log, after_step=log)
    assert log.steps == [3, 6]


def test_it_draws_lines_by_step() -> None:
    first, second = lambdas_in_training(small("differential", 11)), lambdas_in_training(small("differential2"), IDS)
    assert first._repr_html_() is None
    with pytest.raises(UserError, match="until the first evaluation"):
        first.draw()
    for steps_done in (0, 5):
        for log in (first, second):
            log(Progress(steps_done=steps_done))
    chosen = [f"layer {layer}" for layer in (0, 2, 4, 6, 8, 10)]
    assert list(dict.fromkeys(row[0] for row in first.draw().table.rows)) == chosen
    assert first.draw().caption.startswith("λ_init: 0.2 to 0.77")
    assert first.draw().title.startswith("λ after 5 steps: ")
    assert "Band: 25 to 75 % of tokens and heads." in second.draw().caption
    assert "At the start: " in second.draw().caption
    assert "<svg" in second._repr_html_()


def test_who_has_no_lambda_and_steps_that_are_none_are_refused() -> None:
    with pytest.raises(UserError, match="no λ"):
        lambdas_in_training(small("softmax"), IDS)
    with pytest.raises(UserError, match="give ids"):
        lambdas_in_training(small("differential2"))
    with pytest.raises(UserError, match="choose 1 or more"):
        lambdas_in_training(small("differential"), every=0)
    with pytest.raises(UserError, match="train for 4 steps"):
        lambdas_in_training(small("differential"), every=4).draw()
