"""Softmax of dot products: the attention of the Transformer."""

from headstock.model.attention import fused_attention, masked_softmax
from headstock.model.config import ModelConfig
from headstock.model.mixers.base import ScoreMixer
from headstock.model.shapes import Keys, Mixed, Queries, Scores, Values, VisibleTensor, Weights
from headstock.model.visibility import Visible


class Softmax(ScoreMixer):
    """Weights by how well a key matches the query.

        w_k = exp(s_k) / Σ_j exp(s_j),   s_k = q·k/√d

    Rows sum to one. Source: Vaswani et al., "Attention Is All You Need" (2017); grouped keys and values: Ainslie
    et al., "GQA" (2023).
    """

    weights_are = "normalised"

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__(config, layer)
        if not config.scale_scores:
            self.score_scale = 1.0  # so that whole numbers stay whole, which weights of programs count on

    def weigh(self, scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Weights:
        """Softmax over the visible keys."""
        return masked_softmax(scores_bhqk, visible_bhqk)

    def mix_fast(self, q_bhqd: Queries, k_bhkd: Keys, v_bhkd: Values, visible: Visible) -> Mixed | None:
        """One fused call."""
        return fused_attention(q_bhqd, k_bhkd, v_bhkd, visible, self.score_scale)
