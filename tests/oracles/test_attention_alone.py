"""One mixer and nothing else, against modules of `transformers`, `x-transformers` and torch with copied weights.

Outputs, and gradients of every weight and of the input, in float32. Ours is a whole model of which only the mixer is
left: ids choose rows of a table x, and its logits are what the mixer makes of them.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from rotary_embedding_torch import RotaryEmbedding as OtherRotary
from torch import Tensor, nn
from transformers import Gemma2Config, GPTJConfig, GptOssConfig, MiniMaxConfig, PersimmonConfig
from transformers.models.gemma2.modeling_gemma2 import Gemma2Attention, Gemma2RotaryEmbedding
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssAttention, GptOssRotaryEmbedding
from transformers.models.gptj.modeling_gptj import GPTJAttention, create_sinusoidal_positions
from transformers.models.minimax.modeling_minimax import MiniMaxLightningAttention
from transformers.models.persimmon.modeling_persimmon import PersimmonAttention, PersimmonRotaryEmbedding
from transformers.models.qwen3_next.modeling_qwen3_next import torch_recurrent_gated_delta_rule

from headstock.model.positions import Rotation
from headstock.model.transformer import Transformer, build
from tests.model.cases import both_paths, close, stirred
from tests.oracles.names import by_our_names, split_by_head

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it scripts a function as it is imported
    from x_transformers.x_transformers import AlibiPositionalBias, Attention, RotaryEmbedding

WIDTH, HEADS, D_HEAD, TIME, BATCH = 48, 6, 8, 33, 2
IDS = torch.stack([torch.randperm(WIDTH, generator=torch.Generator().manual_seed(row))[:TIME] for row in range(BATCH)])
OUTPUTS, GRADIENTS = 1e-5, 1e-5
ABOVE = torch.ones(TIME, TIME, dtype=torch.bool).triu(1)

Attends = Callable[[nn.Module, Tensor], Tensor]
Names = Callable[[nn.Module], dict[str, Tensor]]


@dataclass(frozen=True)
class Oracle:
    """A variant of ours, a module that should mix the same, how it is called, and its numbers under our names."""

    name: str
    variant: str
    theirs: Callable[[], nn.Module]
    attend: Attends
    names: Names
    folded: tuple[str, ...] = ()
    """Our parameters that are constants there, or that several of its own make, so that gradients do not compare."""

    def __str__(self) -> str:
        return self.name


def mixer_alone(variant: str) -> Transformer:
    bare = {"n_layers": 1, "residual": "replacing", "norm": "none", "feedforward": "none"}
    model = build(variant, vocab_size=WIDTH, context=TIME, d_model=WIDTH, n_heads=HEADS, **bare)
    with torch.no_grad():
        model.unembed.weight.copy_(torch.eye(WIDTH))
        nn.init.normal_(model.embed.weight, generator=torch.Generator().manual_seed(0))
    return model


def projections(names: str, output: str) -> Names:
    """Four maps, three of them named with q, k and v in the place of a star."""

    def under_ours(model: nn.Module) -> dict[str, Tensor]:
        maps = {own: model.get_submodule(names.replace("*", own[0])) for own in ("query", "key", "value")}
        maps["output"] = model.get_submodule(output)
        return by_our_names(maps)

    return under_ours


def hold_together(oracle: Oracle, plain: bool) -> None:
    theirs, ours = stirred(oracle.theirs(), torch.float32, spread=0.1).eval(), mixer_alone(oracle.variant)
    ours.plain = plain
    mixer = ours.blocks[0].mixer
    mixer.load_state_dict(oracle.names(theirs))
    x = ours.embed.weight.detach().clone().requires_grad_()
    own, expected = ours(IDS), oracle.attend(theirs, x[IDS])
    assert expected.std() > 0.1
    close(own, expected, atol=OUTPUTS)
    direction = torch.randn(own.shape) / own.numel() ** 0.5
    for mixed in (own, expected):
        (mixed * direction).sum().backward()
    for parameter in theirs.parameters():  # each stands in for its own gradient, so that it comes by our names
        parameter.data = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    close(ours.embed.weight.grad, x.grad, atol=GRADIENTS)
    for name, gradient in oracle.names(theirs).items():
        if name in oracle.folded:
            continue
        own_gradient = mixer.get_parameter(name).grad
        assert own_gradient is not None, name
        if name != "key.bias":  # which moves all scores of a query alike: its gradient may be 0
            assert own_gradient.abs().max() > 1e-3, name
        close(own_gradient, gradient, atol=GRADIENTS)


def gptj() -> nn.Module:
    config = GPTJConfig(n_embd=WIDTH, n_head=HEADS, n_positions=TIME, rotary_dim=D_HEAD, attn_implementation="eager")
    return GPTJAttention(config, 0)


def gptj_attends(module: nn.Module, x: Tensor) -> Tensor:
    table = create_sinusoidal_positions(TIME, D_HEAD).expand(BATCH, -1, -1)
    return module(x, table.chunk(2, dim=-1), attention_mask=minus_infinity_above())[0]


GEMMA2 = Gemma2Config(
    hidden_size=WIDTH,
    num_attention_heads=HEADS,
    num_key_value_heads=2,
    head_dim=10,
    query_pre_attn_scalar=10,
    attn_logit_softcapping=1.5,
    layer_types=["full_attention"],
    num_hidden_layers=1,
    attn_implementation="eager",  # the only one of its implementations that caps
)


def gemma2_attends(module: nn.Module, x: Tensor) -> Tensor:
    rotation = Gemma2RotaryEmbedding(GEMMA2)(x, torch.arange(TIME)[None])
    return module(x, rotation, minus_infinity_above())[0]


PERSIMMON = PersimmonConfig(
    hidden_size=WIDTH,
    num_attention_heads=HEADS,
    qk_layernorm=True,
    partial_rotary_factor=1.0,
    attn_implementation="eager",
)


def persimmon_attends(module: nn.Module, x: Tensor) -> Tensor:
    rotation = PersimmonRotaryEmbedding(PERSIMMON)(x, torch.arange(TIME)[None])
    return module(x, minus_infinity_above(), position_embeddings=rotation)[0]


def persimmon_names(module: nn.Module) -> dict[str, Tensor]:
    parts = {"output": module.dense, "query_norm": module.q_layernorm, "key_norm": module.k_layernorm}
    return by_our_names(parts) | split_by_head(module.query_key_value, HEADS)


GPT_OSS = GptOssConfig(
    hidden_size=WIDTH,
    num_attention_heads=HEADS,
    num_key_value_heads=3,
    head_dim=10,
    rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    attn_implementation="eager",
)


def gpt_oss() -> nn.Module:
    theirs = GptOssAttention(GPT_OSS, 0)
    nn.init.zeros_(theirs.sinks)  # which it leaves as memory was
    return theirs


def gpt_oss_attends(module: nn.Module, x: Tensor) -> Tensor:
    rotation = GptOssRotaryEmbedding(GPT_OSS)(x, torch.arange(TIME)[None])
    return module(x, rotation, minus_infinity_above())[0]


def gpt_oss_names(module: nn.Module) -> dict[str, Tensor]:
    return projections("*_proj", "o_proj")(module) | {"sink_h": module.sinks}


class DeltaRule(nn.Module):
    """Gates, norm and maps round the recurrence of Qwen3-Next, whose own gate on the past is left open."""

    def __init__(self) -> None:
        super().__init__()
        self.maps = nn.ModuleDict({name: nn.Linear(WIDTH, WIDTH, bias=False) for name in "qkvo"})
        self.beta = nn.Linear(WIDTH, HEADS, bias=False)
        self.norm = nn.RMSNorm(D_HEAD, eps=1e-5)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.maps[name](x).unflatten(-1, (HEADS, D_HEAD)) for name in "qkv")
        beta = self.beta(x).sigmoid()
        z, _ = torch_recurrent_gated_delta_rule(
            q, k, v, g=torch.zeros_like(beta), beta=beta, use_qk_l2norm_in_kernel=True
        )
        return self.maps["o"](self.norm(z * D_HEAD**0.5).flatten(-2))  # it divides queries of length 1 by √d

    def named(self) -> dict[str, Tensor]:
        parts = {"gate": self.beta, "norm": self.norm}
        return projections("maps.*", "maps.o")(self) | by_our_names(parts)


class Retained(nn.Module):
    """Norm, gate and output map round the lightning attention of MiniMax, told to decay as retention does."""

    def __init__(self) -> None:
        super().__init__()
        config = MiniMaxConfig(
            hidden_size=WIDTH, num_attention_heads=HEADS, head_dim=D_HEAD, num_hidden_layers=2, block_size=7
        )
        self.inner = inner = MiniMaxLightningAttention(config, 0)
        inner.act_fn = inner.norm = inner.out_proj = nn.Identity()
        inner.slope_rate = -(1 - 2.0 ** -(5 + torch.arange(HEADS))).log()[:, None, None]
        inner.query_decay, inner.key_decay, inner.diagonal_decay = inner.decay_factors(inner.slope_rate)
        inner.output_gate = nn.Linear(WIDTH, WIDTH, bias=False).requires_grad_(False)
        self.swish, self.output = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        self.inner.output_gate.weight.zero_()  # half open, always
        z = 2 * self.inner(x, None, None)[0] / D_HEAD**0.5
        normed = F.rms_norm(z.unflatten(-1, (HEADS, D_HEAD)), [D_HEAD], eps=1e-5).flatten(-2)
        return self.output(normed * F.silu(self.swish(x)))

    def named(self) -> dict[str, Tensor]:
        parts = {"swish": self.swish, "output": self.output}
        return split_by_head(self.inner.qkv_proj, HEADS) | by_our_names(parts)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.output = nn.LSTM(WIDTH, WIDTH, batch_first=True), nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.lstm(x)[0])

    def named(self) -> dict[str, Tensor]:
        lstm = self.lstm
        ours = {"input.weight": lstm.weight_ih_l0, "recurrent.weight": lstm.weight_hh_l0}
        return ours | {"bias": lstm.bias_ih_l0 + lstm.bias_hh_l0} | by_our_names({"output": self.output})


def minus_infinity_above() -> Tensor:
    return torch.zeros(1, 1, TIME, TIME).masked_fill(ABOVE, -torch.inf)


def x_oracle(
    name: str,
    variant: str,
    *,
    extras: Callable[[], dict[str, Any]] = dict,
    more: Names = lambda module: {},
    folded: tuple[str, ...] = (),
    **choices: Any,
) -> Oracle:
    """extras gives what is handed to each call; more names what there is beside the four maps."""

    def theirs() -> nn.Module:
        return Attention(WIDTH, dim_head=D_HEAD, heads=HEADS, causal=True, **choices)

    def names(model: nn.Module) -> dict[str, Tensor]:
        return projections("to_*", "to_out")(model) | more(model)

    return Oracle(f"x-{name}", variant, theirs, lambda module, x: module(x, **extras()), names, folded)


def alibi() -> dict[str, Any]:
    return {"rel_pos": AlibiPositionalBias(HEADS)}


def rotary(**choices: Any) -> dict[str, Any]:
    return {"rotary_pos_emb": RotaryEmbedding(D_HEAD, **choices).forward_from_seq_len(TIME)}


def less_log_of_the_count(n_queries: int, n_keys: int) -> Tensor:
    return -torch.arange(1, n_queries + 1.0).log()[:, None].expand(-1, n_keys)


ORACLES = [
    Oracle("gptj", "softmax+rope-interleaved", gptj, gptj_attends, projections("*_proj", "out_proj")),
    Oracle(
        "gemma2",
        "softmax+rope,soft_cap=1.5,n_kv_heads=2,d_head=10",
        lambda: Gemma2Attention(GEMMA2, 0),
        gemma2_attends,
        projections("*_proj", "o_proj"),
    ),
    Oracle(
        "persimmon",
        "softmax+rope,qk_norm=layernorm,qkv_bias=true,output_bias=true",
        lambda: PersimmonAttention(PERSIMMON, 0),
        persimmon_attends,
        persimmon_names,
    ),
    Oracle(
        "gpt-oss",
        "sink+rope,n_kv_heads=3,d_head=10,qkv_bias=true,output_bias=true",
        gpt_oss,
        gpt_oss_attends,
        gpt_oss_names,
    ),
    Oracle("qwen3-next", "delta+none", DeltaRule, DeltaRule.__call__, DeltaRule.named),
    Oracle("minimax", "retention+none", Retained, Retained.__call__, Retained.named),
    Oracle("torch-lstm", "lstm+none", Recurrent, Recurrent.__call__, Recurrent.named, folded=("bias",)),
    x_oracle("softmax", "softmax+none"),
    x_oracle("alibi", "softmax+alibi", extras=alibi),
    x_oracle("rotary", "softmax+rope-interleaved", extras=rotary),
    # Its scales are powers of the distance to the middle of the sequence: the same scores, for they know shifts only.
    x_oracle("xpos", "softmax+xpos", extras=lambda: rotary(use_xpos=True)),
    x_oracle("window", "softmax+none,window=5", max_attend_past=4),  # which counts the past alone
    x_oracle("zero-key", "softmax1+none", add_zero_kv=True),
    x_oracle("zero-key-alibi", "softmax1+alibi", extras=alibi, add_zero_kv=True),
    x_oracle("zero-key-rotary", "softmax1+rope-interleaved", extras=rotary, add_zero_kv=True),
    x_oracle("soft-clamp", "softmax+none,soft_cap=1.5", softclamp_logits=True, logit_softclamp_value=1.5),
    x_oracle(
        "soft-clamp-zero-key", "softmax1+xpos,soft_cap=1.5", extras=lambda: rotary(use_xpos=True),
        softclamp_logits=True, logit_softclamp_value=1.5, add_zero_kv=True,
    ),
    # Its scores are cosines times 10; ours, of vectors of root mean square 1, cosines times √d.
    x_oracle(
        "cosine", "softmax+rope-interleaved,qk_norm=rmsnorm,norm_eps=1e-12", extras=rotary, qk_norm=True,
        more=lambda _: {
            "query_norm.weight": torch.full([D_HEAD], 10 / D_HEAD**0.5),
            "key_norm.weight": torch.ones(D_HEAD),
        },
        folded=("query_norm.weight", "key_norm.weight"),
    ),
    x_oracle("sink", "sink+none", head_learned_sink=True, more=lambda m: {"sink_h": m.attend.head_attn_sink}),
    x_oracle(
        "sink-alibi", "sink+alibi", extras=alibi, head_learned_sink=True,
        more=lambda m: {"sink_h": m.attend.head_attn_sink},
    ),
    # Its sigmoid has no shift of its own: it is handed to it as a bias.
    x_oracle("sigmoid", "sigmoid+none", extras=lambda: {"rel_pos": less_log_of_the_count}, sigmoid=True),
    x_oracle("sparse", "topk+none,k=5", sparse_topk=5),
    x_oracle("sparse-alibi", "topk+alibi,k=3", extras=alibi, sparse_topk=3),
    x_oracle("sparse-xpos", "topk+xpos,k=4", extras=lambda: rotary(use_xpos=True), sparse_topk=4),
    x_oracle(
        "forget-gates", "forgetting+rope-interleaved", extras=rotary, data_dependent_alibi=True,
        more=lambda m: {
            "gate.weight": m.data_dependent_alibi.to_forget_gates[0].weight,
            "gate_bias_h": m.data_dependent_alibi.to_forget_gates[0].bias,
        },
    ),
]  # fmt: skip


@both_paths
@pytest.mark.parametrize("oracle", ORACLES, ids=str)
def test_a_mixer_equals_one_that_others_wrote(oracle: Oracle, plain: bool) -> None:
    hold_together(oracle, plain)


@pytest.mark.parametrize("layout", ["rope-interleaved", "xpos"])
def test_rotations_are_those_of_rotary_embedding_torch(layout: str) -> None:
    q, k = torch.randn(2, 2, 5, TIME, 16)
    theirs = OtherRotary(16, use_xpos=layout == "xpos")
    ours = Rotation.at(torch.arange(TIME), 16, torch.float32, layout=layout)
    if layout == "xpos":
        # theirs counts positions from the middle of the sequence, which scales queries and keys by opposite factors
        turned_q, turned_k = theirs.rotate_queries_and_keys(q, k)
        close(ours.of_queries(q) @ ours.of_keys(k).mT, turned_q @ turned_k.mT, atol=OUTPUTS)
    else:
        close(ours.of_queries(q), theirs.rotate_queries_or_keys(q), atol=OUTPUTS)
        close(ours.of_keys(k), theirs.rotate_queries_or_keys(k), atol=OUTPUTS)
