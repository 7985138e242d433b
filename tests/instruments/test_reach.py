"""How far a gradient reaches: the Jacobian of the logits by each embedding, exactly or by probes."""

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.reach import gradient_reach
from headstock.model.transformer import build
from tests.model.cases import BATCH, TIME, VOCAB, Case, close, every_mixer, some_ids

ALL = VOCAB
"""Probes enough for exactness."""


@every_mixer
def test_with_few_tokens_it_is_the_norm_of_the_jacobian(case: Case) -> None:
    model, ids = case.model(), some_ids(1)

    def logits(embedded: Tensor) -> Tensor:
        return model.run_with_hooks(ids, [("hook_embed", lambda *_: embedded)])[0, 5]

    jacobian = torch.autograd.functional.jacobian(logits, model.embed(ids).detach())  # (vocabulary, 1, time, model)
    expected = jacobian[:, 0].square().sum((0, 2)).sqrt()
    found = gradient_reach(model, ids, from_position=5, probes=ALL)
    close(found.norms[0], expected[:6].flip(0))
    assert not expected[6:].any()
    assert not found.standard_error.any()
    assert found.from_position == (5,)


def test_probes_estimate_it_with_the_error_they_state() -> None:
    model, ids = Case("softmax", "softmax+rope").model(), some_ids(8)
    exact = gradient_reach(model, ids, probes=ALL).norms
    far = []
    for seed in range(20):
        found = gradient_reach(model, ids, probes=VOCAB - 1, seed=seed)
        far.append((found.norms - exact) / found.standard_error)
    off = torch.stack(far)
    assert 0.7 < off.std() < 1.4
    assert torch.equal(found.norms, gradient_reach(model, ids, probes=VOCAB - 1, seed=19).norms)


@every_mixer
@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
def test_a_padded_row_reaches_as_far_as_the_row_alone(case: Case, left: bool) -> None:
    model, ids = case.model(), some_ids(2)
    kept = slice(3, None) if left else slice(0, TIME - 3)
    real = torch.ones(2, TIME, dtype=torch.bool)
    real[1] = False
    real[1, kept] = True
    found = gradient_reach(model, ids, real=real, probes=ALL)
    close(found.norms[1, : TIME - 3], gradient_reach(model, ids[1:, kept], probes=ALL).norms[0])
    assert found.norms[1, TIME - 3 :].isnan().all()
    close(found.norms[:1], gradient_reach(model, ids[:1], probes=ALL).norms)
    assert found.from_position == (TIME - 1, TIME - 4)
    assert found.by_distance.isfinite().all()


def test_a_uniform_average_reaches_every_earlier_token_alike() -> None:
    model = build(
        "uniform+none,norm=none,feedforward=none", vocab_size=VOCAB, context=TIME, d_model=8, n_heads=2, n_layers=1
    ).double()
    norms = gradient_reach(model, some_ids(), probes=ALL).norms
    close(norms[:, 1:], norms[:, 1:2].expand(-1, TIME - 1))
    assert (norms[:, 0] > norms[:, 1]).all()


def test_a_window_of_three_ends_what_one_block_can_reach_and_two_blocks_reach_twice_as_far() -> None:
    for n_layers, reached in ((1, 3), (2, 5)):
        norms = gradient_reach(Case("window", "softmax+rope,window=3").model(n_layers=n_layers), some_ids()).norms
        assert (norms[:, :reached] > 0).all()
        assert not norms[:, reached:].any()


@pytest.mark.parametrize(("forgetting", "below"), [(-1.0, 1e-60), (-2.0, 1e-170)])
def test_a_gradient_is_no_zero_where_float32_or_squares_have_no_numbers_for_it(forgetting: float, below: float) -> None:
    model, ids = build("lstm+none", vocab_size=3, context=300, d_model=8, n_heads=2, n_layers=1), some_ids(1, 300) % 3
    with torch.no_grad():
        model.blocks[0].mixer.bias[8:16] = forgetting
    found = gradient_reach(model, ids)
    assert 0 < found.norms[0, -1] < below
    assert model.embed.weight.dtype == torch.float32
    torch.testing.assert_close(found.norms, gradient_reach(model.double(), ids).norms)


def test_functions_that_wait_in_the_model_are_asked_whatever_its_dtype() -> None:
    model = build("softmax", vocab_size=VOCAB, context=TIME, d_model=8, n_heads=2, n_layers=1)
    with model.hooks([("blocks.0.hook_attn_out", lambda value, _: torch.zeros_like(value))]):
        norms = gradient_reach(model, some_ids()).norms
    assert (norms[:, 0] > 0).all()
    assert not norms[:, 1:].any()


def test_rows_join_as_a_geometric_mean() -> None:
    found = gradient_reach(Case("softmax", "softmax").model(), some_ids())
    close(found.by_distance, found.norms.log().mean(0).exp())
    close(found.relative, found.by_distance / found.by_distance[0])
    assert found.norms.shape == (BATCH, TIME)


def test_reach_draws_itself_with_the_rest_as_title() -> None:
    found = gradient_reach(Case("lstm", "lstm+none").model(), some_ids())
    assert found.draw().title.startswith("8 tokens back, ")
    assert "<svg" in found._repr_html_()


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"from_position": TIME}, f"no position {TIME} in a row of {TIME} tokens"),
        ({"from_position": -1 - TIME}, "no position"),
        ({"probes": 1}, "draw two or more"),
        ({"real": torch.zeros(BATCH, TIME, dtype=torch.bool)}, "in a row of 0 tokens"),
    ],
)
def test_what_cannot_be_read_is_refused(choices: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        gradient_reach(Case("softmax", "softmax").model(), some_ids(), **choices)


def test_in_inference_mode_there_is_no_gradient_to_reach_anything() -> None:
    with torch.inference_mode(), pytest.raises(UserError, match="measure them outside it"):
        gradient_reach(Case("softmax", "softmax").model(), some_ids())


def test_a_model_that_reads_both_ways_is_refused() -> None:
    with pytest.raises(UserError, match="reads both ways"):
        gradient_reach(Case("both", "softmax,causal=false").model(), some_ids())


def test_each_row_is_taken_as_a_part_of_its_own_token_however_long_the_others_are() -> None:
    model = Case("", "softmax").model()
    ids, real = some_ids(2), torch.ones(2, TIME, dtype=torch.bool)
    real[1, 4:] = False
    both, alone = gradient_reach(model, ids, real=real), gradient_reach(model, ids[:1])
    close(both.relative[4:], alone.relative[4:])
    assert both.relative[0] == 1.0
