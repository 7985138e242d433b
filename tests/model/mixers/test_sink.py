"""A learned score in the denominator: its formula, its limits, and the one fused call that evaluates it."""

import math

import pytest
import torch
from torch import Tensor

from headstock.model.accounting import parameters
from headstock.model.frame import Frame
from headstock.model.kernels import kernel_that_ran
from headstock.model.mixers.sink import Sink
from headstock.model.mixers.softmax1 import Softmax1
from headstock.model.transformer import build
from headstock.model.visibility import Visible
from tests.model.cases import BATCH, SIZES, TIME, Case, close, some_ids

VISIBLE = torch.tensor([[[[1, 1, 1, 0], [0, 1, 0, 1]]], [[[0, 0, 0, 0], [1, 1, 1, 1]]]]).bool()


def sink(sigma: list[float], dtype: torch.dtype = torch.float64) -> Sink:
    mixer = Sink(Case("sink", f"sink,n_heads={len(sigma)}").config(d_model=len(sigma)), 0).to(dtype)
    with torch.no_grad():
        mixer.sink_h.copy_(torch.tensor(sigma))
    return mixer


def some_scores(heads: int = 3) -> Tensor:
    return torch.randn(2, heads, 2, 4, dtype=torch.float64)


def test_a_weight_is_its_share_of_the_visible_keys_and_the_sink() -> None:
    sigma, scores = [-1.0, 0.5, 3.0], some_scores()
    weights = sink(sigma).weigh(scores, VISIBLE)
    for b, h, q in torch.cartesian_prod(torch.arange(2), torch.arange(3), torch.arange(2)).tolist():
        e = [math.exp(s) if seen else 0.0 for s, seen in zip(scores[b, h, q], VISIBLE[b, 0, q], strict=True)]
        close(weights[b, h, q], torch.tensor(e, dtype=torch.float64) / (math.exp(sigma[h]) + sum(e)))


def test_a_sink_of_zero_is_softmax1_and_starts_there_and_a_far_lower_one_is_softmax() -> None:
    scores = some_scores()
    softmax = scores.masked_fill(~VISIBLE, -math.inf).softmax(-1).nan_to_num(0.0)
    close(sink([-800.0] * 3).weigh(scores, VISIBLE), softmax)
    assert sink([800.0] * 3).weigh(scores, VISIBLE).count_nonzero() == 0
    softmax1 = Softmax1(Case("softmax1", "softmax1,n_heads=3").config(d_model=3), 0)
    close(sink([0.0] * 3).weigh(scores, VISIBLE), softmax1.weigh(scores, VISIBLE))
    new, other = build("sink", **SIZES), build("softmax1", **SIZES)
    close(new(some_ids()), other(some_ids()), atol=1e-6)


@pytest.mark.parametrize("high", [1e4, -1e4])
def test_extreme_scores_and_sinks_give_finite_weights_and_gradients(high: float) -> None:
    scores = torch.tensor([[[[high, 0.0, -high, high]]]]).repeat(1, 3, 1, 1).requires_grad_()
    mixer = sink([high, 0.0, -high], torch.float32)
    weights = mixer.weigh(scores, torch.tensor([[[[True, True, True, False]]]]))
    share = {1e4: [0.5, 1.0, 1.0], -1e4: [1.0, 1.0, 0.5]}[high]
    close(weights.sum(-1).flatten(), torch.tensor(share))
    assert weights[..., 3].count_nonzero() == 0
    weights.square().sum().backward()
    assert scores.grad is not None
    assert mixer.sink_h.grad is not None
    assert scores.grad.isfinite().all()
    assert mixer.sink_h.grad.isfinite().all()


def test_the_sink_learns_by_the_derivative_of_its_share() -> None:
    scores, sigma = some_scores(), torch.tensor([-1.0, 0.5, 3.0], dtype=torch.float64)
    mixer = sink(sigma.tolist())
    weights = mixer.weigh(scores, VISIBLE)
    weights.sum().backward()
    sums = weights.detach().sum(-1)
    assert mixer.sink_h.grad is not None
    close(mixer.sink_h.grad, -(sums * (1 - sums)).sum((0, 2)))

    def of(scores: Tensor, sigma: Tensor) -> Tensor:
        return torch.func.functional_call(Weighing(mixer), {"mixer.sink_h": sigma}, (scores,))

    assert torch.autograd.gradcheck(of, (scores.requires_grad_(), sigma.requires_grad_()))


class Weighing(torch.nn.Module):
    def __init__(self, mixer: Sink) -> None:
        super().__init__()
        self.mixer = mixer

    def forward(self, scores: Tensor) -> Tensor:
        return self.mixer.weigh(scores, VISIBLE)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "variant",
    ["sink", "sink+rope,n_kv_heads=2", "sink+alibi", "sink+none,d_head=5", "sink,window=4", "sink,causal=false"],
)
def test_the_fused_kernel_runs_though_it_has_one_more_number_a_query(variant: str, dtype: torch.dtype) -> None:
    assert kernel_that_ran(build(variant, **SIZES).to(dtype).eval(), some_ids()) == "fused (flash, CPU)"


def test_a_soft_cap_is_done_plainly_and_leaves_the_sink_uncapped() -> None:
    model = Case("sink", "sink,soft_cap=0.5").model()
    for block in model.blocks:
        block.mixer.sink_h.data.fill_(7.0)
    assert kernel_that_ran(model, some_ids()) == "plain"
    for weights in model.weights(some_ids()):
        assert (weights.sum(-1) < TIME * math.exp(0.5 - 7)).all()


@pytest.mark.parametrize("d_head", [4, 8, 12, 128])
def test_a_bfloat16_sink_takes_its_share_to_the_rounding_of_bfloat16(d_head: int) -> None:
    mixer = Sink(Case("sink", f"sink,d_head={d_head}").config(), 0).bfloat16()
    mixer.sink_h.data.copy_(torch.tensor([-3.0, 1.7, 4.1, 7.3]))
    q, k = torch.randn(2, BATCH, 4, TIME, d_head, dtype=torch.bfloat16)
    visible = Visible(TIME, TIME, torch.device("cpu"))
    fused = mixer.mix_fast(q, k, torch.ones_like(k), visible)
    share = mixer.weigh(mixer.score(q, k, visible), visible.dense).sum(-1, keepdim=True)
    assert fused is not None
    close(fused.float(), share.expand_as(fused), atol=2**-8)


def test_the_sink_is_one_number_a_query_head_however_many_keys_they_share() -> None:
    sizes = {"vocab_size": 50, "context": 32, "d_model": 64, "n_heads": 8, "n_layers": 3}
    for kv in (8, 2):
        sink, softmax = (parameters(Case(m, f"{m},n_kv_heads={kv}").config(**sizes)) for m in ("sink", "softmax"))
        assert sink.blocks - softmax.blocks == 3 * 8


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
def test_a_sink_reads_another_sequence_too(plain: bool) -> None:
    model = Case("sink", "sink+none,n_layers=1,n_kv_heads=2").model()
    mixer, memory = model.blocks[0].mixer, torch.randn(BATCH, 5, 16, dtype=torch.float64)
    x, real = torch.randn(BATCH, TIME, 16, dtype=torch.float64), torch.arange(5) < torch.tensor([[5], [2], [0]])
    z = mixer(x, Frame.across(memory, TIME, real_bk=real, plain=plain))
    close(z[1:2], mixer(x[1:2], Frame.across(memory[1:2, :2], TIME, plain=not plain)))
    assert z[2].count_nonzero() == 0
