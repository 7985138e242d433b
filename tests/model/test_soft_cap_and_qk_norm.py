"""A soft cap bounds every score, a norm of queries and keys their lengths: on every path, and never in vain."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstock.model import blockwise
from headstock.model.accounting import parameters
from headstock.model.attention import dot_products
from headstock.model.cache import Cache
from headstock.model.config import POSITIONS
from headstock.model.evaluations import listening
from headstock.model.kernels import kernel_that_ran
from headstock.model.mixers import mixer_class, mixer_names
from headstock.model.positions import alibi_slopes
from headstock.model.transformer import build
from headstock.model.visibility import Visible
from tests.model.cases import SIZES, TIME, Case, close, some_ids


def accepting(key: str) -> list[str]:
    return [mixer for mixer in mixer_names() if key not in mixer_class(mixer).refuses]


every_capped = pytest.mark.parametrize("mixer", accepting("soft_cap"))
every_normed = pytest.mark.parametrize("mixer", accepting("qk_norm"))
both_norms = pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
PENALISED = {mixer: "none" if "alibi" in mixer_class(mixer).refuses else "alibi" for mixer in mixer_names()}


@given(spread=st.floats(1e-3, 1e3), cap=st.floats(1e-2, 1e2), seed=st.integers(0, 99), alibi=st.booleans())
def test_a_soft_cap_bounds_scores_before_a_penalty_is_taken(spread: float, cap: float, seed: int, alibi: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    q, k = spread * torch.randn(2, 1, 3, TIME, 8, dtype=torch.float64, generator=generator)
    visible = Visible(TIME, TIME, q.device, slopes_h=alibi_slopes(3) if alibi else None)
    penalty = 0.0 if visible.penalty_bhqk is None else visible.penalty_bhqk
    capped = dot_products(q, k, visible, cap) - penalty
    raw = q @ k.mT / math.sqrt(8)
    assert capped.abs().max() <= cap * (1 + 1e-12)
    close(capped, cap * (raw / cap).tanh(), atol=1e-9)
    assert torch.equal(capped.sign(), raw.sign())


@pytest.mark.parametrize("blocks", [False, True], ids=["at-once", "in-blocks"])
@every_capped
def test_paths_agree_under_a_soft_cap(mixer: str, blocks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, ids = Case(mixer, f"{mixer}+{PENALISED[mixer]},soft_cap=0.3").model(), some_ids()
    if blocks:
        monkeypatch.setattr(blockwise, "SHORTEST", 2)
        monkeypatch.setattr(blockwise, "BLOCK", 4)
    real = torch.arange(TIME) >= torch.tensor([[0], [4], [8]])
    results = []
    with torch.no_grad():
        for model.plain in (False, True):
            with listening() as heard:
                results.append(torch.cat([model(ids)[real], model(ids, real=real)[real]]))
            assert ("blockwise" in heard) is (blocks and not model.plain)
        cache, model.plain = Cache(2), False
        cached = torch.cat([model(piece, cache=cache) for piece in ids.split([4, 1, 4], dim=1)], dim=1)
    close(*results)
    close(cached[real], results[0][: int(real.sum())])


@every_capped
def test_a_soft_cap_far_above_all_scores_is_none_and_a_low_one_is_felt(mixer: str) -> None:
    ids = some_ids()
    free, high, low = (
        Case(mixer, f"{mixer}+{PENALISED[mixer]},soft_cap={cap}").model()(ids) for cap in ("none", 1e6, 0.1)
    )
    close(high, free, atol=1e-8)
    assert (low - free).abs().max() > 1e-4


def test_a_soft_cap_of_next_to_nothing_makes_softmax_the_uniform_average() -> None:
    weights = Case("capped", "softmax+none,soft_cap=1e-12").model().weights(some_ids())[0]
    uniform = Case("uniform", "uniform+none").model().weights(some_ids())[0]
    close(weights, uniform, atol=1e-11)


def test_no_fused_kernel_runs_under_a_soft_cap() -> None:
    for variant in ("softmax", "softmax1", "sink", "differential2"):
        assert "fused" in kernel_that_ran(build(variant, **SIZES), some_ids())
        assert kernel_that_ran(build(variant, soft_cap=5.0, **SIZES), some_ids()) == "plain"


@both_norms
@every_normed
def test_a_norm_of_queries_and_keys_has_one_weight_for_all_heads(mixer: str, norm: str) -> None:
    model = build(mixer, **SIZES, d_head=6, qk_norm=norm)
    for block in model.blocks:
        for part in (block.mixer.query_norm, block.mixer.key_norm):
            assert {p.shape for p in part.parameters()} == {(6,)}
    assert parameters(model.config).total == sum(p.numel() for p in model.parameters())
    plain = parameters(build(mixer, **SIZES, d_head=6).config).total
    assert parameters(model.config).total - plain == 2 * 2 * 6 * (2 if norm == "layernorm" else 1)


@pytest.mark.parametrize("position", [p for p in POSITIONS if p != "sinusoidal"])
@both_norms
@every_normed
def test_the_size_of_each_heads_queries_and_keys_means_nothing_once_they_are_normed(
    mixer: str, norm: str, position: str
) -> None:
    if position in mixer_class(mixer).refuses:
        assert position not in ("learned", "none")
        return
    model, ids = Case(mixer, f"{mixer}+{position},qk_norm={norm},norm_eps=1e-12").model(), some_ids()
    with torch.no_grad():
        before = model(ids)
        for block in model.blocks:
            for part, factors in ((block.mixer.query, (3.0, 0.2, 1.0, 40.0)), (block.mixer.key, (0.5, 7.0, 9.0, 1.0))):
                part.weight.unflatten(0, (4, -1)).mul_(torch.tensor(factors, dtype=torch.float64)[:, None, None])
        close(model(ids), before, atol=1e-6)
        block.mixer.query_norm.weight.mul_(torch.linspace(0.2, 3, 4, dtype=torch.float64))
        assert (model(ids) - before).abs().max() > 1e-5  # and the norm's own weight means something


@both_norms
@given(spread=st.floats(1e-2, 1e4), seed=st.integers(0, 99))
def test_scores_of_normed_queries_and_keys_are_bounded_by_the_root_of_their_width(
    norm: str, spread: float, seed: int
) -> None:
    model = Case("normed", f"softmax+rope,qk_norm={norm},n_layers=1,d_head=6").model()
    mixer = model.blocks[0].mixer
    with torch.no_grad():
        for part in (mixer.query_norm, mixer.key_norm):
            part.weight.fill_(1)
            if norm == "layernorm":
                part.bias.zero_()
        q, k = spread * torch.randn(2, 1, 4, TIME, 6, generator=torch.Generator().manual_seed(seed)).double()
        scores = dot_products(mixer.query_norm(q), mixer.key_norm(k), Visible(TIME, TIME, q.device))
    assert scores.abs().max() <= math.sqrt(6) * (1 + 1e-9)
