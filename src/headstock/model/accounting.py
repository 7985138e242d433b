"""What a model costs, by closed formula: parameters, floating-point operations, cache bytes.

A multiplication and the addition that follows are two operations; elementwise work is not counted. Mixing is counted
as the plain evaluation does it, over every key of the context, hidden ones included: torch's own counter says 0 for
fused attention on the CPU, and a fair figure should not depend on the kernel.
"""

from dataclasses import dataclass

import torch

from headstock.model.config import ModelConfig
from headstock.model.mixers import mixer_class


@dataclass(frozen=True)
class Parameters:
    """Numbers that training changes, by where they stand."""

    embedding: int
    position: int
    blocks: int
    final_norm: int
    unembedding: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.embedding + self.position + self.blocks + self.final_norm + self.unembedding

    @property
    def non_embedding(self) -> int:
        """Those that do not look tokens or places up and do not score the vocabulary: what matching makes equal."""
        return self.blocks + self.final_norm


def parameters(config: ModelConfig) -> Parameters:
    """Count parameters. GPT-2 small, biased and tied, has 124,439,808."""
    width, vocab = config.d_model, config.vocab_size
    per_norm = _norm_parameters(config.norm, width)
    n_norms = 1 if config.feedforward == "none" else 2
    block = _mixer_maps(config) + _head_norms(config) + mixer_class(config.mixer).own_parameters(config)
    block += n_norms * per_norm + _feedforward_parameters(config)
    return Parameters(
        embedding=vocab * width,
        position=config.context * width if config.position == "learned" else 0,
        blocks=config.n_layers * block,
        final_norm=per_norm if config.final_norm else 0,
        unembedding=0 if config.tied else vocab * (width + config.unembed_bias),
    )


def _mixer_maps(config: ModelConfig) -> int:
    sizes = mixer_class(config.mixer).sizes(config)
    width, bias = config.d_model, int(config.qkv_bias)
    maps = 0
    if config.query_key != "identity":
        maps += (width + bias) * sizes.query_heads * sizes.key_size
    if config.query_key == "learned":
        maps += (width + bias) * sizes.key_heads * sizes.key_size
    if config.value_map == "learned":
        maps += (width + bias) * sizes.value_heads * sizes.value_size
    maps += width * sizes.gates
    if config.output_map:
        maps += sizes.output_heads * sizes.value_size * width + config.output_bias * width
    return maps


def _head_norms(config: ModelConfig) -> int:
    """Count the norms of queries, of keys and of outputs that are no mixer's own, each shared by all heads."""
    mixer = mixer_class(config.mixer)
    sizes = mixer.sizes(config)
    of_outputs = sizes.value_size if mixer.adds_head_norm(config) else 0
    return 2 * _norm_parameters(config.qk_norm, sizes.key_size) + of_outputs


def _norm_parameters(kind: str, width: int) -> int:
    return {"none": 0, "layernorm": 2 * width, "rmsnorm": width}[kind]


def _feedforward_parameters(config: ModelConfig) -> int:
    if config.feedforward == "none":
        return 0
    width, inner, bias = config.d_model, config.d_ff, int(config.feedforward_bias)
    ways_in = 2 if config.feedforward == "swiglu" else 1
    return ways_in * (width + bias) * inner + (inner + bias) * width


def flops_per_token(config: ModelConfig, length: int | None = None) -> int:
    """Count the forward pass's operations a token, at `length` tokens (the context where not given).

    Training costs three times as many: the backward pass multiplies twice where the forward pass multiplies once.
    """
    length = config.context if length is None else length
    mixer = mixer_class(config.mixer)
    unbiased = config.model_copy(update={"qkv_bias": False, "output_bias": False, "feedforward_bias": False})
    maps = _mixer_maps(unbiased) + _feedforward_parameters(unbiased)
    layer = 2 * maps + mixer.own_flops(config) + mixer.mixing_flops(config, length)
    return config.n_layers * layer + 2 * config.d_model * config.vocab_size


def cache_bytes(config: ModelConfig, length: int | None = None, dtype: torch.dtype = torch.float32) -> int:
    """Count the bytes that decoding remembers of `length` tokens without padding (the context where not given).

    Keys and values of every block, in the model's dtype, of the last window − 1 tokens where there is a window; or a
    state of fixed size, in float32 or wider.
    """
    length = config.context if length is None else length
    if config.window is not None:
        length = min(length, config.window - 1)
    mixer = mixer_class(config.mixer)
    kept = length * mixer.kept_numbers(config) * dtype.itemsize
    state = mixer.state_numbers(config) * max(dtype.itemsize, torch.float32.itemsize)
    return config.n_layers * (kept + state)
