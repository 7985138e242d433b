"""Whole models against independent ones in `transformers`, with copied weights: logits and gradients, in float32.

Everything is built from config objects; nothing is downloaded. `ours` is told their numbers by name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    BloomConfig,
    DiffLlamaConfig,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    MistralConfig,
    MptConfig,
    PreTrainedModel,
    Qwen3Config,
)
from transformers.models.bloom import modeling_bloom
from transformers.models.diffllama.modeling_diffllama import DiffLlamaForCausalLM
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXForCausalLM
from transformers.models.llama.modeling_llama import LlamaForCausalLM
from transformers.models.mistral.modeling_mistral import MistralForCausalLM
from transformers.models.mpt import modeling_mpt
from transformers.models.qwen3.modeling_qwen3 import Qwen3ForCausalLM

from headstock.model.positions import alibi_slopes
from headstock.model.transformer import build
from headstock.model.visibility import Visible
from tests.model.cases import both_paths, close, stirred
from tests.oracles.names import by_our_names, split_by_head

VOCAB, CONTEXT, TIME, WIDTH, LAYERS, HEADS = 61, 40, 33, 48, 3, 8
IDS = torch.randint(VOCAB, (2, TIME), generator=torch.Generator().manual_seed(0))
SIZES = {"vocab_size": VOCAB, "context": CONTEXT, "d_model": WIDTH, "n_layers": LAYERS, "n_heads": HEADS}
LOGITS, GRADIENTS = 1e-5, 1e-5
SILENT = {"bos_token_id": None, "eos_token_id": None, "attn_implementation": "eager"}
"""Plain attention, and no tokens of their own, which would lie past so small a vocabulary."""
LLAMA_LIKE = "norm=rmsnorm,feedforward=swiglu,d_ff=20,feedforward_bias=false"

Names = Callable[[nn.Module], dict[str, Tensor]]


@dataclass(frozen=True)
class Oracle:
    """A variant of ours, a model that should be the same function, and its numbers under our names."""

    name: str
    variant: str
    theirs: Callable[[], PreTrainedModel]
    names: Names
    without: tuple[str, ...] = ()
    """Endings of our parameters that it lacks: norms' weights are 1 there, biases 0, as ours are at the start."""
    folded: tuple[str, ...] = ()
    """Our parameters that several of its own make, so that gradients do not compare."""

    def __str__(self) -> str:
        return self.name


def hold_together(oracle: Oracle, plain: bool) -> None:
    """Hold logits and every gradient together."""
    theirs = stirred(oracle.theirs(), torch.float32, spread=0.1).eval()
    ours = build(oracle.variant, **SIZES)
    lacking = ours.load_state_dict(oracle.names(theirs), strict=False)
    assert not lacking.unexpected_keys
    assert all(name.endswith(oracle.without) for name in lacking.missing_keys), lacking.missing_keys
    ours.plain = plain
    own, expected = ours(IDS), theirs(IDS, use_cache=False).logits
    assert expected.std() > 0.1
    close(own, expected, atol=LOGITS)
    for logits in (own, expected):
        F.cross_entropy(logits[:, :-1].flatten(0, 1), IDS[:, 1:].flatten()).backward()
    for parameter in theirs.parameters():  # each stands in for its own gradient, so that it comes by our names
        parameter.data = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    for name, gradient in oracle.names(theirs).items():
        own_gradient = ours.get_parameter(name).grad
        assert own_gradient is not None, name
        if not name.endswith("key.bias"):  # which moves all scores of a query alike: its gradient is 0
            assert own_gradient.abs().max() > 1e-4, name
        if name not in oracle.folded:
            close(own_gradient, gradient, atol=GRADIENTS)


def gpt2_names(model: nn.Module) -> dict[str, Tensor]:
    body = model.transformer
    ours = by_our_names({"embed": body.wte, "position": body.wpe, "final_norm": body.ln_f})
    for i, block in enumerate(body.h):
        ours |= by_our_names({f"blocks.{i}.mixer_norm": block.ln_1, f"blocks.{i}.feedforward_norm": block.ln_2})
        maps = {
            "mixer.output": block.attn.c_proj,
            "feedforward.into": block.mlp.c_fc,
            "feedforward.out": block.mlp.c_proj,
        }
        for name, conv in maps.items():  # theirs are stored as (in, out)
            ours |= {f"blocks.{i}.{name}.weight": conv.weight.T, f"blocks.{i}.{name}.bias": conv.bias}
        weights, biases = block.attn.c_attn.weight.T.chunk(3), block.attn.c_attn.bias.chunk(3)
        for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
            ours |= {f"blocks.{i}.mixer.{name}.weight": weight, f"blocks.{i}.mixer.{name}.bias": bias}
    return ours


