"""Values of one text put into a run on another: each where it belongs, and nothing else."""

from typing import Any

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.answers import logit_difference
from headstock.instruments.patching import BY_HEAD, BY_MAP, BY_POSITION, patch_heads, patch_positions
from headstock.model.transformer import Transformer
from tests.model.cases import BATCH, TIME, Case, close, every_mixer, some_ids

ANSWERS = (3, 5)
directions = pytest.mark.parametrize("direction", ["denoising", "noising"])


def two_texts() -> tuple[Tensor, Tensor]:
    clean = some_ids()
    corrupt = clean.clone()
    corrupt[:, 4] = (corrupt[:, 4] + 1) % 17
    return clean, corrupt


def difference(logits: Tensor) -> float:
    return (logits[:, -1, 3] - logits[:, -1, 5]).mean().item()


@every_mixer
@directions
def test_the_whole_answer_enters_at_the_token_that_differs_and_leaves_at_the_last(case: Case, direction: str) -> None:
    model, (clean, corrupt) = case.model(), two_texts()
    found = patch_positions(model, clean, corrupt, ANSWERS, direction=direction)
    before = torch.zeros(TIME, dtype=torch.float64)
    before[4] = 1
    close(found.effect[0], before if direction == "denoising" else 1 - before, 1e-9)
    after = patch_positions(model, clean, corrupt, ANSWERS, site="resid_post", direction=direction).effect[-1]
    last = torch.zeros(TIME, dtype=torch.float64)
    last[-1] = 1
    close(after, last if direction == "denoising" else 1 - last, 1e-9)
    assert found.clean == pytest.approx(difference(model(clean)))
    assert found.corrupt == pytest.approx(difference(model(corrupt)))
    assert found.axes == ("layer", "position")


def by_hand(model: Transformer, run: Tensor, name: str, value: Tensor, place: Any) -> float:
    def put(x: Tensor, hook: Any) -> None:
        x[place] = value[place]

    with model.hooks([(name, put)]):
        return difference(model(run))


@pytest.mark.parametrize("site", BY_POSITION)
def test_a_position_is_patched_as_by_hand(site: str) -> None:
    model, (clean, corrupt) = Case("", "softmax+rope").model(), two_texts()
    inside = "" if BY_POSITION.index(site) < 5 else "attn."
    found = patch_positions(model, clean, corrupt, ANSWERS, site=site).patched
    for layer, position in ((0, 4), (1, 8), (1, 5)):
        name = f"blocks.{layer}.{inside}hook_{site}"
        value = model.run_with_cache(clean, name)[1][name]
        expected = by_hand(model, corrupt, name, value, (slice(None), position))
        assert found[layer, position].item() == pytest.approx(expected)


@pytest.mark.parametrize("site", [*BY_HEAD, *BY_MAP])
def test_a_head_is_patched_as_by_hand(site: str) -> None:
    model = Case("", "differential+rope,n_heads=8,n_kv_heads=4").model()
    clean, corrupt = (text[:, 2:6] for text in two_texts())
    if site == "attn_scores":
        with pytest.raises(UserError, match=r"never works out blocks\.0\.attn\.hook_attn_scores"):
            patch_heads(model, clean, corrupt, ANSWERS, site=site)
        return
    mapped = site in BY_MAP
    whole = patch_heads(model, clean, corrupt, ANSWERS, site=site)
    alone = patch_heads(model, clean, corrupt, ANSWERS, site=site, by_position=True)
    name = f"blocks.1.attn.hook_{site}"
    value = model.run_with_cache(clean, name)[1][name]
    n_heads = value.shape[1 if mapped else 2]
    assert whole.effect.shape == (2, n_heads)
    assert alone.effect.shape == (2, n_heads, 4)
    everywhere = (slice(None), 1) if mapped else (slice(None), slice(None), 1)
    assert whole.patched[1, 1].item() == pytest.approx(by_hand(model, corrupt, name, value, everywhere))
    there = (slice(None), 1, 3) if mapped else (slice(None), 3, 1)
    assert alone.patched[1, 1, 3].item() == pytest.approx(by_hand(model, corrupt, name, value, there))


@every_mixer
def test_every_mixers_heads_can_be_patched(case: Case) -> None:
    model, (clean, corrupt) = case.model(), two_texts()
    found = patch_heads(model, clean, corrupt, ANSWERS)
    assert found.effect.isfinite().all()
    assert found.effect.abs().max() > 0


