"""Gradient norms are those of the backward pass, and taking them changes nothing."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headstock.errors import UserError
from headstock.instruments.gradients import gradient_norms
from headstock.model.config import ModelConfig
from headstock.model.transformer import Transformer, build, build_from
from headstock.training.batch import Batch
from tests.model.cases import BATCH, ONE_A_MIXER, TIME, Case, every_mixer, some_ids
from tests.training.sources import Counting

MASK = torch.arange(TIME).remainder(3).ne(1).expand(BATCH, -1)
BATCH_OF_IDS = Batch(some_ids(), some_ids(seed=1), MASK)
SMALL = ModelConfig(vocab_size=11, context=6, d_model=16, n_layers=3, n_heads=2)


def loss_of(model: Transformer, batch: Batch = BATCH_OF_IDS) -> Tensor:
    return cross_entropy(model(batch.inputs)[batch.mask], batch.targets[batch.mask])


@pytest.mark.parametrize(
    "case",
    [
        *ONE_A_MIXER,
        Case("tied", "softmax,tied=true"),
        Case("post", "softmax,norm_placement=post"),
        Case("bare", "softmax+none,norm=none,feedforward=none"),
    ],
    ids=str,
)
def test_norms_are_those_of_a_backward_pass(case: Case) -> None:
    model = case.model()
    found = gradient_norms(model, BATCH_OF_IDS)
    loss = loss_of(model)
    loss.backward()

    def norm(*parts: torch.nn.Module | None) -> float:
        own = {parameter for part in parts if part is not None for parameter in part.parameters()}
        return math.sqrt(sum(float(p.grad.square().sum()) for p in own if p.grad is not None))

    assert found.loss == pytest.approx(loss.item())
    assert found.blocks.tolist() == pytest.approx([norm(block) for block in model.blocks])
    assert found.mixers.tolist() == pytest.approx([norm(block.mixer) for block in model.blocks])
    assert found.embedding == pytest.approx(norm(model.embed, model.position))
    assert found.unembedding == pytest.approx(norm(model.final_norm, model.unembed))
    assert found.last_over_first == pytest.approx(norm(model.blocks[1]) / norm(model.blocks[0]))
    clipped = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert found.total == pytest.approx(clipped.item())


@every_mixer
def test_the_residuals_norms_are_those_of_the_gradient_at_each_depth(case: Case) -> None:
    model = case.model()
    names = ["blocks.0.hook_resid_pre", "blocks.1.hook_resid_pre", "blocks.1.hook_resid_post"]
    _, cache = model.run_with_cache(
        BATCH_OF_IDS.inputs, names, gradients_of=lambda x: cross_entropy(x[MASK], BATCH_OF_IDS.targets[MASK])
    )
    expected = [cache.gradients[name].norm().item() for name in names]
    assert gradient_norms(model, BATCH_OF_IDS).residual.tolist() == pytest.approx(expected)


def test_measuring_leaves_gradients_flags_and_logits_alone() -> None:
    model = Case("dropout", "softmax,dropout_residual=0.5").model().train()
    loss_of(model).backward()
    model.embed.weight.requires_grad_(False)
    before = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    gradient_norms(model, BATCH_OF_IDS)
    assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), before, strict=True))
    assert [name for name, p in model.named_parameters() if not p.requires_grad] == ["embed.weight"]
    assert model.training


def test_frozen_parameters_and_a_switch_outside_change_no_norm() -> None:
    model = Case("softmax", "softmax").model()
    usual = gradient_norms(model, BATCH_OF_IDS)
    with torch.no_grad():
        frozen = gradient_norms(model.requires_grad_(False), BATCH_OF_IDS)
    assert frozen.blocks.tolist() == usual.blocks.tolist()
    assert frozen.residual.tolist() == usual.residual.tolist()
    assert frozen.embedding == usual.embedding


def test_dropout_is_off_while_gradients_are_measured() -> None:
    dropping, usual = (Case("", f"softmax,dropout_residual={p}").model().train() for p in (0.5, 0.0))
    assert gradient_norms(dropping, BATCH_OF_IDS).loss == gradient_norms(usual, BATCH_OF_IDS).loss


def test_norms_draw_themselves_with_the_ratio_as_title() -> None:
    found = gradient_norms(build_from(SMALL), Counting().batch(seed=0, index=0, size=4))
    assert f"{found.last_over_first:.3g} times the first one's" in found.draw().title
    assert "<svg" in found._repr_html_()


def test_what_has_no_gradient_is_refused() -> None:
    with torch.inference_mode(), pytest.raises(UserError, match="measure them outside it"):
        gradient_norms(build("softmax", vocab_size=17, context=TIME), BATCH_OF_IDS)
    with pytest.raises(UserError, match="no blocks"):
        gradient_norms(build("softmax", vocab_size=17, context=TIME, n_layers=0), BATCH_OF_IDS)
    nothing = Batch(BATCH_OF_IDS.inputs, BATCH_OF_IDS.targets, torch.zeros_like(MASK))
    with pytest.raises(UserError, match="no target of the batch counts"):
        gradient_norms(build("softmax", vocab_size=17, context=TIME), nothing)