def neox_names(model: nn.Module) -> dict[str, Tensor]:
    body = model.gpt_neox
    ours = by_our_names({"embed": body.embed_in, "final_norm": body.final_layer_norm, "unembed": model.lm_head})
    for i, block in enumerate(body.layers):
        parts = {
            "mixer_norm": block.input_layernorm,
            "feedforward_norm": block.post_attention_layernorm,
            "mixer.output": block.attention.dense,
            "feedforward.into": block.mlp.dense_h_to_4h,
            "feedforward.out": block.mlp.dense_4h_to_h,
        }
        ours |= by_our_names({f"blocks.{i}.{name}": part for name, part in parts.items()})
        for name, number in split_by_head(block.attention.query_key_value, HEADS).items():
            ours[f"blocks.{i}.mixer.{name}"] = number
    return ours


def bloom_names(model: nn.Module) -> dict[str, Tensor]:
    """Its norm of each token's embedding makes another embedding."""
    body = model.transformer
    ours = by_our_names({"final_norm": body.ln_f, "unembed": model.lm_head})
    ours["embed.weight"] = body.word_embeddings_layernorm(body.word_embeddings.weight)
    for i, block in enumerate(body.h):
        parts = {
            "mixer_norm": block.input_layernorm,
            "feedforward_norm": block.post_attention_layernorm,
            "mixer.output": block.self_attention.dense,
            "feedforward.into": block.mlp.dense_h_to_4h,
            "feedforward.out": block.mlp.dense_4h_to_h,
        }
        ours |= by_our_names({f"blocks.{i}.{name}": part for name, part in parts.items()})
        for name, number in split_by_head(block.self_attention.query_key_value, block.num_heads).items():
            ours[f"blocks.{i}.mixer.{name}"] = number
    return ours


def mpt_names(model: nn.Module) -> dict[str, Tensor]:
    body = model.transformer
    ours = by_our_names({"embed": body.wte, "final_norm": body.norm_f})
    for i, block in enumerate(body.blocks):
        parts = {
            "mixer_norm": block.norm_1,
            "feedforward_norm": block.norm_2,
            "mixer.output": block.attn.out_proj,
            "feedforward.into": block.ffn.up_proj,
            "feedforward.out": block.ffn.down_proj,
        }
        ours |= by_our_names({f"blocks.{i}.{name}": part for name, part in parts.items()})
        for name, weight in zip(("query", "key", "value"), block.attn.Wqkv.weight.chunk(3), strict=True):
            ours[f"blocks.{i}.mixer.{name}.weight"] = weight
    return ours


def llama_names(model: nn.Module, rows: Callable[[Tensor], Tensor] = lambda weight: weight) -> dict[str, Tensor]:
    """rows puts the rows of queries, keys and values in our order."""
    body, ours = model.model, {"embed.weight": model.model.embed_tokens.weight}
    for i, block in enumerate(body.layers):
        attention, mlp = block.self_attn, block.mlp
        ours |= {
            f"blocks.{i}.mixer_norm.weight": block.input_layernorm.weight,
            f"blocks.{i}.feedforward_norm.weight": block.post_attention_layernorm.weight,
            f"blocks.{i}.mixer.query.weight": rows(attention.q_proj.weight),
            f"blocks.{i}.mixer.key.weight": rows(attention.k_proj.weight),
            f"blocks.{i}.mixer.value.weight": rows(attention.v_proj.weight),
            f"blocks.{i}.mixer.output.weight": attention.o_proj.weight,
            f"blocks.{i}.feedforward.gate.weight": mlp.gate_proj.weight,
            f"blocks.{i}.feedforward.into.weight": mlp.up_proj.weight,
            f"blocks.{i}.feedforward.out.weight": mlp.down_proj.weight,
        }
    return ours | {"final_norm.weight": body.norm.weight, "unembed.weight": model.lm_head.weight}


def diffllama_names(model: nn.Module) -> dict[str, Tensor]:
    """Theirs pairs head i with head i + H/2, ours 2i with 2i + 1; its sub-norm has no weight."""
    size = model.config.head_dim

    def paired(weight: Tensor) -> Tensor:
        heads = weight.unflatten(0, (2, -1, size))  # (half, pair, number of the head, model)
        return heads.transpose(0, 1).flatten(0, 2)

    ours = llama_names(model, paired)
    for i, block in enumerate(model.model.layers):
        vectors = ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2")
        ours |= {f"blocks.{i}.mixer.{name}": getattr(block.self_attn, name) for name in vectors}
    return ours


def qwen3_names(model: nn.Module) -> dict[str, Tensor]:
    ours = llama_names(model)
    for i, block in enumerate(model.model.layers):
        norms = {"query_norm": block.self_attn.q_norm, "key_norm": block.self_attn.k_norm}
        ours |= by_our_names({f"blocks.{i}.mixer.{name}": norm for name, norm in norms.items()})
    return ours


