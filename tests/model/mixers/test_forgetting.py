"""A forget gate on softmax: the sum of its logs, its limits, its precision, and where it means nothing."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.accounting import cache_bytes, flops_per_token, parameters
from headstock.model.cache import Cache
from headstock.model.frame import Frame
from headstock.model.kernels import kernel_that_ran
from headstock.model.mixers.forgetting import Forgetting
from headstock.model.positions import alibi_slopes
from headstock.model.transformer import Transformer, build
from headstock.model.visibility import Visible
from tests.model.cases import BATCH, SIZES, TIME, Case, close, some_ids

CPU = torch.device("cpu")


def with_numbers_of(model: Transformer, other: Transformer) -> None:
    """Give a model of forgetting every number that another without gates has."""
    missing, unexpected = model.load_state_dict(other.state_dict(), strict=False)
    assert {name.rsplit(".mixer.")[1] for name in missing} == {"gate.weight", "gate_bias_h"}
    assert not unexpected


def set_gates(model: Transformer, bias: Tensor) -> None:
    """Let no gate depend on its token."""
    for block in model.blocks:
        torch.nn.init.zeros_(block.mixer.gate.weight)
        block.mixer.gate_bias_h.data.copy_(bias)


def decay_of(mixer: Forgetting, gates: Tensor, visible: Visible) -> Tensor:
    """Give the decay that a mixer makes of gates (batch, head, key)."""
    x = torch.zeros(gates.shape[0], gates.shape[2], 16, dtype=mixer.gate_bias_h.dtype)
    return mixer.decay(replace(mixer.read(x, Frame(visible)), gates_bhk=gates))


@pytest.mark.parametrize("real", [None, torch.tensor([[1] * 9, [1, 1, 0, 0, 1, 1, 1, 0, 1], [0] * 4 + [1] * 5]).bool()])
@torch.no_grad()
def test_a_score_falls_by_the_logs_of_the_gates_from_the_next_key_to_the_query(real: Tensor | None) -> None:
    model = Case("forgetting", "forgetting+none,n_layers=1,n_kv_heads=2").model()
    mixer, x = model.blocks[0].mixer, torch.randn(BATCH, TIME, 16, dtype=torch.float64)
    q, k = mixer.query(x).view(BATCH, TIME, 4, 4), mixer.key(x).view(BATCH, TIME, 2, 4)
    f = torch.sigmoid(x @ mixer.gate.weight.T + mixer.gate_bias_h)
    weights = mixer.weights(x, Frame(Visible(TIME, TIME, CPU, real_bk=real)))
    for b in range(BATCH):
        places = list(range(TIME)) if real is None else real[b].nonzero()[:, 0].tolist()
        for h in range(4):
            for i in places:
                seen = [j for j in places if j <= i]
                e = [
                    math.exp(q[b, i, h] @ k[b, j, h // 2] / 2) * math.prod(f[b, seen[n + 1 :], h].tolist())
                    for n, j in enumerate(seen)
                ]
                close(weights[b, h, i, seen], torch.tensor(e, dtype=torch.float64) / sum(e))


@pytest.mark.parametrize("position", ["none", "rope", "alibi"])
def test_gates_that_never_close_leave_softmax(position: str) -> None:
    forgetting, softmax = (Case(m, f"{m}+{position}").model() for m in ("forgetting", "softmax"))
    with_numbers_of(forgetting, softmax)
    set_gates(forgetting, torch.full((4,), 1e3))
    close(forgetting(some_ids()), softmax(some_ids()))


def test_constant_gates_are_alibi_of_slope_minus_log_f() -> None:
    forgetting, alibi = Case("forgetting", "forgetting+none").model(), Case("softmax", "softmax+alibi").model()
    with_numbers_of(forgetting, alibi)
    set_gates(forgetting, -torch.expm1(alibi_slopes(4)).log())  # sigmoid(b) = exp(−slope)
    close(forgetting(some_ids()), alibi(some_ids()))


def test_closed_gates_leave_each_token_itself_alone_with_finite_gradients() -> None:
    model = Case("forgetting", "forgetting").model(torch.float32)
    set_gates(model, torch.full((4,), -1e3))
    for weights in model.weights(some_ids()):
        assert torch.equal(weights, torch.eye(TIME).expand_as(weights))
    model(some_ids()).square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_what_near_tokens_forget_is_not_lost_beside_what_far_ones_forgot() -> None:
    gates = torch.full((1, 4, 400), 5.0)
    gates[..., :200] = -1e4  # −2,000,000 in all, where float32 counts in eighths
    mixer = Case("forgetting", "forgetting").model(torch.float32).blocks[0].mixer
    torch.nn.init.zeros_(mixer.gate_bias_h)
    decay = decay_of(mixer, gates, Visible(400, 400, CPU))
    distance = torch.arange(399, 199, -1) - 399.0
    close(decay[0, 0, 399, 200:], (distance * math.log1p(math.exp(-5))).flip(0), atol=1e-6)
    assert decay[0, 0, 399, 0].item() == pytest.approx(-1.99e6, rel=1e-5)


def test_half_lives_start_from_short_to_the_context_evenly_in_their_logarithm() -> None:
    model = build("forgetting", vocab_size=9, context=512, n_heads=8)
    for block in model.blocks:
        half_life = math.log(0.5) / torch.nn.functional.logsigmoid(block.mixer.gate_bias_h.double())
        close(half_life, 2 * 2 ** torch.arange(1, 9).double(), atol=1e-2)
    single = build("forgetting,n_heads=1", vocab_size=9, context=128).blocks[0].mixer
    assert torch.sigmoid(single.gate_bias_h.double()).item() ** 128 == pytest.approx(0.5, rel=1e-4)


def test_one_layer_without_positions_tells_a_shuffled_prefix() -> None:
    model, ids = Case("forgetting", "forgetting+none").model(n_layers=1), some_ids(batch=1)
    assert Forgetting.sees_order
    shuffled = ids[:, [3, 1, 0, 2, *range(4, TIME)]]
    assert (model(shuffled)[:, -1] - model(ids)[:, -1]).abs().max() > 1e-3


def test_interleaved_documents_forget_by_their_own_tokens() -> None:
    model, ids = Case("forgetting", "forgetting+none").model(), some_ids(batch=1)
    documents = torch.tensor([[0, 1, 0, 0, 1, 1, 0, 1, 0]])
    together = model(ids, documents=documents)
    for document in (0, 1):
        here = documents[0] == document
        close(together[0, here], model(ids[:, here])[0])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_gates_are_kept_with_the_keys_that_a_window_keeps(dtype: torch.dtype) -> None:
    case = Case("forgetting", "forgetting+rope,window=4,n_kv_heads=2")
    model, cache, ids = case.model(dtype), Cache(2), some_ids()
    with torch.no_grad():
        pieces = torch.cat([model(piece, cache=cache) for piece in ids.split([1, 5, 2, 1], 1)], dim=1)
        close(pieces.double(), model(ids).double(), atol=1e-10 if dtype == torch.float64 else 0.1)
    assert [tuple(x.shape) for x in cache.blocks[0].kept] == [(BATCH, 2, 3, 4), (BATCH, 2, 3, 4), (BATCH, 4, 3)]
    assert cache.n_bytes == cache_bytes(case.config(), TIME, dtype) * BATCH


def test_a_gate_costs_one_number_a_head_and_token_beyond_softmax() -> None:
    sizes = {"vocab_size": 50, "context": 32, "d_model": 64, "n_heads": 8, "n_layers": 3}
    forgetting, softmax = (Case(m, f"{m},n_kv_heads=2").config(**sizes) for m in ("forgetting", "softmax"))
    assert parameters(forgetting).blocks - parameters(softmax).blocks == 3 * (64 + 1) * 8
    assert flops_per_token(forgetting) - flops_per_token(softmax) == 3 * 2 * 64 * 8
    assert cache_bytes(forgetting) - cache_bytes(softmax) == 3 * 32 * 8 * 4


@pytest.mark.parametrize("variant", ["forgetting+rope", "forgetting+alibi,window=100,n_kv_heads=2"])
def test_it_stores_its_weights_when_short_and_goes_by_blocks_when_long(variant: str) -> None:
    model, ids = Case("forgetting", variant).model(torch.float32), some_ids(batch=2, time=600)
    assert kernel_that_ran(model, some_ids()) == "plain"
    assert kernel_that_ran(model, ids) == "blockwise"
    results = []
    for model.plain in (False, True):
        model.zero_grad()
        logits = model(ids)
        logits.square().mean().backward()
        results.append((logits.detach(), [p.grad for p in model.parameters()]))
    (fast, fast_gradients), (plain, plain_gradients) = results
    close(fast, plain, atol=1e-4)
    for fast_gradient, plain_gradient in zip(fast_gradients, plain_gradients, strict=True):
        close(fast_gradient, plain_gradient, atol=1e-4)


def test_it_is_refused_where_no_token_stands_between_query_and_key() -> None:
    with pytest.raises(UserError, match="cannot use causal=false: its gates say what is forgotten on the way"):
        build("forgetting,causal=false", **SIZES)
    mixer = Case("forgetting", "forgetting").model().blocks[0].mixer
    memory = torch.randn(BATCH, 5, 16, dtype=torch.float64)
    with pytest.raises(UserError, match="cannot read another sequence: no token stands between"):
        mixer(memory, Frame.across(memory, 5))
