"""The LSTM: torch's own, with a state that is read on from, and nothing that needs keys."""

import pytest
import torch
from torch import nn

from headstock.errors import UserError
from headstock.model.accounting import flops_per_token
from headstock.model.cache import Cache
from headstock.model.frame import Frame
from headstock.model.mixers import mixer_class
from headstock.model.transformer import build
from headstock.model.visibility import Visible
from tests.model.cases import SIZES, TIME, Case, close, some_ids

CPU = torch.device("cpu")


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("d_head", [4, 3])
def test_it_equals_torchs_module_with_the_same_numbers(d_head: int, plain: bool) -> None:
    mixer = Case("lstm", f"lstm,d_head={d_head}").model().blocks[0].mixer
    theirs = nn.LSTM(16, 4 * d_head, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(mixer.input.weight)
        theirs.weight_hh_l0.copy_(mixer.recurrent.weight)
        theirs.bias_ih_l0.copy_(mixer.bias)
        theirs.bias_hh_l0.zero_()
    x = torch.randn(3, TIME, 16, dtype=torch.float64)
    expected, (h, c) = theirs(x)
    cache = Cache(2)
    ours = mixer(x, Frame(Visible(TIME, TIME, CPU), caches=cache.blocks, plain=plain))
    close(ours, mixer.output(expected))
    close(torch.stack(cache.blocks[0].state), torch.cat([h, c]))


def test_nothing_is_forgotten_at_first_and_maps_are_drawn_by_their_inputs() -> None:
    mixer = build("lstm", **{**SIZES, "d_model": 64}).blocks[0].mixer
    assert mixer.bias.tolist() == [0.0] * 64 + [1.0] * 64 + [0.0] * 128
    for linear in (mixer.input, mixer.recurrent):
        assert linear.weight.std().item() == pytest.approx((3 * 64) ** -0.5, rel=0.05)


def test_it_is_a_floor_without_weights_and_says_so() -> None:
    kind = mixer_class("lstm")
    assert (kind.is_floor, kind.weights_are) == (True, "none")
    with pytest.raises(UserError, match="LSTM has no weights to show: its state is no average of values"):
        Case("lstm", "lstm").model().weights(some_ids())


def test_its_operations_do_not_grow_with_the_length() -> None:
    config = Case("lstm", "lstm").config()
    assert flops_per_token(config, 1) == flops_per_token(config, 1000)


def test_a_narrow_lstm_computes_in_float32() -> None:
    mixer = Case("lstm", "lstm,output_map=false").model(torch.bfloat16).blocks[0].mixer
    x = torch.randn(3, TIME, 16).bfloat16()
    frame = Frame(Visible(TIME, TIME, CPU))
    close(mixer(x, frame).float(), mixer.float()(x.float(), frame).bfloat16().float(), atol=0)


REFUSED = {
    "+rope": "no queries and keys to rotate",
    "+rope-interleaved": "no queries and keys to rotate",
    "+xpos": "no queries and keys to rotate",
    "+alibi": "no scores to take a penalty from",
    ",window=3": "cannot let one token go",
    ",soft_cap=2": "no scores to cap",
    ",qk_norm=rmsnorm": "no queries and keys to norm",
    ",query_key=shared": "query_key=shared: it has no queries and keys",
    ",value_map=identity": "no values",
    ",n_kv_heads=2": "no keys and values to share",
    ",qkv_bias=true": "biases already",
    ",causal=false": "in one order",
    ",dropout_attention=0.1": "no weights to drop",
}


@pytest.mark.parametrize("key", REFUSED)
def test_what_has_no_effect_on_it_is_refused(key: str) -> None:
    with pytest.raises(UserError, match=REFUSED[key]):
        Case("refused", f"lstm{key}").model()


def test_another_sequence_is_refused() -> None:
    x = torch.randn(1, 2, 16, dtype=torch.float64)
    with pytest.raises(UserError, match="cannot read another sequence: it has no keys and values"):
        Case("lstm", "lstm").model().blocks[0].mixer(x, Frame.across(x, 2))
