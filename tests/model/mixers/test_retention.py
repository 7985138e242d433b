"""Retention: dot products that fade, a norm a head, and a gate."""

import pytest
import torch
import torch.nn.functional as F

from headstock.errors import UserError
from headstock.model.cache import Cache
from headstock.model.frame import Frame
from tests.model.cases import TIME, Case, close, some_ids


def test_weights_are_dot_products_that_fade_at_each_heads_rate() -> None:
    model, ids = Case("retention", "retention+none,n_layers=1").model(), some_ids()
    block = model.blocks[0]
    x = block.mixer_norm(model.embed(ids))
    q, k = (m(x).view(3, TIME, 4, 4).transpose(1, 2) for m in (block.mixer.query, block.mixer.key))
    places = torch.arange(TIME)
    decay = torch.stack([(1 - 2.0 ** (-5 - h)) ** (places[:, None] - places).double().clamp(min=0) for h in range(4)])
    close(model.weights(ids)[0], (q @ k.mT / 2 * decay).tril())


def test_the_output_is_normed_a_head_without_a_weight_and_gated() -> None:
    model, ids = Case("retention", "retention+none,n_layers=1").model(), some_ids()
    block = model.blocks[0]
    x, mixer = block.mixer_norm(model.embed(ids)), block.mixer
    averages = model.weights(ids)[0] @ mixer.value(x).view(3, TIME, 4, 4).transpose(1, 2)
    normed = averages / (averages.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    gated = normed.transpose(1, 2).flatten(2) * F.silu(x @ mixer.swish.weight.T)
    close(mixer(x, model._frame(ids, None, None, None, None)), mixer.output(gated))


def test_queries_that_share_a_key_head_share_its_rate() -> None:
    mixer = Case("retention", "retention,n_kv_heads=2").model().blocks[0].mixer
    rates = mixer.log_decay_h(torch.zeros(0, dtype=torch.float64)).exp()
    close(rates, torch.tensor([1 - 1 / 32, 1 - 1 / 64], dtype=torch.float64), atol=1e-15)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("position", ["none", "rope", "xpos"])
def test_padding_in_between_is_no_distance(position: str, plain: bool) -> None:
    model, ids = Case("retention", f"retention+{position}").model(), some_ids(batch=1)
    model.plain = plain
    real = torch.tensor([[True, False, True, True, False, False, True, True, True]])
    close(model(ids, real=real)[real], model(ids[real][None])[0])
    cache = Cache(2)
    pieces = [model(ids[:, i, None], real=real[:, i, None], cache=cache) for i in range(TIME)]
    close(torch.cat(pieces, dim=1)[real], model(ids[real][None])[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_long_past_fades_without_leaving_the_dtype(dtype: torch.dtype) -> None:
    model, ids = Case("retention", "retention+none,n_layers=1").model(dtype), some_ids(batch=1, time=6000)
    with torch.no_grad():
        weights = model.weights(ids[:, :4000])[0]
        assert weights.isfinite().all()
        assert weights[0, 0, -1, :200].abs().max() < 1e-30
        assert model(ids).isfinite().all()


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("+alibi", "its own decay says how a key fades with distance; choose another position, such as retention"),
        (",window=3", "cannot be told from the rest; leave window out"),
        (",soft_cap=2", "could not be read from a state of fixed size"),
        (",causal=false", "its decay runs from the past to the present"),
    ],
)
def test_what_means_nothing_to_a_fading_state_is_refused(key: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        Case("refused", f"retention{key}").model()


def test_another_sequence_is_refused() -> None:
    x = torch.randn(1, 2, 16, dtype=torch.float64)
    with pytest.raises(UserError, match="cannot read another sequence: its decay needs distances"):
        Case("retention", "retention").model().blocks[0].mixer(x, Frame.across(x, 2))
