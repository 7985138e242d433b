"""Softmax over the highest scores alone."""

import math
from typing import ClassVar

from torch import Tensor

from headstock.model.attention import masked_softmax
from headstock.model.config import ModelConfig
from headstock.model.mixers.base import ScoreMixer
from headstock.model.shapes import Scores, VisibleTensor, Weights


class TopK(ScoreMixer):
    """Softmax over the k keys that score highest; all others weigh nothing.

        w_j = exp(s_j) / Σ_{l in top k} exp(s_l) for j in top k, else 0

    Of keys with equal scores the earliest are taken, so that k are, never more; all where fewer are visible. Rows sum
    to one. Which keys are taken has no gradient. Source: Gupta et al., "Memory-efficient Transformers via Top-k
    Attention" (2021).
    """

    weights_are = "normalised"
    reads: ClassVar = frozenset({"k"})

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__(config, layer)
        assert config.k is not None
        self.k = config.k

    def weigh(self, scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Weights:
        """Softmax over the visible keys that are among the k highest."""
        left_out = ~_highest(scores_bhqk.detach().masked_fill(~visible_bhqk, -math.inf), self.k)
        return masked_softmax(scores_bhqk.masked_fill(left_out, -math.inf), visible_bhqk)


def _highest(scores_bhqk: Tensor, k: int) -> Tensor:
    """Say which are their row's k highest, the earliest of equals, bool (batch, head, query, key)."""
    # The order in which torch gives equal scores is nobody's promise; the lowest value among the k is certain.
    lowest = scores_bhqk.topk(min(k, scores_bhqk.shape[-1]), dim=-1).values[..., -1:]
    above, equal = scores_bhqk > lowest, scores_bhqk == lowest
    return above | (equal & (equal.cumsum(-1) <= k - above.sum(-1, keepdim=True)))
