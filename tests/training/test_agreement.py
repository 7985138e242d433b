"""What agreement costs is the mean cosine of two maps: gradients follow from it, and without a price nothing does."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.redundancy import head_redundancy
from headstock.model.config import config_of
from headstock.model.transformer import Transformer, build
from headstock.training.agreement import refuse_penalty
from headstock.training.config import TrainingConfig
from headstock.training.loop import accumulate_gradients, train
from headstock.training.loss import plain_loss_sum
from headstock.training.run import run
from tests.model.cases import stirred
from tests.training.sources import Counting

SMALL = {"vocab_size": 11, "context": 6, "d_model": 16, "n_heads": 4, "n_layers": 2}
PRICE = 0.7
VARIANTS = [
    "differential+rope",
    "differential,lambdas=head,n_kv_heads=2",
    "differential2+alibi",
    "differential,window=3",
]


def model_of(variant: str) -> Transformer:
    return stirred(build(variant, **SMALL)).train()


def minimised(model: Transformer, batch: object, price: float = PRICE) -> Tensor:
    """Cross entropy and agreement, the latter row by row and query by query of the maps that hooks show."""
    inputs, targets, mask = batch.inputs, batch.targets, batch.mask
    loss = plain_loss_sum(model, model.hidden(inputs)[mask], targets[mask]) / mask.sum()
    shown = model.run_with_cache(inputs, lambda name: "hook_pattern_" in name)[1]
    cosines = []
    for layer in range(model.config.n_layers):
        first, second = shown["pattern_1", layer], shown["pattern_2", layer]
        for row in range(inputs.shape[0]):
            for head in range(first.shape[1]):
                for query in range(1, inputs.shape[1]):
                    one, other = first[row, head, query], second[row, head, query]
                    cosines.append(one @ other / one.norm() / other.norm())
    return loss + price * torch.stack(cosines).mean()


@pytest.mark.parametrize(
    ("variant", "piece_tokens"), [*((variant, 20) for variant in VARIANTS), (VARIANTS[0], 1), (VARIANTS[0], 1000)]
)
def test_gradients_are_finite_differences_of_what_is_minimised(variant: str, piece_tokens: int) -> None:
    batch = Counting(scored=(2, 5)).batch(seed=0, index=0, size=4)
    model = model_of(variant)
    config = TrainingConfig(steps=1, piece_tokens=piece_tokens, agreement_penalty=PRICE)
    accumulate_gradients(model, batch, config, step=0)
    parameters, step = list(model.parameters()), 1e-5
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        towards = [torch.randn(x.shape, generator=generator, dtype=torch.float64) for x in parameters]
        with torch.no_grad():
            found = []
            for steps in (1, -2, 1):
                for parameter, direction in zip(parameters, towards, strict=True):
                    parameter += steps * step * direction
                found.append(minimised(model, batch))
        slope = (found[0] - found[1]).item() / (2 * step)
        ours = sum((x.grad * direction).sum().item() for x, direction in zip(parameters, towards, strict=True))
        assert ours == pytest.approx(slope, rel=1e-5)


def test_the_loss_that_is_told_leaves_the_price_out_and_the_agreement_is_what_the_instrument_measures() -> None:
    batch = Counting().batch(seed=0, index=0, size=5)
    model = model_of("differential+rope")
    losses = [
        accumulate_gradients(model, batch, TrainingConfig(steps=1, agreement_penalty=price), step=0) for price in (0, 9)
    ]
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-6, atol=0)
    measured = head_redundancy(model, batch.inputs).map_cosine
    assert measured is not None
    with torch.no_grad():
        agreement = (minimised(model, batch, 1.0) - minimised(model, batch, 0.0)).item()
    assert measured.mean().item() == pytest.approx(agreement, abs=1e-10)


def test_a_price_makes_maps_agree_less() -> None:
    agreed = []
    for price in (0.0, 1.0):
        model = build("differential+rope", **SMALL)
        train(model, Counting(), TrainingConfig(steps=30, lr=1e-2, agreement_penalty=price))
        measured = head_redundancy(model, Counting().batch(seed=9, index=0, size=8).inputs).map_cosine
        assert measured is not None
        agreed.append(measured.mean().item())
    assert agreed[1] < 0.8 * agreed[0]


def test_without_a_price_no_map_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("it was asked for")

    monkeypatch.setattr("headstock.training.loop.hidden_and_agreement", never)
    batch, model = Counting().batch(seed=0, index=0, size=5), model_of("differential")
    accumulate_gradients(model, batch, TrainingConfig(steps=1, agreement_penalty=0), step=0)
    with pytest.raises(AssertionError, match="asked for"):
        accumulate_gradients(model, batch, TrainingConfig(steps=1, agreement_penalty=1), step=0)


@pytest.mark.parametrize(
    "variant", ["softmax", "lstm", "differential,lambdas=fixed,lambda_init=0", "differential,n_layers=0"]
)
def test_where_there_are_no_two_maps_it_is_refused(variant: str, tmp_path: Path) -> None:
    config, training = config_of(variant, **{**SMALL, "n_layers": 2}), TrainingConfig(steps=1, agreement_penalty=0.1)
    said = "agreement_penalty=0.1 needs heads that subtract one map from another, which "
    with pytest.raises(UserError, match=said):
        refuse_penalty(config, training)
    with pytest.raises(UserError, match=said):
        train(build(variant, **{**SMALL, "n_layers": 2}), Counting(), training)
    with pytest.raises(UserError, match=said):
        run(tmp_path / "run", config, training, Counting(), {})
    assert not (tmp_path / "run").exists()
    refuse_penalty(config, TrainingConfig(steps=1))


def test_a_window_of_one_leaves_nothing_to_disagree_on() -> None:
    config = config_of("differential,window=1", **SMALL)
    with pytest.raises(UserError, match="needs queries that see several keys: choose a window of 2 or more"):
        refuse_penalty(config, TrainingConfig(steps=1, agreement_penalty=0.1))


@pytest.mark.parametrize("value", [-0.1, float("nan"), "much"])
def test_a_price_is_a_number_from_0_on(value: object) -> None:
    with pytest.raises(UserError, match="agreement_penalty="):
        TrainingConfig(steps=1, agreement_penalty=value)
