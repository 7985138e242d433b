"""Own attention beside torch's, with copied weights."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstock.model.config import config_of
from headstock.model.frame import Frame
from headstock.model.mixers.softmax import Softmax
from headstock.model.visibility import Visible
from headstock.studies.base import Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.chapter.shared import SOURCE, WIDTH
from headstock.studies.figures import figure

BATCH, TIME, HEADS = 4, 128, 4
ROUNDING = 1e-6
"""Of sums of a hundred products of float32 below 1, in another order."""


def beside_multihead(opened: Opened) -> Measured:
    """Measure how far our softmax mixer is from `nn.MultiheadAttention` whose weights it was given."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(opened.seed)
        theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
        nn.init.normal_(theirs.in_proj_bias, std=0.1)  # zeros where torch starts, which would hide a lost bias
        nn.init.normal_(theirs.out_proj.bias, std=0.1)
        x_bqm = torch.randn(BATCH, TIME, WIDTH)
    ours = copied(theirs)
    hidden_qk = torch.ones(TIME, TIME, dtype=torch.bool).triu(1)
    with torch.no_grad():
        expected_bqm, _ = theirs(x_bqm, x_bqm, x_bqm, attn_mask=hidden_qk)
        return Measured(_figures(expected_bqm, {name: ours(x_bqm, _frame(plain)) for name, plain in _PATHS}))


def beside_scaled_dot_product(opened: Opened) -> Measured:
    """Measure how far our mixing is from `F.scaled_dot_product_attention` of the same queries, keys and values."""
    draws = torch.Generator().manual_seed(opened.seed)
    x_bqm = torch.randn(BATCH, TIME, WIDTH, generator=draws)
    ours = Softmax(
        config_of(f"softmax,d_model={WIDTH},n_heads={HEADS},output_map=false", vocab_size=2, context=TIME), 0
    )
    with torch.no_grad():
        for weight in ours.parameters():
            weight.copy_(torch.randn(weight.shape, generator=draws) / WIDTH**0.5)
        split = (BATCH, TIME, HEADS, WIDTH // HEADS)
        q, k, v = (one(x_bqm).view(split).transpose(1, 2) for one in _maps(ours))
        expected_bqm = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return Measured(_figures(expected_bqm, {name: ours(x_bqm, _frame(plain)) for name, plain in _PATHS}))


_PATHS = (("plain", True), ("fast", False))


def copied(theirs: nn.MultiheadAttention) -> Softmax:
    """Give our mixer with the weights of torch's."""
    variant = f"softmax,d_model={WIDTH},n_heads={HEADS},qkv_bias=true,output_bias=true"
    ours = Softmax(config_of(variant, vocab_size=2, context=TIME), 0)
    with torch.no_grad():
        for third, own in enumerate(_maps(ours)):
            rows = slice(third * WIDTH, (third + 1) * WIDTH)
            own.weight.copy_(theirs.in_proj_weight[rows])
            own.bias.copy_(theirs.in_proj_bias[rows])
        assert ours.output is not None
        ours.output.load_state_dict(theirs.out_proj.state_dict())
    return ours


def _maps(mixer: Softmax) -> list[nn.Linear]:
    maps = [mixer.query, mixer.key, mixer.value]
    return [one for one in maps if one is not None]


def _frame(plain: bool) -> Frame:
    return Frame(Visible(TIME, TIME, torch.device("cpu")), None, None, None, plain)


def _figures(expected: Tensor, given: dict[str, Tensor]) -> dict[str, float]:
    apart = {name: float((one - expected).abs().max()) for name, one in given.items()}
    return {**apart, "magnitude": float(expected.abs().mean())}


STUDY = Study(
    name="parity",
    title="Own attention beside torch's",
    asks="With the same weights, does our attention give what torch's own two forms give?",
    source=f"{SOURCE}: the implementation",
    rows=(
        Row("multihead", "beside nn.MultiheadAttention, weights and biases copied", measure=beside_multihead,
            published={"plain": "1.7881393432617188e-07", "magnitude": "0.159"}),
        Row("scaled-dot-product", "beside F.scaled_dot_product_attention", measure=beside_scaled_dot_product,
            published={"plain": "1.7881393432617188e-07"}),
    ),
    claims=tuple(
        Claim(f"Ours, {path} evaluation, is {theirs}.", figure(row, path), "1.7881393432617188e-07",
              "the same sums in another order, in float32", at_most=ROUNDING)
        for row, theirs in (
            ("multihead", "nn.MultiheadAttention"), ("scaled-dot-product", "F.scaled_dot_product_attention"))
        for path in ("plain", "fast")
    ),
    efforts={"quick": Effort(3, minutes=0.1), "full": Effort(3, minutes=0.1)},
    figures=("plain", "fast", "magnitude"),
    choices=(f"Sizes are not said: {BATCH} rows of {TIME} tokens, width {WIDTH}, {HEADS} heads, inputs N(0, 1).",
             "Biases are drawn too: torch starts them at zero, where a forgotten one would not be seen."),
    remarks=("The digits of a rounding error belong to the numbers drawn and to the processor.",),
    exact=True,
)  # fmt: skip
