"""Differential attention, version 2: two queries over one key, the second's average subtracted as the token says."""

from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from headstock.model.attention import fused_attention, masked_softmax
from headstock.model.blockwise import by_blocks
from headstock.model.config import ModelConfig
from headstock.model.differencing import differencing
from headstock.model.evaluations import note
from headstock.model.frame import Frame
from headstock.model.heads import Heads
from headstock.model.mixers.base import HeadSizes, ScoreMixer
from headstock.model.mixers.differential import MAPS_OF_A_PAIR, shown_maps
from headstock.model.shapes import Mixed, Residual, Scores, VisibleTensor, Weights

SHORTEST, NARROWEST = 256, 32
"""Queries and keys, and their width, below which a fused call is as quick as blocks that subtract the maps first: each
block is a dozen operations, and what it saves are products as wide as the heads."""


class Differential2(ScoreMixer):
    """One softmax map less a share of another's; each token decides how large a share, head by head.

        w = softmax(q₁·k/√d) − λ softmax(q₂·k/√d),   λ = σ(W_λ x), a number a token and head

    Twice n_heads queries over unchanged keys and values: queries 2i and 2i+1 are pair i and read the same key and the
    same value. No norm of a head and no λ_init. Its query map is twice as large as softmax's. Weights are signed.
    Source: Ye et al., "Differential Transformer V2" (2026).
    """

    weights_are = "signed"
    tried_with: ClassVar = {"d_head": NARROWEST}
    refuses: ClassVar = {"query_key": "it has twice as many queries as keys, so neither serves as the other"}

    @classmethod
    def subtracts_maps(cls, config: ModelConfig) -> bool:
        """Always."""
        return True

    @classmethod
    def sizes(cls, config: ModelConfig) -> HeadSizes:
        """Two queries and one λ a head."""
        return HeadSizes(
            query_heads=2 * config.n_heads,
            key_heads=config.n_kv_heads,
            key_size=config.d_head,
            value_heads=config.n_kv_heads,
            value_size=config.d_head,
            output_heads=config.n_heads,
            gates=config.n_heads,
        )

    def weigh(self, scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Weights:
        """Give both maps of each pair, 2i and 2i+1."""
        return masked_softmax(scores_bhqk, visible_bhqk)

    def project(self, x_bqm: Residual, frame: Frame) -> Heads:
        """Give λ, (batch, head, query), for the gate that it is made of."""
        heads = super().project(x_bqm, frame)
        assert heads.gates_bhk is not None
        lambda_bqh = heads.hooks("hook_lambda", torch.sigmoid(heads.gates_bhk).transpose(1, 2))
        return replace(heads, gates_bhk=lambda_bqh.transpose(1, 2))

    def weights_of(self, heads: Heads) -> Weights:
        """Subtract λ times the second map of each pair from the first."""
        if not self.looks_within(heads):
            return _less_its_share(super().weights_of(heads), heads)
        return _less_its_share(torch.stack(shown_maps(self.scores_of(heads), heads), dim=2).flatten(1, 2), heads)

    def hook_names(self) -> list[str]:
        """λ beside the gate that it is made of."""
        names = super().hook_names()
        names.insert(names.index("hook_gate") + 1, "hook_lambda")
        return names

    def weighing_hooks(self) -> tuple[str, ...]:
        """Both maps of each pair."""
        if type(self).weights_of is not Differential2.weights_of:
            return super().weighing_hooks()
        return (*MAPS_OF_A_PAIR, "hook_pattern")

    def mix(self, heads: Heads) -> Mixed:
        """Subtract the maps block by block where that is quicker; elsewhere `mix_fused`."""
        if self.soft_cap is not None:
            return by_blocks(self.mix_plainly, heads)
        if _subtracts_maps_first(heads):
            assert heads.gates_bhk is not None
            note("blockwise")
            share = heads.gates_bhk.to(heads.q_bhqd.dtype)
            return differencing(heads.q_bhqd, heads.k_bhkd, heads.v_bhkd, share, heads.visible)
        return self.mix_fused(heads)

    def mix_fused(self, heads: Heads) -> Mixed:
        """Subtract the averages of one fused call for all queries, for both maps average the same values."""
        return _less_its_share(fused_attention(heads.q_bhqd, heads.k_bhkd, heads.v_bhkd, heads.visible), heads)


def _subtracts_maps_first(heads: Heads) -> bool:
    """Whether to read the values once, for the difference of the maps, rather than for either in a fused call."""
    q_bhqd, visible = heads.q_bhqd, heads.visible
    if q_bhqd.device.type != "cpu" or q_bhqd.dtype not in (torch.float32, torch.float64):
        return False
    if not heads.k_bhkd.numel() or (visible.slopes_h is not None and not visible.causal):
        return False
    if torch.compiler.is_compiling():  # whose tensors have no numbers to look at
        return False
    return min(visible.n_queries, visible.n_keys) >= SHORTEST and q_bhqd.shape[-1] >= NARROWEST


def _less_its_share(maps_or_averages: Tensor, heads: Heads) -> Tensor:
    """(batch, 2·head, query, …) → (batch, head, query, …)"""
    assert heads.gates_bhk is not None
    share = heads.gates_bhk[..., None].to(maps_or_averages.dtype)
    return maps_or_averages[:, 0::2] - share * maps_or_averages[:, 1::2]
