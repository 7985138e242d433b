"""A logistic function of each score alone."""

import torch

from headstock.model.mixers.base import ScoreMixer
from headstock.model.shapes import Scores, VisibleTensor, Weights


class Sigmoid(ScoreMixer):
    """Keys do not compete: each weighs by its own score.

        w_k = sigmoid(s_k − log n),   n the number of keys this query may attend to

    Rows sum to anything between zero and n; to about one where scores are near zero, which is what −log n is for.
    Source: Ramapuram et al., "Theory, Analysis, and Best Practices for Sigmoid Self-Attention" (2024), who take n
    for the length of the sequence.
    """

    weights_are = "unnormalised"

    def weigh(self, scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Weights:
        """Shift each row by the log of its own count."""
        n = visible_bhqk.sum(-1, keepdim=True).to(scores_bhqk.dtype)
        return torch.sigmoid(scores_bhqk - n.log()).masked_fill(~visible_bhqk, 0.0)
