"""Differential attention, version 1: the difference of two softmax maps."""

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from headstock.errors import UserError
from headstock.model.attention import fused_attention, masked_softmax, shared_by_groups, wide, widened
from headstock.model.config import ModelConfig
from headstock.model.differencing import FEWEST, differencing
from headstock.model.evaluations import note
from headstock.model.heads import Heads
from headstock.model.mixers.base import HEAD_NORM_EPS, HeadSizes, ScoreMixer, WeightsAre
from headstock.model.norms import RMSNorm
from headstock.model.shapes import Keys, KeysPerQueryHead, Mixed, Queries, Scores, Values, VisibleTensor, Weights
from headstock.model.visibility import Visible

LAMBDA_VECTORS = ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2")
MAPS_OF_A_PAIR = ("hook_attn_scores_1", "hook_pattern_1", "hook_attn_scores_2", "hook_pattern_2")


def shown_maps(scores_bhqk: Tensor, heads: Heads) -> list[Tensor]:
    """Give the first and the second map of each pair, (batch, pair, query, key), shown to who waits for them."""
    maps = []
    for n in (1, 2):
        shown = heads.hooks.scores(f"hook_attn_scores_{n}", scores_bhqk[:, n - 1 :: 2], heads.visible)
        maps.append(heads.hooks(f"hook_pattern_{n}", masked_softmax(*shown)))
    return maps


