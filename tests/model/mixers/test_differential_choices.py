"""Every choice of differential attention is its formula, written naively, in outputs and in gradients."""

import json
import math
from copy import deepcopy
from itertools import product
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from headstock.checkpoints.native import load, save
from headstock.model.accounting import cache_bytes, flops_per_token, parameters
from headstock.model.cache import Cache
from headstock.model.config import ModelConfig, config_of
from headstock.model.mixers import mixer_class
from headstock.model.mixers.differential import LAMBDA_VECTORS
from headstock.model.transformer import Block, Transformer, build, build_from
from tests.model.cases import VOCAB, Case, both_paths, close, some_ids

D_HEAD, N_HEADS, LONG = 4, 8, 40
SIZES = {"d_model": N_HEADS * D_HEAD, "n_heads": N_HEADS, "context": LONG}
CHOICES = list(product(["own", "none"], [None, 0.0, 0.5], [True, False], ["layer", "head", "fixed"]))
FEW = [
    ("own", None, True, "layer"), ("none", None, True, "layer"), ("own", 0.5, True, "layer"),
    ("own", None, False, "layer"), ("own", 0.0, True, "layer"), ("own", None, True, "head"),
    ("own", 0.5, True, "fixed"), ("own", 0.0, True, "fixed"), ("none", 0.5, False, "head"),
]  # fmt: skip


def every_choice() -> list[object]:
    """All that go together; a few for every day, those that only add up for others."""
    fit = [choice for choice in CHOICES if choice[1] != 0.0 or choice[2]]
    return [pytest.param(*choice, marks=() if choice in FEW else pytest.mark.full) for choice in fit]


def variant_of(head_norm: str, lambda_init: float | None, lambda_scale: bool, lambdas: str) -> str:
    scale = str(lambda_scale).lower()
    said = "none" if lambda_init is None else lambda_init
    return f"differential+none,head_norm={head_norm},lambda_init={said},lambda_scale={scale},lambdas={lambdas}"


def naive(block: Block, config: ModelConfig, x: Tensor) -> Tensor:
    """Pair by pair and token by token, (time, model) → (time, model)."""
    mixer, layer, pairs = block.mixer, block.layer, config.n_heads // 2
    one_map = config.lambdas == "fixed" and config.lambda_init == 0
    maps = 1 if one_map else 2
    initial = 0.8 - 0.6 * math.exp(-0.3 * layer) if config.lambda_init is None else config.lambda_init
    q, k = (linear(x).view(len(x), -1, maps, D_HEAD) for linear in (mixer.query, mixer.key))
    v = mixer.value(x).view(len(x), -1, 2 * D_HEAD)
    rows = []
    for t in range(len(x)):
        of_pairs = []
        for pair in range(pairs):
            group = pair // (pairs // v.shape[1])
            averages = []
            for which in range(maps):
                scores = k[: t + 1, group, which] @ q[t, pair, which] / math.sqrt(D_HEAD)
                averages.append(scores.softmax(0) @ v[: t + 1, group])
            z = averages[0] if one_map else averages[0] - naive_lambda(mixer, config, pair, initial) * averages[1]
            if config.head_norm != "none":
                z = z / (z.square().mean() + 1e-5).sqrt() * mixer.norm.weight
            of_pairs.append(z * (1 - initial) if config.lambda_scale else z)
        rows.append(torch.cat(of_pairs))
    return mixer.output(torch.stack(rows))


def naive_lambda(mixer: torch.nn.Module, config: ModelConfig, pair: int, initial: float) -> Tensor | float:
    if config.lambdas == "fixed":
        return initial
    own = slice(pair * D_HEAD, (pair + 1) * D_HEAD) if config.lambdas == "head" else slice(None)
    q1, k1, q2, k2 = (getattr(mixer, name)[own] for name in LAMBDA_VECTORS)
    return torch.exp(q1 @ k1) - torch.exp(q2 @ k2) + initial


def naively(model: Transformer) -> Transformer:
    """Give a copy with the same numbers whose mixers are the naive formula."""
    other = deepcopy(model)
    for block in other.blocks:
        assert isinstance(block, Block)
        block.mixer.forward = lambda x, frame, block=block: torch.stack([naive(block, model.config, row) for row in x])
    return other


def hold_together(model: Transformer, other: Transformer, ids: Tensor) -> None:
    """In logits and in the gradient of every parameter."""
    for one in (model, other):
        one(ids).square().mean().backward()
    close(model(ids), other(ids))
    for (name, ours), theirs in zip(model.named_parameters(), other.parameters(), strict=True):
        assert ours.grad is not None, name
        assert theirs.grad is not None, name
        close(ours.grad, theirs.grad, atol=1e-9)
        assert ours.grad.abs().max() > 0, name


@both_paths
@pytest.mark.parametrize("n_kv_heads", [8, 4])
@pytest.mark.parametrize(("head_norm", "lambda_init", "lambda_scale", "lambdas"), every_choice())
def test_every_choice_is_its_formula(
    head_norm: str, lambda_init: float | None, lambda_scale: bool, lambdas: str, n_kv_heads: int, plain: bool
) -> None:
    case = Case("chosen", f"{variant_of(head_norm, lambda_init, lambda_scale, lambdas)},n_kv_heads={n_kv_heads}")
    model = case.model(**SIZES)
    other = naively(model)
    model.plain = plain
    hold_together(model, other, some_ids(batch=1, time=26))


