"""Two queries over one key: the formula, pair by pair and token by token, and one fused call that evaluates it."""

import math
from copy import deepcopy

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.accounting import cache_bytes, parameters
from headstock.model.frame import Frame
from headstock.model.kernels import kernel_that_ran
from headstock.model.mixers.differential2 import Differential2
from headstock.model.transformer import Block, build
from headstock.model.visibility import Visible
from tests.model.cases import SIZES, TIME, Case, close, some_ids

D_MODEL, N_HEADS, D_HEAD = SIZES["d_model"], SIZES["n_heads"], 4


def block_of(variant: str) -> Block:
    block = Case(variant, variant).model().blocks[0]
    assert isinstance(block, Block)
    return block


def by_hand(mixer: Differential2, x: Tensor, n_kv_heads: int) -> Tensor:
    """Token by token and head by head, (time, model) → (time, model)."""
    assert all((mixer.query, mixer.key, mixer.value, mixer.gate, mixer.output))
    q, k, v = (linear(x).view(len(x), -1, D_HEAD) for linear in (mixer.query, mixer.key, mixer.value))
    share = 1 / (1 + torch.exp(-mixer.gate(x)))
    z = torch.zeros(len(x), N_HEADS, D_HEAD, dtype=x.dtype)
    for t in range(len(x)):
        for head in range(N_HEADS):
            group = head // (N_HEADS // n_kv_heads)
            for sign, query in ((1.0, 2 * head), (-share[t, head], 2 * head + 1)):
                scores = torch.stack([q[t, query] @ k[past, group] for past in range(t + 1)]) / math.sqrt(D_HEAD)
                z[t, head] += sign * (scores.softmax(0) @ v[: t + 1, group])
    return mixer.output(z.flatten(1))


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
def test_a_token_takes_its_own_share_of_the_second_map_from_the_first(n_kv_heads: int, plain: bool) -> None:
    mixer = block_of(f"differential2+none,n_kv_heads={n_kv_heads}").mixer
    x = torch.randn(1, TIME, D_MODEL, dtype=torch.float64)
    with torch.no_grad():
        close(mixer(x, Frame(Visible(TIME, TIME, x.device), plain=plain))[0], by_hand(mixer, x[0], n_kv_heads))


@pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
def test_logits_and_gradients_are_those_of_the_formula(n_kv_heads: int, plain: bool) -> None:
    model = Case("d", f"differential2+none,n_kv_heads={n_kv_heads}").model()
    naive = deepcopy(model)
    for block in naive.blocks:
        mixer = block.mixer
        mixer.forward = lambda x, frame, mixer=mixer: torch.stack([by_hand(mixer, row, n_kv_heads) for row in x])
    model.plain = plain
    logits, expected = model(some_ids()), naive(some_ids())
    close(logits, expected)
    for one in (logits, expected):
        one.square().mean().backward()
    for (name, ours), theirs in zip(model.named_parameters(), naive.parameters(), strict=True):
        assert ours.grad is not None, name
        assert theirs.grad is not None, name
        assert theirs.grad.abs().max() > 0, name
        close(ours.grad, theirs.grad, atol=1e-9)


def test_rows_sum_to_one_less_the_share_and_half_of_all_starts_from_a_closed_gate() -> None:
    mixer = block_of("differential2+rope").mixer
    x, frame = torch.randn(1, TIME, D_MODEL, dtype=torch.float64), Frame(Visible(TIME, TIME, torch.device("cpu")))
    weights = mixer.weights(x, frame)
    assert weights.shape == (1, N_HEADS, TIME, TIME)
    assert (weights < 0).any()
    close(weights.sum(-1), 1 - torch.sigmoid(mixer.gate(x)).transpose(1, 2))
    with torch.no_grad():
        mixer.gate.weight.zero_()
    close(mixer.weights(x, frame).sum(-1), torch.full((1, N_HEADS, TIME), 0.5, dtype=torch.float64))


def test_equal_queries_of_a_pair_leave_softmax_times_what_the_share_leaves() -> None:
    mixer, softmax = block_of("differential2+alibi").mixer, block_of("softmax+alibi").mixer
    with torch.no_grad():
        for name in ("key", "value", "output"):
            getattr(mixer, name).weight.copy_(getattr(softmax, name).weight)
        rows = softmax.query.weight.view(N_HEADS, D_HEAD, D_MODEL)
        mixer.query.weight.copy_(rows.repeat_interleave(2, dim=0).flatten(0, 1))
        x = torch.randn(1, TIME, D_MODEL, dtype=torch.float64)
        slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625], dtype=torch.float64)
        visible = {n: Visible(TIME, TIME, x.device, slopes_h=slopes.repeat_interleave(n)) for n in (1, 2)}
        left = 1 - torch.sigmoid(mixer.gate(x)).transpose(1, 2)[..., None]
        close(mixer.weights(x, Frame(visible[2])), softmax.weights(x, Frame(visible[1])) * left)


def test_a_slope_belongs_to_a_pair() -> None:
    model = build("differential2+alibi,n_heads=2", **SIZES | {"n_heads": 2})
    with torch.no_grad():
        for parameter in model.blocks[0].mixer.parameters():
            parameter.zero_()  # scores are penalties alone, so both maps of a pair are alike and half of one is left
    weights = model.weights(some_ids(batch=1))[0][0]
    for head, slope in enumerate((2**-4, 2**-8)):
        falls = torch.exp(-slope * torch.arange(TIME - 1, -1, -1))
        close(weights[head, -1], falls / falls.sum() / 2, atol=1e-6)


def test_it_costs_a_query_and_a_share_more_than_softmax_and_remembers_no_more() -> None:
    ours, softmax = (Case(m, m).config() for m in ("differential2", "softmax"))
    more = SIZES["n_layers"] * (D_MODEL * N_HEADS * D_HEAD + D_MODEL * N_HEADS)
    assert parameters(ours).total == parameters(softmax).total + more
    assert cache_bytes(ours) == cache_bytes(softmax)


@pytest.mark.parametrize("position", ["learned", "alibi"])
def test_all_queries_go_through_one_fused_kernel_and_capped_ones_through_none(position: str) -> None:
    variant = f"differential2+{position},n_kv_heads=2"
    assert kernel_that_ran(build(variant, **SIZES).eval(), some_ids()) == "fused (flash, CPU)"
    assert kernel_that_ran(build(f"{variant},soft_cap=2.0", **SIZES).eval(), some_ids()) == "plain"


@pytest.mark.parametrize("kind", ["shared", "identity"])
def test_a_key_cannot_be_the_query_where_there_are_twice_as_many_queries(kind: str) -> None:
    with pytest.raises(UserError, match=f"differential2 cannot use query_key={kind}: it has twice as many queries"):
        build(f"differential2,query_key={kind}", **SIZES)
