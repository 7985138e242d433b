"""From a blueprint to a model: which config holds it, and where in the model's maps each weight stands.

Weights are laid out in float64 and rounded once, to the model's dtype. A query's weights are multiplied by √d_head
unless the blueprint lets the model divide: q·k/√d_head is then the score as written. That is exact where d_head is a
power of 4, and where scores are sums of whole numbers that the dtype holds also for every other square below 49; an
exact 0 stays one for every d_head.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.accounting import parameters
from headstock.model.config import ModelConfig
from headstock.model.transformer import Transformer

if TYPE_CHECKING:
    from headstock.programs.blueprint import Blueprint, Columns, Layer, Reading


DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
"""Those that a model computes in."""


@dataclass(frozen=True)
class Size:
    """How many weights a model has room for, and how many of them are not 0."""

    slots: int
    """Each weight once, a tied unembedding with the embedding."""
    nonzero: int

    @property
    def share(self) -> float:
        """The non-zeros, as a share of the slots."""
        return self.nonzero / self.slots


def config_of_blueprint(blueprint: "Blueprint") -> ModelConfig:
    """Give the config that has room for a blueprint: softmax, no norm, ReLU units or none, biases where asked for."""
    layers, always = blueprint.layers, blueprint.biases == "always"
    heads = [head for layer in layers for head in layer.heads]
    projected = [reading for head in heads for reading in (*head.looks_for, *head.offers, *head.carries)]
    units = [unit for layer in layers for unit in layer.units]
    inner: dict[str, Any] = {"feedforward": "none"}
    if units or any(layer.adds for layer in layers):
        constants = _any_constant([unit.reads for unit in units]) or any(any(layer.adds.values()) for layer in layers)
        most = max(len(layer.units) for layer in layers)
        inner = {"feedforward": "relu", "d_ff": most or 1, "feedforward_bias": always or constants}
    return ModelConfig(
        vocab_size=len(blueprint.vocabulary),
        context=blueprint.context,
        mixer="softmax",
        position="none" if blueprint.places is None else "learned",
        d_model=len(blueprint.columns),
        n_layers=len(layers),
        n_heads=max((len(layer.heads) for layer in layers), default=0) or 1,
        d_head=blueprint.head_size,
        scale_scores=blueprint.divide_scores,
        qkv_bias=always or _any_constant(projected),
        output_bias=always or any(any(layer.attention_adds.values()) for layer in layers),
        causal=blueprint.causal,
        norm="none",
        tied=blueprint.tied,
        unembed_bias=not blueprint.tied and (always or _any_constant(blueprint.logits)),
        **inner,
    )


def assembled(blueprint: "Blueprint", dtype: torch.dtype) -> Transformer:
    """Give the model, in evaluation mode, its numbers in the dtype; torch's generator stays as it was."""
    if dtype not in DTYPES:
        raise UserError(f"a model's weights cannot be {dtype!r}: choose torch.float32 or torch.float64.")
    with torch.random.fork_rng(devices=[]):  # what is drawn is all replaced; on "meta" torch would import for a second
        model = Transformer(blueprint.config())
    exact = weights_of(blueprint)
    rounded = {name: weight.to(dtype) for name, weight in exact.items()}
    for name, weight in exact.items():
        off = (rounded[name].double() - weight).abs() > torch.finfo(dtype).eps / 2 * weight.abs()
        lost = ~torch.isfinite(rounded[name]) | off
        if bool(lost.any()):
            raise UserError(
                f"{name} needs a weight of {float(weight[lost][0]):g}, which {_spelt(dtype)} cannot hold: build in "
                f"a wider dtype, such as float64, or write weights nearer to 1."
            )
    model.load_state_dict(rounded, assign=True)
    return model.eval()


def size_of(blueprint: "Blueprint") -> Size:
    """Count weights."""
    nonzero = sum(int(weight.count_nonzero()) for weight in weights_of(blueprint).values())
    return Size(parameters(blueprint.config()).total, nonzero)


def weights_of(blueprint: "Blueprint") -> dict[str, Tensor]:
    """Give every parameter of the model by its name in `state_dict`, in float64."""
    config = blueprint.config()
    at = {name: index for index, name in enumerate(blueprint.columns)}
    found = {"embed.weight": _rows(blueprint.tokens, at)}
    if blueprint.places is not None:
        found["position.weight"] = _rows(blueprint.places, at)
    for index, layer in enumerate(blueprint.layers):
        for name, weight in _attention(layer, config, at).items():
            found[f"blocks.{index}.mixer.{name}"] = weight
        for name, weight in _feedforward(layer, config, at).items():
            found[f"blocks.{index}.feedforward.{name}"] = weight
    if not config.tied:
        found["unembed.weight"] = _rows([reading.columns for reading in blueprint.logits], at)
    if config.unembed_bias:
        found["unembed.bias"] = _constants(blueprint.logits)
    return found


def _attention(layer: "Layer", config: ModelConfig, at: dict[str, int]) -> dict[str, Tensor]:
    size, inner = config.d_head, config.n_heads * config.d_head
    maps = {name: _zeros(inner, config.d_model) for name in ("query", "key", "value")}
    biases = {name: _zeros(inner) for name in maps}
    output_me = _zeros(config.d_model, inner)
    for number, head in enumerate(layer.heads):
        for name, readings in (("query", head.looks_for), ("key", head.offers), ("value", head.carries)):
            own = slice(number * size, number * size + len(readings))
            maps[name][own] = _rows([reading.columns for reading in readings], at)
            biases[name][own] = _constants(readings)
        own = slice(number * size, number * size + len(head.writes))
        output_me[:, own] = _rows(head.writes, at).T
    found = {f"{name}.weight": weight for name, weight in maps.items()} | {"output.weight": output_me}
    if config.qkv_bias:
        found |= {f"{name}.bias": bias for name, bias in biases.items()}
    if config.output_bias:
        found["output.bias"] = _rows([layer.attention_adds], at)[0]
    return found


def _feedforward(layer: "Layer", config: ModelConfig, at: dict[str, int]) -> dict[str, Tensor]:
    if config.feedforward == "none":
        return {}
    used = len(layer.units)
    into_fm, out_mf = _zeros(config.d_ff, config.d_model), _zeros(config.d_model, config.d_ff)
    bias_f = _zeros(config.d_ff)
    into_fm[:used] = _rows([unit.reads.columns for unit in layer.units], at)
    bias_f[:used] = _constants([unit.reads for unit in layer.units])
    out_mf[:, :used] = _rows([unit.writes for unit in layer.units], at).T
    found = {"into.weight": into_fm, "out.weight": out_mf}
    if config.feedforward_bias:
        found |= {"into.bias": bias_f, "out.bias": _rows([layer.adds], at)[0]}
    return found


def _rows(rows: Sequence["Columns"], at: dict[str, int]) -> Tensor:
    """(row, column)"""
    found = _zeros(len(rows), len(at))
    entries = [(index, at[name], float(weight)) for index, row in enumerate(rows) for name, weight in row.items()]
    if entries:
        index, column, weight = zip(*entries, strict=True)
        found[list(index), list(column)] = torch.tensor(weight, dtype=torch.float64)
    return found


def _constants(readings: Sequence["Reading"]) -> Tensor:
    return torch.tensor([float(reading.constant) for reading in readings], dtype=torch.float64)


def _any_constant(readings: Sequence["Reading"]) -> bool:
    return any(reading.constant for reading in readings)


def _zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.float64)


def _spelt(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
