"""A mixer of one's own, from formula to verdict.

headstock compare softmax ./examples/my_mixer.py:MyMixer --task crossing
"""

import torch
from torch import nn

from headstock.model.attention import masked_softmax, wide
from headstock.model.mixers.base import ScoreMixer


class MyMixer(ScoreMixer):
    """Softmax and the plain average, blended: each head learns which share of it is no choice at all.

        w_k = (1 − m) exp(s_k) / Σ_j exp(s_j) + m / n,   n keys visible,   m = σ(a), a trained number a head

    Rows sum to one, and no visible key weighs less than m / n.
    """

    weights_are = "normalised"

    def __init__(self, config, layer):
        super().__init__(config, layer)
        self.a = nn.Parameter(torch.full((config.n_heads,), -2.0))  # the average starts with a share of 0.12

    @classmethod
    def own_parameters(cls, config):
        """One number a head."""
        return config.n_heads

    def weigh(self, scores_bhqk, visible_bhqk):
        """Softmax of the scores, and softmax of zeros, which is the plain average."""
        m = torch.sigmoid(wide(self.a))[:, None, None]
        average = masked_softmax(torch.zeros_like(scores_bhqk), visible_bhqk)
        return (1 - m) * masked_softmax(scores_bhqk, visible_bhqk) + m * average
