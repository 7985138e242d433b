"""Sparse softmax: 1.5-entmax."""

import math

from torch import Tensor

from headstock.model.mixers.base import ScoreMixer
from headstock.model.shapes import Scores, VisibleTensor, Weights


class Entmax15(ScoreMixer):
    """Softmax's cousin that gives low scores exactly nothing.

        w_k = max(0, s_k/2 − τ)²,   τ such that the row sums to one

    It stands half-way between softmax (1-entmax) and sparsemax (2-entmax). Rows sum to one. Source: Peters et al.,
    "Sparse Sequence-to-Sequence Models" (2019); in attention: Correia et al., "Adaptively Sparse Transformers" (2019).
    They find τ by sorting; Newton's method gives the same to rounding, several times as fast.
    """

    weights_are = "normalised"

    def weigh(self, scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Weights:
        """Find τ with the highest score moved to 0, which changes no weight."""
        if not scores_bhqk.numel():  # no keys, of which none is the highest
            return scores_bhqk
        sees_something = visible_bhqk.any(-1, keepdim=True)
        half = scores_bhqk.masked_fill(~visible_bhqk & sees_something, -math.inf) / 2
        # No weight is above one, so τ ≥ −1, and −2 is as good as anything below it, as −∞.
        half = (half - half.detach().amax(-1, keepdim=True)).clamp(min=-2.0)
        # From τ itself a step of Newton's method goes nowhere, but brings τ's derivatives by z: the first step the
        # first, the second the second and the third.
        tau = _nearer(_nearer(_threshold(half.detach()), half), half)
        return (half - tau).clamp(min=0.0).square().masked_fill(~visible_bhqk, 0.0)


def _threshold(half_bhqk: Tensor) -> Tensor:
    """Give τ with Σ max(0, z − τ)² = 1 for each row of z whose highest is 0, (batch, head, query, 1).

    The sum is convex and falls with τ, so steps from −1 never go too far. No rows need more of them than ties do,
    whose distance halves from 1 to 1/√n before it vanishes.
    """
    tau = half_bhqk.new_full((*half_bhqk.shape[:-1], 1), -1.0)
    for _ in range(half_bhqk.shape[-1].bit_length() // 2 + 5):
        tau = _nearer(tau, half_bhqk)
    return tau


def _nearer(tau_bhq1: Tensor, half_bhqk: Tensor) -> Tensor:
    """Take a step of Newton's method."""
    root = (half_bhqk - tau_bhq1).clamp(min=0.0)
    return tau_bhq1 + (root.square().sum(-1, keepdim=True) - 1) / (2 * root.sum(-1, keepdim=True))
