"""A model in fewer bits: exactly what was named is rounded, and nothing is left of it afterwards."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from headstock.errors import UserError
from headstock.instruments.quantising import quantised
from headstock.instruments.rounding import rounded
from headstock.model.transformer import Transformer
from tests.instruments.test_user_mixers import OWN
from tests.model.cases import ONE_A_MIXER, Case, close, every_mixer, some_ids

SCORED = [case for case in ONE_A_MIXER if case.variant not in ("linear", "delta", "retention", "lstm")]
UNSCORED = [case for case in ONE_A_MIXER if case not in SCORED]
every_scored = pytest.mark.parametrize("case", SCORED, ids=str)


def shows_scores(model: Transformer) -> list[str]:
    return [name for name in model.hook_names() if "hook_attn_scores" in name]


@every_scored
@pytest.mark.parametrize("per", ["tensor", "row"])
def test_attention_logits_are_rounded_as_every_mixer_shows_them(case: Case, per: str) -> None:
    model, ids = case.model(), some_ids()
    seen: dict[str, Tensor] = {}
    names = shows_scores(model)

    def see(scores: Tensor, hook) -> None:
        seen[hook.name] = scores

    with model.hooks([(names, see)]), quantised(model, 3, per=per):  # the outer sees scores first
        _, cache = model.run_with_cache(ids, names)
    for name, scores in seen.items():
        assert torch.equal(cache[name], rounded(scores, 3, per))
        assert torch.equal(cache[name] == -math.inf, scores == -math.inf)
        assert (scores == -math.inf).any()


@every_scored
def test_at_many_bits_attention_is_what_it_was(case: Case) -> None:
    model, ids = case.model(), some_ids()
    with torch.no_grad(), quantised(model, 32):
        close(model(ids), Transformer.forward(case.model(), ids), 1e-6)


def test_one_bit_of_logits_is_a_uniform_average_of_what_is_visible() -> None:
    model, ids = Case("", "softmax,window=4").model(), some_ids()
    with quantised(model, 1):
        weights = model.weights(ids)[0][0, 0]
    close(weights[1, :3], torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64))
    close(weights[8], torch.tensor([0.0] * 5 + [0.25] * 4, dtype=torch.float64))


@pytest.mark.parametrize("case", SCORED[2:], ids=str)
def test_a_later_token_moves_no_earlier_logit_when_each_query_has_its_scale(case: Case) -> None:
    model, ids = case.model(), some_ids()
    later = ids.clone()
    later[:, -1] = (later[:, -1] + 1) % 17
    with quantised(model, 3, per="row"):
        close(model(ids)[:, :-1], model(later)[:, :-1])


@pytest.mark.parametrize("case", UNSCORED, ids=str)
def test_a_mixer_that_shows_no_scores_is_refused(case: Case) -> None:
    with pytest.raises(UserError, match="shows no attention logits"), quantised(case.model(), 4):
        pass


@every_mixer
@pytest.mark.parametrize("per", ["tensor", "row"])
def test_weights_are_rounded_inside_and_restored_bit_for_bit(case: Case, per: str) -> None:
    model, ids = case.model(), some_ids()
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    logits = model(ids)
    with quantised(model, 3, "weights", per=per):
        for name, parameter in model.named_parameters():
            matrix = name.startswith("blocks.") and parameter.ndim >= 2
            assert torch.equal(parameter, rounded(before[name], 3, per) if matrix else before[name])
        assert not torch.equal(model(ids), logits)
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())
    assert torch.equal(model(ids), logits)


@pytest.mark.parametrize("of", ["attention logits", "weights", "activations"])
def test_an_exception_inside_leaves_nothing(of: str) -> None:
    model, ids = Case("", "softmax").model().train(), some_ids()
    logits, owned = model(ids), [parameter.data_ptr() for parameter in model.parameters()]
    inside = []

    def fail() -> None:
        with quantised(model, 2, of):
            inside.append(model(ids))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not torch.equal(inside[0], logits)
    assert torch.equal(model(ids), logits)
    assert [parameter.data_ptr() for parameter in model.parameters()] == owned
    assert model.training
    assert not any(part._forward_pre_hooks for part in model.modules())


@pytest.mark.parametrize("case", [case for case in ONE_A_MIXER if case.variant != "lstm"], ids=str)
@pytest.mark.parametrize("per", ["tensor", "row"])
def test_every_linear_map_reads_rounded_activations(case: Case, per: str) -> None:
    model, ids = case.model(), some_ids()
    maps = [part for part in model.blocks.modules() if isinstance(part, nn.Linear)]
    whole: list[Tensor] = []
    fewer: list[Tensor] = []
    for part in maps:
        part.register_forward_pre_hook(lambda _, given: whole.append(given[0]))
    with quantised(model, 3, "activations", per=per):
        for part in maps:
            part.register_forward_pre_hook(lambda _, given: fewer.append(given[0]))
        whole.clear()
        model(ids)
    assert len(whole) == len(fewer) == len(maps)
    for one, other in zip(whole, fewer, strict=True):
        assert torch.equal(other, rounded(one, 3, per))
    with quantised(model, 32, "activations", per=per):
        close(model(ids), case.model()(ids), 1e-6)


def test_several_are_rounded_together() -> None:
    model, ids = Case("", "differential").model(), some_ids()
    with quantised(model, 3, "weights"), quantised(model, 3, "activations"), quantised(model, 3):
        expected = model(ids)
    with quantised(model, 3, ["attention logits", "weights", "activations"]):
        assert torch.equal(model(ids), expected)


def test_a_matrix_that_two_parts_share_is_rounded_once() -> None:
    model = Case("", "softmax").model()
    shared = model.blocks[1].mixer.query.weight = model.blocks[0].mixer.query.weight
    before = shared.detach().clone()
    with quantised(model, 3, "weights"):
        assert torch.equal(shared, rounded(before, 3))
    assert torch.equal(shared, before)


def test_a_map_whose_input_cannot_be_rounded_is_refused() -> None:
    lstm, inside = Case("", "lstm").model(), []
    with pytest.raises(UserError, match=r"0\.mixer\.input.* lstm"), quantised(lstm, 4, "activations"):
        inside.append("entered")
    assert not inside
    assert not any(part._forward_pre_hooks for part in lstm.modules())
    model = Case("", "softmax").model()
    with pytest.raises(UserError, match="hook_result"), quantised(model, 4, "activations"):
        model.run_with_cache(some_ids(), "blocks.0.attn.hook_result")


def test_what_is_nothing_to_round_is_refused(tmp_path: Path) -> None:
    model = Case("", "softmax").model()
    (tmp_path / "own.py").write_text(OWN)
    for (given, bits, of, per), said in {
        (model, 4, "weigths", "tensor"): "'weights'",
        (model, 4, (), "tensor"): "choose of attention logits, weights, activations",
        (model, 0, "weights", "tensor"): "bits=0",
        (model, 4, "weights", "rows"): "row",
        (Case("", "softmax,n_layers=0").model(), 4, "weights", "tensor"): "no blocks",
        (Case("", f"{tmp_path}/own.py:Shifted").model(), 4, "attention logits", "tensor"): "shows no attention logits",
    }.items():
        with pytest.raises(UserError, match=said), quantised(given, bits, of, per=per):
            pass


def test_the_trial_pass_is_shown_to_no_function_of_the_users() -> None:
    model, shapes = Case("", "softmax").model(), []
    sees = ("blocks.0.hook_resid_pre", lambda x, hook: shapes.append(tuple(x.shape)))
    with model.hooks([sees]), quantised(model, 4, "activations"):
        model(some_ids())
    assert len(shapes) == 1


@pytest.mark.parametrize("of", ["weights", "activations"])
def test_where_there_is_nothing_to_round_that_is_said(of: str) -> None:
    bare = Case("", "uniform,feedforward=none,value_map=identity,output_map=false").model()
    with pytest.raises(UserError, match="so there is nothing to quantise"), quantised(bare, 8, of):  # type: ignore[arg-type]
        pass
