"""Softmax with a learned score in the denominator."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from headstock.model.attention import (
    fused_attention,
    masked_logsumexp,
    masked_softmax,
    shared_by_groups,
    wide,
    widened,
    with_zero,
)
from headstock.model.config import ModelConfig
from headstock.model.mixers.base import ScoreMixer
from headstock.model.shapes import Keys, Mixed, Queries, Scores, Values, VisibleTensor, Weights
from headstock.model.visibility import Visible


class Sink(ScoreMixer):
    """Softmax whose head learns how readily it attends to nothing.

        w_k = exp(s_k) / (exp(σ) + Σ_j exp(s_j)),   σ one number a query head, 0 at the start

    Rows sum to less than one. Equal to softmax over the scores and one more score, σ, whose value is the zero vector;
    with σ = 0 it is softmax1, with σ → −∞ softmax. A soft cap caps scores, not σ. Source: Xiao et al., "Efficient
    Streaming Language Models with Attention Sinks" (2023), who train a sink token; OpenAI, "gpt-oss-120b &
    gpt-oss-20b Model Card" (2025), whose heads learn σ itself.
    """

    weights_are = "unnormalised"

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__(config, layer)
        self.sink_h = nn.Parameter(torch.zeros(config.n_heads))

    def initialise(self, generator: torch.Generator) -> None:
        """Start as softmax1."""
        nn.init.zeros_(self.sink_h)

    @classmethod
    def own_parameters(cls, config: ModelConfig) -> int:
        """One σ a query head."""
        return config.n_heads

    def weigh(self, scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Weights:
        """Σ/(exp σ + Σ) is the logistic function of log Σ − σ."""
        softmax = masked_softmax(scores_bhqk, visible_bhqk)
        surplus = masked_logsumexp(scores_bhqk, visible_bhqk) - wide(self.sink_h)[:, None, None]
        return softmax * torch.sigmoid(surplus)

    def mix_fast(self, q_bhqd: Queries, k_bhkd: Keys, v_bhkd: Values, visible: Visible) -> Mixed | None:
        """One fused call with a key in front that scores σ: one more number a query, √d, meets σ in that key alone."""
        heads, width = self.heads.query_heads, q_bhqd.shape[-1]
        keys, values = (with_zero(widened(shared_by_groups(x, heads), width + 1)) for x in (k_bhkd, v_bhkd))
        sink = F.pad(self.sink_h.to(keys.dtype)[:, None, None], (width, 0, 0, keys.shape[2] - 1))
        queries = F.pad(q_bhqd, (0, 1), value=math.sqrt(width))
        z = fused_attention(queries, keys + sink, values, visible.with_leading_key(), scale=1 / math.sqrt(width))
        return z[..., :width]