def test_all_heads_of_a_last_layer_without_feedforward_restore_what_its_output_does() -> None:
    model, (clean, corrupt) = Case("", "softmax,norm=none,feedforward=none,n_layers=1").model(), two_texts()
    heads = patch_heads(model, clean, corrupt, ANSWERS).effect
    whole = patch_positions(model, clean, corrupt, ANSWERS, site="attn_out").effect
    assert heads.sum().item() == pytest.approx(whole[0, -1].item())


def test_the_metric_is_a_function_or_two_answers_a_row() -> None:
    model, (clean, corrupt) = Case("", "softmax").model(), two_texts()
    found = [
        patch_positions(model, clean, corrupt, metric).effect
        for metric in (ANSWERS, difference, logit_difference(3, 5), ([3] * 3, torch.tensor([5] * 3)))
    ]
    for other in found[1:]:
        close(other, found[0])
    logits = torch.randn(BATCH, 4, 17)
    rows = [logits[row, at, 2] - logits[row, at, row] for row, at in enumerate((0, 3, 1))]
    close(logit_difference(2, [0, 1, 2], position=[0, 3, 1])(logits), torch.stack(rows).mean(), 1e-6)


def test_padding_is_read_as_it_is() -> None:
    model, (clean, corrupt) = Case("", "softmax").model(), two_texts()
    real = torch.ones_like(clean, dtype=torch.bool)
    real[:, 6:] = False
    metric = logit_difference(3, 5, position=5)
    padded = patch_positions(model, clean, corrupt, metric, real=real).effect
    close(padded[:, :6], patch_positions(model, clean[:, :6], corrupt[:, :6], metric).effect)


def test_the_model_is_left_as_it_was() -> None:
    model, (clean, corrupt) = Case("", "softmax,dropout_residual=0.5").model(), two_texts()
    before = model(clean)
    model.train()
    patch_heads(model, clean, corrupt, ANSWERS)
    assert model.training
    assert torch.equal(model.eval()(clean), before)


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"site": "resid_per"}, "did you mean 'resid_pre'"),
        ({"site": "pattern"}, "nothing that can be patched here"),
        ({"direction": "denoise"}, "did you mean 'denoising'"),
        ({"metric": (3, 17)}, "there is no answer 17: choose from 0 to 16"),
        ({"metric": (3, [1, 2])}, "one for each of the 3 rows"),
        ({"metric": (3,)}, "two answers"),
        ({"metric": lambda logits: logits}, "one finite number"),
        ({"metric": lambda logits: logits.sum() * float("nan")}, "one finite number"),
        ({"metric": lambda logits: 1.0}, "nothing to restore"),
    ],
)
def test_what_cannot_be_patched_is_refused(choices: dict[str, Any], said: str) -> None:
    clean, corrupt = two_texts()
    with pytest.raises(UserError, match=said):
        patch_positions(Case("", "softmax").model(), clean, corrupt, **{"metric": ANSWERS, **choices})


def test_a_value_never_worked_out_is_named_and_texts_of_two_lengths_are_refused() -> None:
    clean, corrupt = two_texts()
    bare = Case("", "softmax,feedforward=none").model()
    with pytest.raises(UserError, match=r"never works out blocks\.0\.hook_mlp_out"):
        patch_positions(bare, clean, corrupt, ANSWERS, site="mlp_out")
    with pytest.raises(UserError, match=r"never works out blocks\.0\.attn\.hook_pattern"):
        patch_heads(Case("", "lstm").model(), clean, corrupt, ANSWERS, site="pattern")
    with pytest.raises(UserError, match="alike in rows and length"):
        patch_positions(bare, clean, corrupt[:, :5], ANSWERS)
    with pytest.raises(UserError, match="no token to patch"):
        patch_positions(bare, clean[:, :0], corrupt[:, :0], ANSWERS)
    with pytest.raises(UserError, match="nothing to restore"):
        patch_positions(bare, clean, clean, ANSWERS)


@directions
def test_it_draws_itself(direction: str) -> None:
    model, (clean, corrupt) = Case("", "softmax").model(), two_texts()
    found = patch_positions(model, clean, corrupt, ANSWERS, direction=direction)
    assert found.draw(labels=list("abcdefghi")).table.head[5] == "4 e"
    assert ", position 4 matters most" in found.draw().title
    heads = patch_heads(model, clean, corrupt, ANSWERS, by_position=True, direction=direction)
    assert [row[0] for row in heads.draw().table.rows] == [f"{layer}.{head}" for layer in (0, 1) for head in range(4)]
    assert "<svg" in patch_heads(model, clean, corrupt, ANSWERS)._repr_html_()