class Differential(ScoreMixer):
    """One softmax map less λ times another: what both attend to by mistake cancels.

        w = softmax(q₁·k/√d) − λ softmax(q₂·k/√d)
        λ = exp(λ_q1·λ_k1) − exp(λ_q2·λ_k2) + λ_init,   λ_init = 0.8 − 0.6 exp(−0.3 i) for layer i = 0, 1, …

    Heads 2i and 2i+1 are pair i, also under grouped keys, where q₁ reads k₁ and q₂ reads k₂; a pair's values are 2d
    wide. Each pair's average goes through RMSNorm (one weight, shared by the layer's pairs) and × (1 − λ_init).
    Weights are signed. Left out by choice: the norm (head_norm=none) and the factor (lambda_scale=false). With
    lambda_init one number is λ_init in every layer. A layer's pairs share λ; with lambdas=head each has one, of vectors
    of its own, and with lambdas=fixed λ is λ_init for ever: fixed at 0 there is no second map, nor queries and keys
    for it. Source: Ye et al., "Differential Transformer" (2024), arXiv 2410.05258.
    """

    weights_are = "signed"
    norms_heads = True
    reads: ClassVar = frozenset({"lambda_init", "lambda_scale", "lambdas"})
    lambda_q1: nn.Parameter
    lambda_k1: nn.Parameter
    lambda_q2: nn.Parameter
    lambda_k2: nn.Parameter

    @classmethod
    def check(cls, config: ModelConfig) -> None:
        """Heads and key heads pair up."""
        super().check(config)
        fits = [n for n in range(2, config.d_model + 1, 2) if config.d_model % n == 0]
        near = min(fits, key=lambda n: abs(n - config.n_heads), default=config.n_heads + 1)
        for key, count, even in (("n_heads", config.n_heads, near), ("n_kv_heads", config.n_kv_heads, 2)):
            if count % 2:
                raise UserError(
                    f"{config.mixer} subtracts the maps of head pairs, but {key} is {count}: choose an even number, "
                    f"such as {even}."
                )
        if config.lambda_init == 0 and not config.lambda_scale:
            raise UserError(
                f"{config.mixer} with lambda_init=0 has no factor to leave out, for 1 − 0 is 1: leave lambda_scale out."
            )
        if not cls.subtracts_maps(config) and config.query_key == "identity":
            raise UserError(
                f"{config.mixer} with λ fixed at 0 has half as many queries as a token has room for: choose another "
                f"query_key than identity."
            )

    @classmethod
    def subtracts_maps(cls, config: ModelConfig) -> bool:
        """Whether there is a second map: not where λ is fixed at 0."""
        return config.lambdas != "fixed" or config.lambda_init != 0

    @classmethod
    def weights_under(cls, config: ModelConfig) -> WeightsAre:
        """Signed; those of one map are shares."""
        return cls.weights_are if cls.subtracts_maps(config) else "normalised"

    @classmethod
    def sizes(cls, config: ModelConfig) -> HeadSizes:
        """Half as many values and outputs, twice as wide; half the queries and keys too, where there is one map."""
        maps = 2 if cls.subtracts_maps(config) else 1
        return HeadSizes(
            query_heads=config.n_heads // 2 * maps,
            key_heads=config.n_kv_heads // 2 * maps,
            key_size=config.d_head,
            value_heads=config.n_kv_heads // 2,
            value_size=2 * config.d_head,
            output_heads=config.n_heads // 2,
        )

    @classmethod
    def own_parameters(cls, config: ModelConfig) -> int:
        """Four vectors for each λ and one weight of the pairs' norm."""
        norm = 0 if config.head_norm == "none" else 2 * config.d_head
        return 4 * cls.learned_lambdas(config) * config.d_head + norm

    @classmethod
    def learned_lambdas(cls, config: ModelConfig) -> int:
        """Count the λ that one layer learns."""
        return {"layer": 1, "head": config.n_heads // 2, "fixed": 0}[config.lambdas]

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__(config, layer)
        self.lambda_init = 0.8 - 0.6 * math.exp(-0.3 * layer) if config.lambda_init is None else config.lambda_init
        self.lambdas = config.lambdas
        self.has_two_maps = self.subtracts_maps(config)
        self.factor = 1 - self.lambda_init if config.lambda_scale else 1.0
        learned = self.learned_lambdas(config)
        for name in LAMBDA_VECTORS if learned else ():
            # One axis, pair after pair: a vector is not decayed, however many there are.
            self.register_parameter(name, nn.Parameter(torch.zeros(learned * config.d_head)))
        self.norm = None if config.head_norm == "none" else RMSNorm(2 * config.d_head, HEAD_NORM_EPS)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw λ's vectors from N(0, 0.1)."""
        for vector in (getattr(self, name) for name in LAMBDA_VECTORS if self.lambdas != "fixed"):
            nn.init.normal_(vector, std=0.1, generator=generator)

    def lambda_now(self) -> Tensor:
        """λ in float32 or wider: a scalar, or (pair,) where each pair has its own."""
        if self.lambdas == "fixed":
            return torch.tensor(self.lambda_init, dtype=torch.float64)
        first, second = (
            torch.exp(self._of_each(wide(q) * wide(k)).sum(-1))
            for q, k in ((self.lambda_q1, self.lambda_k1), (self.lambda_q2, self.lambda_k2))
        )
        return first - second + self.lambda_init

    def _of_each(self, vectors: Tensor) -> Tensor:
        """(pair·d,) → (pair, d), where each pair has its own"""
        return vectors.view(self.heads.output_heads, -1) if self.lambdas == "head" else vectors

    def key_for_each_query_head(self, k_bhkd: Keys) -> KeysPerQueryHead:
        """Repeat grouped keys pair by pair."""
        return shared_by_groups(k_bhkd, self.heads.query_heads, together=2 if self.has_two_maps else 1)

    def weigh(self, scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Weights:
        """Subtract the second map of each pair from the first."""
        maps = masked_softmax(scores_bhqk, visible_bhqk)
        return maps[:, 0::2] - _by_pair(self.lambda_now()) * maps[:, 1::2] if self.has_two_maps else maps

    def weights_of(self, heads: Heads) -> Weights:
        """Do so in sight of who waits for either map, or for λ."""
        if not (self.has_two_maps and self.looks_within(heads)):
            return super().weights_of(heads)
        first, second = shown_maps(self.scores_of(heads), heads)
        return first - _by_pair(heads.hooks("hook_lambda", self.lambda_now())) * second

    def weighing_hooks(self) -> tuple[str, ...]:
        """Both maps of each pair, and λ; of one map what softmax shows."""
        if type(self).weights_of is not Differential.weights_of:
            return super().weighing_hooks()
        if not self.has_two_maps:
            return ("hook_attn_scores", "hook_pattern")
        return (*MAPS_OF_A_PAIR, "hook_lambda", "hook_pattern")

    def mix_fast(self, q_bhqd: Queries, k_bhkd: Keys, v_bhkd: Values, visible: Visible) -> Mixed | None:
        """Subtract the maps block by block on the CPU; elsewhere, and where there is one map: `mix_padded`."""
        if not self.has_two_maps:
            return self.mix_padded(q_bhqd, k_bhkd, v_bhkd, visible)
        bidirectional_alibi = visible.slopes_h is not None and not visible.causal
        if q_bhqd.device.type == "cpu" and not bidirectional_alibi:
            if visible.n_queries < FEWEST or not k_bhkd.numel():  # or there is nothing to average
                return None
            note("blockwise")
            q, k, v = wide(q_bhqd), wide(k_bhkd), wide(v_bhkd)
            return differencing(q, k, v, self.lambda_now().to(q.dtype), visible).to(v_bhkd.dtype)
        # A block is a dozen small operations, each of which an accelerator must be told to start; not measured on one.
        return self.mix_padded(q_bhqd, k_bhkd, v_bhkd, visible)

    def mix_padded(self, q_bhqd: Queries, k_bhkd: Keys, v_bhkd: Values, visible: Visible) -> Mixed:
        """Subtract the averages of one fused call, whose queries and keys are padded to the width of the values."""
        width, scale = self.heads.value_size, 1 / math.sqrt(self.heads.key_size)
        keys = widened(self.key_for_each_query_head(k_bhkd), width)
        values = shared_by_groups(v_bhkd, self.heads.output_heads)
        if not self.has_two_maps:
            return fused_attention(widened(q_bhqd, width), keys, values, visible, scale)
        values = values.repeat_interleave(2, dim=1)
        averages = fused_attention(widened(q_bhqd, width), keys, values, visible, scale)
        return averages[:, 0::2] - _by_pair(self.lambda_now().to(averages.dtype)) * averages[:, 1::2]

    def finish(self, z_bhqd: Mixed, heads: Heads) -> Mixed:
        """Norm each pair alone, then the constant that keeps gradients at the size of a single softmax's."""
        return (z_bhqd if self.norm is None else self.norm(z_bhqd)) * self.factor


def _by_pair(lambda_now: Tensor) -> Tensor:
    """Give λ as it multiplies maps or averages, (batch, pair, query, …)."""
    return lambda_now if lambda_now.ndim == 0 else lambda_now[:, None, None]
