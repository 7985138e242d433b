"""Softmax with a one in the denominator."""

import torch

from headstock.model.attention import (
    fused_attention,
    masked_logsumexp,
    masked_softmax,
    with_zero,
)
from headstock.model.mixers.base import ScoreMixer
from headstock.model.shapes import Keys, Mixed, Queries, Scores, Values, VisibleTensor, Weights
from headstock.model.visibility import Visible


class Softmax1(ScoreMixer):
    """Softmax whose head may attend to nothing.

        w_k = exp(s_k) / (1 + Σ_j exp(s_j))

    Rows sum to less than one. Equal to softmax over the scores and one more score of zero whose value is the zero
    vector. Source: Miller, "Attention Is Off By One" (2023).
    """

    weights_are = "unnormalised"

    def weigh(self, scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Weights:
        """Σ/(1 + Σ) is the logistic function of log Σ."""
        softmax = masked_softmax(scores_bhqk, visible_bhqk)
        return softmax * torch.sigmoid(masked_logsumexp(scores_bhqk, visible_bhqk))

    def mix_fast(self, q_bhqd: Queries, k_bhkd: Keys, v_bhkd: Values, visible: Visible) -> Mixed | None:
        """One fused call with a zero key and a zero value in front."""
        return fused_attention(q_bhqd, with_zero(k_bhkd), with_zero(v_bhkd), visible.with_leading_key())