@both_paths
def test_the_norm_of_a_softmax_head_is_the_formula(plain: bool) -> None:
    model = Case("normed", "softmax+none,head_norm=rmsnorm,n_kv_heads=2").model()
    ids = some_ids()
    _, without = model.run_with_cache(ids, lambda name: name.endswith(("hook_pattern", "hook_v")))
    model.plain = plain
    _, cache = model.run_with_cache(ids, lambda name: name.endswith("hook_z"))
    for layer, block in enumerate(model.blocks):
        v = without["v", layer].repeat_interleave(2, dim=2)
        z = torch.einsum("bhqk,bkhd->bqhd", without["pattern", layer], v)
        normed = z / (z.square().mean(-1, keepdim=True) + 1e-5).sqrt() * block.mixer.head_norm.weight
        close(cache["z", layer], normed)


@pytest.mark.parametrize("mixer", ["softmax", "uniform", "topk", "differential2", "linear"])
def test_a_norm_of_heads_costs_one_weight_that_all_heads_share(mixer: str) -> None:
    with_norm, without = (Case(mixer, f"{mixer},head_norm={kind}").config() for kind in ("rmsnorm", "own"))
    assert parameters(with_norm).total - parameters(without).total == without.n_layers * without.d_head
    assert sum(p.numel() for p in build_from(with_norm).parameters()) == parameters(with_norm).total


def test_a_formulas_own_norm_is_the_same_whether_it_is_named_or_not() -> None:
    named, own = (Case("d", f"differential{norm}").model() for norm in ("", ",head_norm=rmsnorm"))
    assert torch.equal(named(some_ids()), own(some_ids()))


def test_half_the_heads_are_twice_as_wide_and_cost_the_same() -> None:
    whole, half = (config_of(f"softmax+rope,n_heads={n}", vocab_size=VOCAB, context=LONG) for n in (4, 2))
    assert (whole.d_head, half.d_head) == (16, 32)
    assert parameters(whole) == parameters(half)
    assert flops_per_token(whole) == flops_per_token(half)
    assert cache_bytes(whole) == cache_bytes(half)
    pairs = mixer_class("differential").sizes(config_of("differential", vocab_size=VOCAB, context=LONG))
    assert (pairs.output_heads, pairs.value_size) == (half.n_heads, half.d_head)


def test_what_learns_no_lambda_or_one_a_pair_holds_that_many_numbers() -> None:
    held = {}
    for lambdas in ("layer", "head", "fixed"):
        config = Case("d", f"differential,lambdas={lambdas}").config(**SIZES, n_layers=1)
        names = dict(build_from(config).blocks.named_parameters())
        held[lambdas] = sum(names[name].numel() for name in names if "lambda" in name)
        assert all(parameter.ndim == 1 for name, parameter in names.items() if "lambda" in name)  # so none decays
        assert sum(parameter.numel() for parameter in names.values()) == parameters(config).blocks
    assert held == {"layer": 4 * D_HEAD, "head": 4 * D_HEAD * N_HEADS // 2, "fixed": 0}


def test_each_pair_starts_with_a_lambda_of_its_own_next_to_the_constant() -> None:
    mixer = build("differential,lambdas=head,lambda_init=0.8", vocab_size=VOCAB, context=LONG).blocks[0].mixer
    assert mixer.lambda_now().shape == (2,)
    assert mixer.lambda_now().unique().numel() == 2
    assert (mixer.lambda_now() - 0.8).abs().max() < 0.3


def test_fixed_at_0_one_map_is_left_and_only_what_it_needs() -> None:
    ours, two = (Case("d", f"differential,lambdas=fixed,lambda_init={number}").config() for number in (0, 0.5))
    assert 4 * cache_bytes(ours) == 3 * cache_bytes(two)  # all of the values, half of the keys
    saved = ours.n_layers * 2 * ours.d_model * ours.n_heads // 2 * ours.d_head  # half of the maps of queries and keys
    assert parameters(two).total - parameters(ours).total == saved
    model = Case("d", "differential,lambdas=fixed,lambda_init=0").model()
    names = [name.removeprefix("blocks.0.attn.") for name in model.hook_names() if name.startswith("blocks.0.attn.")]
    assert names == ["hook_q", "hook_k", "hook_v", "hook_attn_scores", "hook_pattern", "hook_z", "hook_result"]
    weights = model.weights(some_ids())[0]
    close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert (weights >= 0).all()


@pytest.mark.parametrize("n_kv_heads", [8, 4, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mixer", ["differential", "differential2"])
def test_a_token_is_remembered_in_as_many_bytes_as_softmax_needs(
    mixer: str, n_kv_heads: int, dtype: torch.dtype
) -> None:
    kept = {}
    for name in (mixer, "softmax"):
        config = config_of(f"{name}+rope,n_kv_heads={n_kv_heads}", vocab_size=VOCAB, **SIZES)
        model, cache = build_from(config).to(dtype).eval(), Cache(config.n_layers)
        with torch.no_grad():
            model(some_ids(batch=1, time=1), cache=cache)
            one = cache.n_bytes
            model(some_ids(batch=1, time=1), cache=cache)
        assert cache.n_bytes == 2 * one == cache_bytes(config, 2, dtype)
        kept[name] = one
    assert kept[mixer] == kept["softmax"]


@pytest.mark.parametrize("variant", ["differential", "softmax"])
def test_a_model_saved_before_there_were_these_choices_is_the_same_model(variant: str, tmp_path: Path) -> None:
    model = Case(variant, variant).model(torch.float32)
    save(model, tmp_path)
    described = json.loads((tmp_path / "config.json").read_text())
    for key in ("head_norm", "lambda_init", "lambda_scale", "lambdas"):
        del described["model"][key]
    (tmp_path / "config.json").write_text(json.dumps(described))
    weights = load_file(tmp_path / "model.safetensors")
    save_file(weights, tmp_path / "model.safetensors", {"description": json.dumps(described)})
    again = load(tmp_path)
    assert again.config == model.config
    assert torch.equal(again(some_ids()), model(some_ids()))
