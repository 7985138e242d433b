"""Own attention against torch's own, with copied weights, in float32."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from headstock.model.attention import masked_softmax, with_zero
from headstock.model.config import config_of
from headstock.model.frame import Frame
from headstock.model.heads import Heads
from headstock.model.mixers.base import ScoreMixer
from headstock.model.mixers.softmax import Softmax
from headstock.model.mixers.softmax1 import Softmax1
from headstock.model.visibility import Visible
from tests.model.cases import both_paths, close

WIDTH, HEADS, TIME, BATCH = 128, 4, 100, 3
VISIBLE = Visible(TIME, TIME, torch.device("cpu"))


def inputs() -> torch.Tensor:
    return torch.randn(BATCH, TIME, WIDTH)


def mixed(mixer: ScoreMixer, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plain: bool) -> torch.Tensor:
    """Average plainly, by weights that are seen, or fast."""
    if not plain:
        return mixer.mix_fast(q, k, v, VISIBLE)
    weights = mixer.weights_of(Heads(q, k, v, None, VISIBLE, inputs()))
    return weights @ v.repeat_interleave(HEADS // v.shape[1], dim=1)


@both_paths
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("biases", [False, True], ids=["no-bias", "biases"])
def test_softmax_is_torchs_multihead_attention(biases: bool, padded: bool, plain: bool) -> None:
    config = config_of(
        f"softmax,d_model={WIDTH},n_heads={HEADS},qkv_bias={biases},output_bias={biases}", vocab_size=2, context=TIME
    )
    ours, theirs = Softmax(config, 0), nn.MultiheadAttention(WIDTH, HEADS, bias=biases, batch_first=True)
    with torch.no_grad():
        if biases:  # zeros where torch starts
            nn.init.normal_(theirs.in_proj_bias, std=0.1)
            nn.init.normal_(theirs.out_proj.bias, std=0.1)
        for own, third in zip((ours.query, ours.key, ours.value), range(3), strict=True):
            rows = slice(third * WIDTH, (third + 1) * WIDTH)
            own.weight.copy_(theirs.in_proj_weight[rows])
            if biases:
                own.bias.copy_(theirs.in_proj_bias[rows])
        ours.output.load_state_dict(theirs.out_proj.state_dict())
    x = inputs()
    real = torch.arange(TIME).expand(BATCH, -1) < (80 if padded else TIME)
    frame = Frame(Visible(TIME, TIME, x.device, real_bk=real if padded else None), None, None, None, plain)
    hidden = ~torch.ones(TIME, TIME, dtype=torch.bool).tril()  # torch's mask means the opposite
    expected, maps = theirs(x, x, x, attn_mask=hidden, key_padding_mask=~real, average_attn_weights=False)
    close(ours(x, frame)[real], expected[real], atol=1e-6)
    close(ours.weights(x, frame).transpose(1, 2)[real], maps.transpose(1, 2)[real], atol=1e-6)


@both_paths
@pytest.mark.parametrize("key_heads", [4, 2, 1])
def test_mixing_is_torchs_scaled_dot_product_attention(key_heads: int, plain: bool) -> None:
    config = config_of(f"softmax,d_model={WIDTH},n_heads={HEADS},n_kv_heads={key_heads}", vocab_size=2, context=TIME)
    mixer = Softmax(config, 0)
    q = torch.randn(BATCH, HEADS, TIME, 32)
    k, v = torch.randn(2, BATCH, key_heads, TIME, 32)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    close(mixed(mixer, q, k, v, plain), expected, atol=1e-6)


@both_paths
def test_softmax1_is_torchs_attention_over_one_more_key_of_zeros(plain: bool) -> None:
    config = config_of(f"softmax1,d_model={WIDTH},n_heads={HEADS}", vocab_size=2, context=TIME)
    mixer = Softmax1(config, 0)
    q, k, v = torch.randn(3, BATCH, HEADS, TIME, 32)
    mask = F.pad(torch.ones(TIME, TIME, dtype=torch.bool).tril(), (1, 0), value=True)
    expected = F.scaled_dot_product_attention(q, with_zero(k), with_zero(v), attn_mask=mask)
    close(mixed(mixer, q, k, v, plain), expected, atol=1e-6)


def test_masked_softmax_is_softmax_of_minus_infinity() -> None:
    scores = 10 * torch.randn(BATCH, HEADS, TIME, TIME)
    expected = scores.masked_fill(~VISIBLE.dense, -math.inf).softmax(-1)
    close(masked_softmax(scores, VISIBLE.dense), expected, atol=0.0)
