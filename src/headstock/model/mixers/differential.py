"""Differential attention, version 1: the difference of two softmax maps."""

import math

import torch
from torch import Tensor, nn

from headstock.errors import UserError
from headstock.model.attention import fused_attention, masked_softmax, shared_by_groups, wide, widened
from headstock.model.config import ModelConfig
from headstock.model.differencing import FEWEST, differencing
from headstock.model.evaluations import note
from headstock.model.heads import Heads
from headstock.model.mixers.base import HeadSizes, ScoreMixer
from headstock.model.norms import RMSNorm
from headstock.model.shapes import Keys, KeysPerQueryHead, Mixed, Queries, Scores, Values, VisibleTensor, Weights
from headstock.model.visibility import Visible

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
    Weights are signed. Source: Ye et al., "Differential Transformer" (2024), arXiv 2410.05258.
    """

    weights_are = "signed"

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

    @classmethod
    def sizes(cls, config: ModelConfig) -> HeadSizes:
        """Half as many values and outputs, twice as wide."""
        return HeadSizes(
            query_heads=config.n_heads,
            key_heads=config.n_kv_heads,
            key_size=config.d_head,
            value_heads=config.n_kv_heads // 2,
            value_size=2 * config.d_head,
            output_heads=config.n_heads // 2,
        )

    @classmethod
    def own_parameters(cls, config: ModelConfig) -> int:
        """Four vectors for λ and one weight of the pairs' norm."""
        return 4 * config.d_head + 2 * config.d_head

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__(config, layer)
        self.lambda_init = 0.8 - 0.6 * math.exp(-0.3 * layer)
        self.lambda_q1, self.lambda_k1, self.lambda_q2, self.lambda_k2 = (
            nn.Parameter(torch.zeros(config.d_head)) for _ in range(4)
        )
        self.norm = RMSNorm(2 * config.d_head, eps=1e-5)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw λ's vectors from N(0, 0.1)."""
        for vector in (self.lambda_q1, self.lambda_k1, self.lambda_q2, self.lambda_k2):
            nn.init.normal_(vector, std=0.1, generator=generator)

    def lambda_now(self) -> Tensor:
        """λ of this layer, a scalar in float32 or wider."""
        first = torch.exp((wide(self.lambda_q1) * wide(self.lambda_k1)).sum())
        second = torch.exp((wide(self.lambda_q2) * wide(self.lambda_k2)).sum())
        return first - second + self.lambda_init

    def key_for_each_query_head(self, k_bhkd: Keys) -> KeysPerQueryHead:
        """Repeat grouped keys pair by pair."""
        return shared_by_groups(k_bhkd, self.heads.query_heads, together=2)

    def weigh(self, scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Weights:
        """Subtract the second map of each pair from the first."""
        maps = masked_softmax(scores_bhqk, visible_bhqk)
        return maps[:, 0::2] - self.lambda_now() * maps[:, 1::2]

    def weights_of(self, heads: Heads) -> Weights:
        """Do so in sight of who waits for either map, or for λ."""
        if not self.looks_within(heads):
            return super().weights_of(heads)
        first, second = shown_maps(self.scores_of(heads), heads)
        return first - heads.hooks("hook_lambda", self.lambda_now()) * second

    def weighing_hooks(self) -> tuple[str, ...]:
        """Both maps of each pair, and λ."""
        if type(self).weights_of is not Differential.weights_of:
            return super().weighing_hooks()
        return (*MAPS_OF_A_PAIR, "hook_lambda", "hook_pattern")

    def mix_fast(self, q_bhqd: Queries, k_bhkd: Keys, v_bhkd: Values, visible: Visible) -> Mixed | None:
        """Subtract the maps block by block on the CPU; elsewhere subtract averages: `mix_padded`."""
        bidirectional_alibi = visible.slopes_h is not None and not visible.causal
        if q_bhqd.device.type == "cpu" and not bidirectional_alibi:
            if visible.n_queries < FEWEST or not k_bhkd.numel():  # or there is nothing to average
                return None
            note("blockwise")
            return differencing(wide(q_bhqd), wide(k_bhkd), wide(v_bhkd), self.lambda_now(), visible).to(v_bhkd.dtype)
        # A block is a dozen small operations, each of which an accelerator must be told to start; not measured on one.
        return self.mix_padded(q_bhqd, k_bhkd, v_bhkd, visible)

    def mix_padded(self, q_bhqd: Queries, k_bhkd: Keys, v_bhkd: Values, visible: Visible) -> Mixed:
        """Subtract the averages of one fused call, whose queries and keys are padded to the width of the values."""
        width, scale = self.heads.value_size, 1 / math.sqrt(self.heads.key_size)
        keys = widened(self.key_for_each_query_head(k_bhkd), width)
        values = shared_by_groups(v_bhkd, self.heads.output_heads).repeat_interleave(2, dim=1)
        averages = fused_attention(widened(q_bhqd, width), keys, values, visible, scale)
        return averages[:, 0::2] - self.lambda_now().to(averages.dtype) * averages[:, 1::2]

    def finish(self, z_bhqd: Mixed, heads: Heads) -> Mixed:
        """Norm each pair alone, then the constant that keeps gradients at the size of a single softmax's."""
        return self.norm(z_bhqd) * (1 - self.lambda_init)  # type: ignore[no-any-return]
