"""The interface of every mixer, and the shell that those with scores share.

A mixer answers "where do the weights of the average come from?". The shell owns the rest: projections, grouped
heads, positions, masks, cache, dropout, the choice of evaluation and the output map. A mixer of your own needs
`weigh` and nothing else; give `mix_fast` too and the shell uses it wherever the weights need not be seen.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from headstock.errors import UserError
from headstock.model.attention import dot_products, shared_by_groups
from headstock.model.config import ModelConfig
from headstock.model.dropout import dropout
from headstock.model.frame import Frame
from headstock.model.shapes import (
    Keys,
    KeysPerQueryHead,
    Mixed,
    Queries,
    Residual,
    Scores,
    Values,
    VisibleTensor,
    Weights,
)
from headstock.model.visibility import Visible

WeightsAre = Literal["normalised", "signed", "unnormalised", "none"]


@dataclass(frozen=True, kw_only=True)
class HeadSizes:
    """How many heads of which width a mixer uses: queries are scored with keys, weights average values."""

    query_heads: int
    key_heads: int
    key_size: int
    """0 for a mixer that looks at no content: its scores are all 0, its keys cost nothing."""
    value_heads: int
    value_size: int
    output_heads: int

    @classmethod
    def usual(cls, config: ModelConfig, *, key_size: int | None = None) -> "HeadSizes":
        """One map and one output a query head."""
        return cls(
            query_heads=config.n_heads,
            key_heads=config.n_kv_heads,
            key_size=config.d_head if key_size is None else key_size,
            value_heads=config.n_kv_heads,
            value_size=config.d_head,
            output_heads=config.n_heads,
        )


class Mixer(nn.Module, ABC):
    """Mixes positions: (batch, query, model) → the same shape."""

    weights_are: ClassVar[WeightsAre]
    """normalised: rows sum to 1. signed: some are negative. unnormalised: rows sum to anything. none: no average."""
    is_floor: ClassVar[bool] = False
    """A comparison holds every other arm against a floor too: who is not above it has learnt nothing of use."""
    refuses: ClassVar[Mapping[str, str]] = {}
    """Positions that mean nothing here, each with its reason, which ends a sentence."""

    @classmethod
    def check(cls, config: ModelConfig) -> None:
        """Raise UserError where the config asks for what this mixer cannot be."""
        if config.position in cls.refuses:
            raise UserError(
                f"{config.mixer} cannot use {config.position}: {cls.refuses[config.position]}; "
                f"choose another position, such as {config.mixer}+learned."
            )

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.check(config)
        self.layer = layer

    @abstractmethod
    def forward(self, x_bqm: Residual, frame: Frame) -> Residual:
        """Mix."""

    @abstractmethod
    def weights(self, x_bqm: Residual, frame: Frame) -> Weights:
        """Give the exact weights (batch, head, query, key) of the average that `forward` takes of x.

        Raises UserError where weights_are is "none".
        """

    def initialise(self, generator: torch.Generator) -> None:
        """Fill the parameters that are this mixer's own, not the shell's, drawing from the generator."""

    @classmethod
    def own_parameters(cls, config: ModelConfig) -> int:
        """Count the numbers one layer trains beyond the shell's maps."""
        return 0

    @classmethod
    def mixing_flops(cls, config: ModelConfig, length: int) -> int:
        """Count the operations of scoring and averaging, one layer, one query among `length` keys, done plainly."""
        sizes = cls.sizes(config)
        return 2 * length * (sizes.query_heads * sizes.key_size + sizes.output_heads * sizes.value_size)

    @classmethod
    def sizes(cls, config: ModelConfig) -> HeadSizes:
        """Say how many heads there are and how wide, from which the formulas of `accounting` follow."""
        return HeadSizes.usual(config)


