"""Which names there are, what shapes their values have, and how the values of one pass follow from each other."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from headstock.model.attention import shared_by_groups
from headstock.model.config import ROTARY, ModelConfig
from headstock.model.heads import Heads
from headstock.model.mixers import mixer_class
from headstock.model.mixers.base import ScoreMixer
from headstock.model.visibility import Visible
from tests.model.cases import BATCH, TIME, Case, close, every_mixer, some_ids
from tests.model.hooking import HOOKED, every_hooked_case, everything, hooked, short

WEIGHED = ["attn_scores", "pattern"]
MAPS = ["attn_scores_1", "pattern_1", "attn_scores_2", "pattern_2"]
QKV = ["q", "k", "v", "rot_q", "rot_k"]
INSIDE = {
    "uniform": ["v", *WEIGHED],
    "table": ["v", *WEIGHED],
    "softmax": [*QKV, *WEIGHED],
    "softmax1": [*QKV, *WEIGHED],
    "sink": [*QKV, *WEIGHED],
    "sigmoid": [*QKV, *WEIGHED],
    "entmax15": [*QKV, *WEIGHED],
    "topk": [*QKV, *WEIGHED],
    "forgetting": [*QKV, "gate", *WEIGHED],
    "differential": [*QKV, *MAPS, "lambda", "pattern"],
    "differential2": [*QKV, "gate", "lambda", *MAPS, "pattern"],
    "linear": [*QKV, "pattern"],
    "retention": [*QKV, "pattern"],
    "delta": [*QKV, "gate", "pattern"],
    "lstm": [],
}
"""What stands between a mixer's input and each head's output, in order, by mixer."""


def expected_names(config: ModelConfig) -> list[str]:
    normed = config.norm != "none"
    names = ["hook_embed"]
    if config.position in ("learned", "sinusoidal"):
        names.append("hook_pos_embed")
    inside = [name for name in INSIDE[config.mixer] if config.position in ROTARY or "rot_" not in name]
    for layer in range(config.n_layers):
        block = ["hook_resid_pre", "ln1.hook_normalized", *(f"attn.hook_{name}" for name in [*inside, "z", "result"])]
        block.append("hook_attn_out")
        if config.feedforward != "none":
            block += ["hook_resid_mid", "ln2.hook_normalized", "mlp.hook_pre", "mlp.hook_pre_linear", "mlp.hook_post"]
            block.append("hook_mlp_out")
        block.append("hook_resid_post")
        absent = set() if config.feedforward == "swiglu" else {"mlp.hook_pre_linear"}
        if not normed or config.norm_placement == "post":
            absent |= {"ln1.hook_normalized", "ln2.hook_normalized"}
        names += [f"blocks.{layer}.{name}" for name in block if name not in absent]
    return [*names, "ln_final.hook_normalized"] if normed and config.final_norm else names


def expected_shape(name: str, config: ModelConfig) -> tuple[int, ...]:
    sizes = mixer_class(config.mixer).sizes(config)
    match short(name):
        case "q" | "rot_q":
            return BATCH, TIME, sizes.query_heads, sizes.key_size
        case "k" | "rot_k":
            return BATCH, TIME, config.n_kv_heads, sizes.key_size
        case "v":
            return BATCH, TIME, sizes.value_heads, sizes.value_size
        case "gate":
            return BATCH, TIME, sizes.gates
        case "lambda":
            return () if config.mixer == "differential" else (BATCH, TIME, config.n_heads)
        case "attn_scores":
            return BATCH, config.n_heads, TIME, TIME
        case "attn_scores_1" | "attn_scores_2" | "pattern_1" | "pattern_2" | "pattern":
            return BATCH, sizes.output_heads, TIME, TIME
        case "z":
            return BATCH, TIME, sizes.output_heads, sizes.value_size
        case "result":
            return BATCH, TIME, sizes.output_heads, config.d_model
        case "pre" | "pre_linear" | "post":
            return BATCH, TIME, config.d_ff
    return BATCH, TIME, config.d_model


@every_hooked_case
def test_a_model_lists_what_it_has_in_the_order_of_the_pass_and_of_the_shapes_that_are_promised(case: Case) -> None:
    model = case.model()
    assert model.hook_names() == expected_names(model.config)
    _, cache = everything(model)
    assert list(cache) == model.hook_names()
    assert {name: tuple(value.shape) for name, value in cache.items()} == {
        name: expected_shape(name, model.config) for name in cache
    }


def is_causal_mask(hidden_qk: Tensor, config: ModelConfig) -> bool:
    ahead = torch.ones(TIME, TIME, dtype=torch.bool).triu(1) if config.causal else torch.zeros(TIME, TIME).bool()
    if config.window is not None:
        ahead = ahead | torch.ones(TIME, TIME, dtype=torch.bool).tril(-config.window)
    return torch.equal(hidden_qk, ahead.expand_as(hidden_qk))


@every_hooked_case
def test_sub_layers_join_the_residual_as_their_placement_says(case: Case) -> None:
    model, config = case.model(), case.config()
    logits, cache = everything(model)
    x = cache["hook_embed"] + cache["hook_pos_embed"] if "hook_pos_embed" in cache else cache["hook_embed"]
    for layer, block in enumerate(model.blocks):
        assert torch.equal(cache["resid_pre", layer], x)

        def joined(before: Tensor, given: Tensor, norm: torch.nn.Module) -> Tensor:
            after = given if config.residual == "replacing" else before + given
            return after if config.norm_placement == "pre" else norm(after)

        x = joined(cache["resid_pre", layer], cache["attn_out", layer], block.mixer_norm)
        if ("ln1.normalized", layer) in cache:
            close(cache["ln1.normalized", layer], block.mixer_norm(cache["resid_pre", layer]))
        if config.feedforward != "none":
            close(cache["resid_mid", layer], x)
            x = joined(cache["resid_mid", layer], cache["mlp_out", layer], block.feedforward_norm)
            act = F.silu if config.feedforward == "swiglu" else block.feedforward.act
            worked = act(cache["pre", layer])
            if config.feedforward == "swiglu":
                worked = worked * cache["pre_linear", layer]
            close(cache["mlp.post", layer], worked)
            close(cache["mlp_out", layer], block.feedforward.out(worked))
        close(cache["resid_post", layer], x)
        x = cache["resid_post", layer]
    normed = model.final_norm(x)
    if "ln_final.hook_normalized" in cache:
        close(cache["ln_final.hook_normalized"], normed)
    close(model.logits(normed), logits)


@every_hooked_case
def test_what_each_head_adds_sums_to_what_the_mixer_adds(case: Case) -> None:
    model = case.model()
    _, cache = everything(model)
    for layer, block in enumerate(model.blocks):
        output, z = block.mixer.output, cache["z", layer]
        added = cache["result", layer].sum(2)
        close(added + (0 if output is None or output.bias is None else output.bias), cache["attn_out", layer])
        for head, z_bqd in enumerate(z.unbind(2)):
            alone = torch.zeros_like(z)
            alone[:, :, head] = z_bqd
            flat = alone.flatten(2)
            close(cache["result", layer][:, :, head], flat if output is None else flat @ output.weight.T)


@every_hooked_case
def test_weights_follow_from_scores_and_averages_from_weights(case: Case) -> None:
    model = case.model()
    _, cache = everything(model)
    for layer, block in enumerate(model.blocks):
        mixer, kind = block.mixer, type(block.mixer)
        if ("pattern", layer) not in cache:
            assert kind.weights_are == "none"
            continue
        pattern = cache["pattern", layer]
        hidden = torch.zeros(TIME, TIME, dtype=torch.bool)
        scored = [name for name in cache if name.startswith(f"blocks.{layer}.attn.hook_attn_scores")]
        for name in scored:
            hidden = cache[name] == -math.inf
            assert is_causal_mask(hidden, model.config)
            assert (cache[name.replace("attn_scores", "pattern")][hidden] == 0).all()
        if kind.weights_are == "normalised":
            close(pattern.sum(-1), torch.ones_like(pattern[..., 0]))
        if ("attn_scores", layer) in cache:
            close(mixer.weigh(cache["attn_scores", layer], ~hidden), pattern)
        if ("pattern_1", layer) in cache:
            first, second = (cache[f"attn_scores_{n}", layer].softmax(-1) for n in (1, 2))
            close(cache["pattern_1", layer], first)
            close(cache["pattern_2", layer], second)
            share = cache["lambda", layer]
            close(pattern, first - (share if share.ndim == 0 else share.transpose(1, 2)[..., None]) * second)
        if case.config().mixer == "differential2":
            close(cache["lambda", layer], cache["gate", layer].sigmoid())
        v_bhkd = shared_by_groups(cache["v", layer].transpose(1, 2), mixer.heads.output_heads)
        read = cache["ln1.normalized", layer] if ("ln1.normalized", layer) in cache else cache["resid_pre", layer]
        averaged = pattern @ v_bhkd
        heads = Heads(averaged, averaged, averaged, None, Visible(TIME, TIME, read.device), read)
        z_bhqd = mixer.finish(averaged, heads)
        close(cache["z", layer], z_bhqd.transpose(1, 2))


def scores_by_dot_product_alone(config: ModelConfig) -> bool:
    kind = mixer_class(config.mixer)
    adds = config.mixer == "forgetting" or config.position == "alibi"
    return issubclass(kind, ScoreMixer) and bool(kind.sizes(config).key_size) and not adds


DOT_PRODUCTS = [case for case in HOOKED if scores_by_dot_product_alone(case.config())]


@pytest.mark.parametrize("case", hooked(DOT_PRODUCTS))
def test_scores_are_dot_products_of_the_queries_and_keys_that_are_shown(case: Case) -> None:
    model, config = case.model(), case.config()
    _, cache = everything(model)
    together = 2 if config.mixer == "differential" else 1
    for layer, block in enumerate(model.blocks):
        q, k = (
            cache[f"rot_{name}" if config.position in ROTARY else name, layer].transpose(1, 2) for name in ("q", "k")
        )
        scores = q @ shared_by_groups(k, block.mixer.heads.query_heads, together=together).transpose(-1, -2)
        scores = scores / math.sqrt(config.d_head)
        if config.soft_cap is not None:
            scores = config.soft_cap * torch.tanh(scores / config.soft_cap)
        if ("attn_scores", layer) in cache:
            shown = cache["attn_scores", layer]
        else:
            shown = torch.stack([cache[f"attn_scores_{n}", layer] for n in (1, 2)], dim=2).flatten(1, 2)
        close(shown, scores.masked_fill(shown == -math.inf, -math.inf))


@every_mixer
def test_the_pattern_is_what_the_model_says_its_weights_are(case: Case) -> None:
    model = case.model()
    _, cache = everything(model)
    if mixer_class(model.config.mixer).weights_are == "none":
        assert ("pattern", 0) not in cache
        return
    for layer, weights in enumerate(model.weights(some_ids())):
        close(weights, cache["pattern", layer])