def gpt2() -> PreTrainedModel:
    sizes = {"n_positions": CONTEXT, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS}
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, activation_function="gelu", **sizes, **SILENT))


def neox() -> PreTrainedModel:
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 20}
    config = GPTNeoXConfig(vocab_size=VOCAB, rotary_pct=1.0, use_parallel_residual=False, **sizes, **SILENT)
    return GPTNeoXForCausalLM(config)


def bloom(heads: int) -> PreTrainedModel:
    sizes = {"hidden_size": WIDTH, "n_layer": LAYERS, "n_head": heads}
    theirs = modeling_bloom.BloomForCausalLM(
        BloomConfig(vocab_size=VOCAB, tie_word_embeddings=False, **sizes, **SILENT)
    )
    for block in theirs.transformer.h:
        block.mlp.gelu_impl = nn.GELU()  # theirs is an approximation by tanh, 1e-3 off
    return theirs


def mpt(heads: int) -> PreTrainedModel:
    sizes = {"d_model": WIDTH, "n_layers": LAYERS, "n_heads": heads, "max_seq_len": CONTEXT}
    return modeling_mpt.MptForCausalLM(MptConfig(vocab_size=VOCAB, **sizes, **SILENT))


def llama_like(model: type[Any], config: type[Any], key_heads: int, **more: Any) -> Callable[[], PreTrainedModel]:
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 20}
    sizes |= {"vocab_size": VOCAB, "max_position_embeddings": CONTEXT, "num_key_value_heads": key_heads}
    return lambda: model(config(rms_norm_eps=1e-5, **sizes, **more, **SILENT))


ORACLES = [
    Oracle("gpt2", "softmax,qkv_bias=true,output_bias=true,tied=true", gpt2, gpt2_names),
    Oracle("gpt-neox", "softmax+rope,qkv_bias=true,output_bias=true,d_ff=20", neox, neox_names),
    *(
        Oracle(
            f"bloom-{heads}",
            f"softmax+alibi,n_heads={heads},qkv_bias=true,output_bias=true",
            lambda heads=heads: bloom(heads),
            bloom_names,
            folded=("embed.weight",),
        )
        for heads in (8, 6)
    ),
    *(
        Oracle(
            f"mpt-{heads}",
            f"softmax+alibi,n_heads={heads},feedforward_bias=false,tied=true",
            lambda heads=heads: mpt(heads),
            mpt_names,
            without=("norm.bias",),
        )
        for heads in (8, 6)
    ),
    *(
        Oracle(
            f"llama-{keys}",
            f"softmax+rope,n_kv_heads={keys},{LLAMA_LIKE}",
            llama_like(LlamaForCausalLM, LlamaConfig, keys),
            llama_names,
        )
        for keys in (8, 2, 1)
    ),
    *(
        Oracle(
            f"mistral-{window}",
            f"softmax+rope,n_kv_heads=2,window={window},{LLAMA_LIKE}",
            llama_like(MistralForCausalLM, MistralConfig, 2, sliding_window=window),
            llama_names,
        )
        for window in (2, 5)
    ),
    Oracle(
        "qwen3",
        f"softmax+rope,n_kv_heads=4,d_head=10,qk_norm=rmsnorm,{LLAMA_LIKE}",
        llama_like(Qwen3ForCausalLM, Qwen3Config, 4, head_dim=10),
        qwen3_names,
    ),
    *(
        Oracle(
            f"diffllama-{keys}",
            f"differential+rope,n_kv_heads={keys},{LLAMA_LIKE}",
            llama_like(DiffLlamaForCausalLM, DiffLlamaConfig, keys),
            diffllama_names,
            without=("mixer.norm.weight",),
        )
        for keys in (8, 4, 2)
    ),
]


@both_paths
@pytest.mark.parametrize("oracle", ORACLES, ids=str)
def test_a_model_equals_one_that_others_wrote(oracle: Oracle, plain: bool) -> None:
    hold_together(oracle, plain)


@pytest.mark.parametrize("heads", [1, 2, 4, 6, 8, 12, 16, 20])
def test_alibi_slopes_are_those_of_bloom(heads: int) -> None:
    theirs = modeling_bloom._get_alibi_slopes(heads, torch.device("cpu"))
    close(alibi_slopes(heads).float(), theirs, atol=1e-7)


@pytest.mark.parametrize("heads", [1, 2, 4, 6, 8, 12, 16, 20])
def test_alibi_penalties_are_those_of_mpt(heads: int) -> None:
    theirs = modeling_mpt.build_mpt_alibi_tensor(heads, TIME)[:, 0]  # (head, key), as the last query sees them
    ours = Visible(1, TIME, torch.device("cpu"), slopes_h=alibi_slopes(heads).float()).penalty_bhqk
    assert ours is not None
    close(ours[0, :, 0], theirs, atol=1e-6)