class ScoreMixer(Mixer):
    """A mixer whose weights come from scores of queries and keys."""

    weights_are: ClassVar[WeightsAre] = "unnormalised"  # which promises nothing; a mixer that knows more says so

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__(config, layer)
        sizes = self.heads = self.sizes(config)
        width, bias = config.d_model, config.qkv_bias
        self.query = self.key = self.value = self.output = None
        if sizes.key_size and config.query_key != "identity":
            self.query = nn.Linear(width, sizes.query_heads * sizes.key_size, bias)
            if config.query_key == "learned":
                self.key = nn.Linear(width, sizes.key_heads * sizes.key_size, bias)
        if config.value_map == "learned":
            self.value = nn.Linear(width, sizes.value_heads * sizes.value_size, bias)
        if config.output_map:
            self.output = nn.Linear(sizes.output_heads * sizes.value_size, width, config.output_bias)
        self.drop_weights = config.dropout_attention

    @abstractmethod
    def weigh(self, scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Weights:
        """Turn scores into weights; hidden keys, where visible is False, must weigh exactly 0."""

    def score(self, q_bhqd: Queries, k_bhkd: Keys, visible: Visible) -> Scores:
        """Score each key for each query: q·k/√d, less ALiBi's penalty."""
        return dot_products(q_bhqd, k_bhkd, visible)

    def mix_fast(self, q_bhqd: Queries, k_bhkd: Keys, v_bhkd: Values, visible: Visible) -> Mixed | None:
        """Average without storing the weights, or give None where there is no such way: the plain one then serves."""
        return None

    def finish(self, z_bhqd: Mixed) -> Mixed:
        """What is done to each head's average before the output map."""
        return z_bhqd

    def forward(self, x_bqm: Residual, frame: Frame) -> Residual:
        """Project, mix, map out."""
        q, k, v = self._read(x_bqm, frame)
        dropping = self.training and self.drop_weights > 0
        z = None if frame.plain or dropping else self.mix_fast(q, k, v, frame.visible)
        if z is None:
            weights = self._weights(q, k, frame.visible)
            if dropping:
                weights = dropout(weights, self.drop_weights, frame.draws)
            z = weights.to(v.dtype) @ shared_by_groups(v, self.heads.output_heads)
        merged = self.finish(z).transpose(1, 2).flatten(2)
        return merged if self.output is None else self.output(merged)

    def weights(self, x_bqm: Residual, frame: Frame) -> Weights:
        """Give the exact weights, in float32 or wider."""
        q, k, _ = self._read(x_bqm, frame)
        return self._weights(q, k, frame.visible)

    def _weights(self, q_bhqd: Tensor, k_bhkd: Tensor, visible: Visible) -> Tensor:
        return self.weigh(self.score(q_bhqd, self.key_for_each_query_head(k_bhkd), visible), visible.dense)

    def key_for_each_query_head(self, k_bhkd: Keys) -> KeysPerQueryHead:
        """Repeat grouped keys."""
        return shared_by_groups(k_bhkd, self.heads.query_heads)

    def _read(self, x_bqm: Tensor, frame: Frame) -> tuple[Tensor, Tensor, Tensor]:
        """Give queries of the tokens being read, keys and values of those and of all that the cache remembers."""
        sizes = self.heads
        if sizes.key_size:
            q_flat = x_bqm if self.query is None else self.query(x_bqm)
            k_flat = q_flat if self.key is None else self.key(x_bqm)
        else:
            q_flat = k_flat = x_bqm[..., :0]
        v_flat = x_bqm if self.value is None else self.value(x_bqm)
        q = _split(q_flat, sizes.query_heads, sizes.key_size)
        k = _split(k_flat, sizes.key_heads, sizes.key_size)
        v = _split(v_flat, sizes.value_heads, sizes.value_size)
        if frame.rotation is not None:
            q, k = frame.rotation(q), frame.rotation(k)
        if frame.caches is not None:
            k, v = frame.caches[self.layer].extend(k, v)
        return q, k, v


def _split(x_bqe: Tensor, heads: int, size: int) -> Tensor:
    """(batch, query, heads·size) → (batch, head, query, size)"""
    return x_bqe.view(*x_bqe.shape[:2], heads, size).transpose(1, 2)
