"""A model that was looked at is as it was: its flags, its functions, its gradients and its randomness."""

from typing import Any

import pytest
import torch
from torch import Tensor

from headstock import tasks
from headstock.errors import UserError
from headstock.instruments.losses import loss_by_position
from headstock.instruments.passes import PATTERN, each, lists, look, look_at_weights, undisturbed, visible_to
from headstock.model.mixers import mixer_class
from headstock.model.transformer import build
from tests.model.cases import BATCH, CASES, ONE_A_MIXER, TIME, VOCAB, Case, averaging, every_mixer, some_ids


@every_mixer
def test_looking_leaves_flags_gradients_functions_and_randomness_as_they_were(case: Case) -> None:
    model = case.model().train()
    model.blocks[1].eval()
    flags = [module.training for module in model.modules()]
    seen: list[str] = []
    handle = model.add_hook("hook_embed", lambda _, hook: seen.append(hook.name))
    before, random = model(some_ids()), torch.get_rng_state()
    look(model, some_ids(), {"hook_resid_pre": lambda *_: None})
    assert [module.training for module in model.modules()] == flags
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.equal(model(some_ids()), before)
    assert handle.names == ["hook_embed"]
    assert len(seen) == 3
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.is_grad_enabled()


def test_a_model_is_as_it_was_after_a_look_that_failed() -> None:
    model = build("softmax", vocab_size=VOCAB, context=TIME, d_model=8, n_heads=2).train()

    def fails(value: Tensor, layer: int) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        look(model, some_ids(), {"hook_resid_pre": fails})
    assert model.training
    model(some_ids())  # nobody waits any more


@averaging(ONE_A_MIXER)
def test_weights_are_shown_layer_by_layer_as_the_model_gives_them(case: Case) -> None:
    model, shown = case.model(), []
    look_at_weights(model, some_ids(), lambda w_bhqk, layer: shown.append((layer, w_bhqk.clone())))
    assert [layer for layer, _ in shown] == [0, 1]
    for (_, ours), theirs in zip(shown, model.weights(some_ids()), strict=True):
        assert torch.equal(ours, theirs)


@averaging([case for case in CASES if case.name != "no-blocks"])
def test_what_is_said_to_be_hidden_weighs_nothing_and_a_softmax_weighs_the_rest(case: Case) -> None:
    model = case.model()
    real = torch.tensor([[True] * TIME, [False] * 3 + [True] * 6, [True] * 4 + [False] * 5])
    documents = torch.tensor([[0] * 4 + [1] * 5, [0] * 5 + [1] * 4, [0] * TIME])
    visible = visible_to(model, some_ids(), real, documents).expand(BATCH, -1, -1, -1)
    for w_bhqk in model.weights(some_ids(), real=real, documents=documents):
        shown = visible.expand_as(w_bhqk)
        assert not w_bhqk[~shown].any()
        if case.config().mixer in ("softmax", "uniform", "differential2", "forgetting", "table"):
            assert w_bhqk[shown].all()


def test_a_mixer_whose_forward_is_its_own_is_asked_for_its_weights() -> None:
    model = build("tests.instruments.test_passes:OwnForward", vocab_size=VOCAB, context=TIME, d_model=8, n_heads=2)
    assert not lists(model, PATTERN)
    shown: list[int] = []
    look_at_weights(model, some_ids(), lambda w_bhqk, layer: shown.append(layer))
    assert shown == [0, 1]


def test_a_model_without_blocks_and_a_mixer_without_weights_are_refused() -> None:
    with pytest.raises(UserError, match="no blocks"):
        look(build("softmax", vocab_size=3, context=4, n_layers=0), torch.zeros(1, 2, dtype=torch.int64), {})
    with pytest.raises(UserError, match="lstm has no weights to measure"):
        look_at_weights(build("lstm", vocab_size=3, context=4), torch.zeros(1, 2, dtype=torch.int64), lambda *_: None)


def test_inside_there_are_gradients_only_where_they_are_asked_for() -> None:
    model = build("softmax", vocab_size=3, context=4)
    with undisturbed(model):
        assert not torch.is_grad_enabled()
    with torch.no_grad(), undisturbed(model, gradients=True):
        assert torch.is_grad_enabled()


class OwnForward(mixer_class("softmax")):  # type: ignore[misc]
    """Softmax that shows nobody what it does on the way."""

    def forward(self, x_bqm: Tensor, frame: object) -> Tensor:
        heads = self.read(x_bqm, frame)
        return self.out(self.mix_plainly(heads), heads)

    def hook_names(self) -> list[str]:
        return []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (tasks.get("aab"), "or a list of Batch, not Aab"),
        (some_ids(), "not Tensor"),
        (5, "not int"),
        ("text", "not str"),
        ([some_ids()], "Tensor is among them"),
    ],
)
def test_what_is_no_batches_is_refused_in_a_sentence(given: Any, said: str) -> None:
    with pytest.raises(UserError, match=f"batches are wanted, .*{said}"):
        list(each(given))
    with pytest.raises(UserError, match="batches are wanted"):
        loss_by_position(CASES[0].model(), given)
