"""Whole models against independent ones in `transformers`, with copied weights: logits and gradients, in float32.

Everything is built from config objects; nothing is downloaded. `ours` is told their numbers by name.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import DiffLlamaConfig, GPT2Config, LlamaConfig, PreTrainedModel
from transformers.models.bloom import modeling_bloom
from transformers.models.diffllama.modeling_diffllama import DiffLlamaForCausalLM
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel
from transformers.models.gptj import modeling_gptj
from transformers.models.llama.modeling_llama import LlamaForCausalLM
from transformers.models.mpt import modeling_mpt

from headstock.model.positions import Rotation, alibi_slopes
from headstock.model.transformer import Transformer, build
from headstock.model.visibility import Visible
from tests.model.cases import both_paths, close, stirred

VOCAB, CONTEXT, TIME, WIDTH, LAYERS, HEADS = 61, 40, 33, 48, 3, 8
IDS = torch.randint(VOCAB, (2, TIME), generator=torch.Generator().manual_seed(0))
SIZES = {"vocab_size": VOCAB, "context": CONTEXT, "d_model": WIDTH, "n_layers": LAYERS, "n_heads": HEADS}
LOGITS, GRADIENTS = 1e-5, 1e-5

Names = Callable[[nn.Module], dict[str, Tensor]]


def ours_from(variant: str, theirs: PreTrainedModel, names: Names) -> Transformer:
    """Give our model with their numbers."""
    model = build(variant, **SIZES)
    model.load_state_dict(names(theirs))
    return model


def gradients_by_our_names(theirs: PreTrainedModel, names: Names) -> dict[str, Tensor]:
    """Give their gradients under our names: each parameter stands in for its own gradient."""
    for parameter in theirs.parameters():
        parameter.data = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    return names(theirs)


def hold_together(variant: str, theirs: PreTrainedModel, names: Names, plain: bool) -> None:
    """Hold logits and every gradient together."""
    stirred(theirs, torch.float32, spread=0.1)
    theirs.eval()
    ours = ours_from(variant, theirs, names)
    ours.plain = plain
    own, expected = ours(IDS), theirs(IDS, use_cache=False).logits
    assert expected.std() > 0.1
    close(own, expected, atol=LOGITS)
    for logits in (own, expected):
        F.cross_entropy(logits[:, :-1].flatten(0, 1), IDS[:, 1:].flatten()).backward()
    for name, gradient in gradients_by_our_names(theirs, names).items():
        own_gradient = ours.get_parameter(name).grad
        if name.endswith("mixer.norm.weight"):
            continue  # theirs has no such weight
        assert own_gradient is not None, name
        if not name.endswith("key.bias"):  # which moves all scores of a query alike: its gradient is 0
            assert own_gradient.abs().max() > 1e-4, name
        close(own_gradient, gradient, atol=GRADIENTS)


def gpt2_names(model: nn.Module) -> dict[str, Tensor]:
    body, ours = model.transformer, {}
    ours |= {"embed.weight": body.wte.weight, "position.weight": body.wpe.weight}
    for i, block in enumerate(body.h):
        parts = {"mixer_norm": block.ln_1, "feedforward_norm": block.ln_2}
        ours |= {
            f"blocks.{i}.{name}.{kind}": getattr(m, kind) for name, m in parts.items() for kind in ("weight", "bias")
        }
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
    return ours | {"final_norm.weight": body.ln_f.weight, "final_norm.bias": body.ln_f.bias}


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
    """Theirs pairs head i with head i + H/2, ours 2i with 2i + 1; its sub-norm has no weight, which is ours of ones."""
    size = model.config.head_dim

    def paired(weight: Tensor) -> Tensor:
        heads = weight.unflatten(0, (2, -1, size))  # (half, pair, number of the head, model)
        return heads.transpose(0, 1).flatten(0, 2)

    ours = llama_names(model, paired)
    for i, block in enumerate(model.model.layers):
        vectors = ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2")
        ours |= {f"blocks.{i}.mixer.{name}": getattr(block.self_attn, name) for name in vectors}
        ours[f"blocks.{i}.mixer.norm.weight"] = torch.ones(2 * size)
    return ours


def llama_like(config: type[Any], key_heads: int, **more: Any) -> Any:
    return config(
        vocab_size=VOCAB,
        max_position_embeddings=CONTEXT,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=key_heads,
        intermediate_size=20,
        rms_norm_eps=1e-5,
        bos_token_id=None,
        eos_token_id=None,
        **more,
    )


@both_paths
def test_gpt2_is_a_softmax_transformer_with_biases_and_tied_embeddings(plain: bool) -> None:
    theirs = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCAB,
            n_positions=CONTEXT,
            n_embd=WIDTH,
            n_layer=LAYERS,
            n_head=HEADS,
            activation_function="gelu",
            bos_token_id=None,
            eos_token_id=None,
        )
    )
    hold_together("softmax,qkv_bias=true,output_bias=true,tied=true", theirs, gpt2_names, plain)


@both_paths
@pytest.mark.parametrize("key_heads", [8, 2, 1])
def test_llama_is_softmax_with_rope_rmsnorm_and_swiglu(key_heads: int, plain: bool) -> None:
    theirs = LlamaForCausalLM(llama_like(LlamaConfig, key_heads))
    variant = f"softmax+rope,n_kv_heads={key_heads},norm=rmsnorm,feedforward=swiglu,d_ff=20,feedforward_bias=false"
    hold_together(variant, theirs, llama_names, plain)


@both_paths
@pytest.mark.parametrize("key_heads", [8, 4, 2])
def test_diffllama_is_differential_with_rope_rmsnorm_and_swiglu(key_heads: int, plain: bool) -> None:
    theirs = DiffLlamaForCausalLM(llama_like(DiffLlamaConfig, key_heads))
    variant = f"differential+rope,n_kv_heads={key_heads},norm=rmsnorm,feedforward=swiglu,d_ff=20,feedforward_bias=false"
    hold_together(variant, theirs, diffllama_names, plain)


def test_interleaved_rotation_is_that_of_gptj() -> None:
    x = torch.randn(2, 5, TIME, 16)
    positions = torch.arange(7, 7 + TIME)
    table = modeling_gptj.create_sinusoidal_positions(100, 16)[positions][None]
    sin, cos = table.chunk(2, dim=-1)
    theirs = modeling_gptj.apply_rotary_pos_emb(x.transpose(1, 2), sin, cos).transpose(1, 2)
    close(Rotation.at(positions, 16, torch.float32, layout="rope-interleaved").of_queries(x), theirs, atol=LOGITS)


@pytest.mark.parametrize("heads", [1, 2, 4, 6, 8, 12, 16, 20])
def test_alibi_slopes_are_those_of_bloom(heads: int) -> None:
    theirs = modeling_bloom._get_alibi_slopes(heads, torch.device("cpu"))
    close(alibi_slopes(heads).float(), theirs, atol=1e-7)


@pytest.mark.parametrize("heads", [1, 2, 4, 8, 16])
def test_alibi_penalties_are_those_of_mpt(heads: int) -> None:
    theirs = modeling_mpt.build_mpt_alibi_tensor(heads, TIME)[:, 0]  # (head, key), as the last query sees them
    ours = Visible(1, TIME, torch.device("cpu"), slopes_h=alibi_slopes(heads).float()).penalty_bhqk
    assert ours is not None
    close(ours[0, :, 0], theirs, atol=1e-6)
