"""Softmax whose scores fall off by gates that the tokens themselves set."""

import math
from typing import ClassVar

import torch
from torch import nn
from torch.nn.functional import logsigmoid, pad

from headstock.model.attention import masked_softmax, wide
from headstock.model.config import ModelConfig
from headstock.model.heads import Heads
from headstock.model.mixers.base import CROSS, HeadSizes, ScoreMixer
from headstock.model.shapes import Scores, VisibleTensor, Weights


class Forgetting(ScoreMixer):
    """Softmax with a forget gate: each token says how much of what came before it is kept.

        s_ij = q_i·k_j/√d + Σ_{l = j+1 … i} log f_l,   f_l = sigmoid(w·x_l + b)

    One gate a query head and token; w and b are a head's own. Rows sum to one. With gates that never close it is
    softmax; with constant gates ALiBi of slope −log f. Source: Lin et al., "Forgetting Transformer: Softmax Attention
    with a Forget Gate" (2025). There b starts at 0; here heads start with half-lives from short to long, as the paper
    has it for gates that see no token, lest every head begin blind to all but the last few tokens.
    """

    weights_are = "normalised"
    sees_order = True
    keeps_gates = True
    refuses: ClassVar = {
        "causal": "its gates say what is forgotten on the way from a key to a later query",
        CROSS: "no token stands between a query and another sequence's key, so no gate does",
    }

    @classmethod
    def sizes(cls, config: ModelConfig) -> HeadSizes:
        """One gate a query head."""
        return HeadSizes.usual(config, gates=config.n_heads)

    @classmethod
    def own_parameters(cls, config: ModelConfig) -> int:
        """One b a query head."""
        return config.n_heads

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__(config, layer)
        self.context = config.context
        self.gate_bias_h = nn.Parameter(torch.zeros(config.n_heads))

    def initialise(self, generator: torch.Generator) -> None:
        """Space half-lives evenly in their logarithm, as ALiBi spaces slopes: above 2 tokens, up to the context."""
        heads = self.gate_bias_h.numel()
        half_life = [2 * (self.context / 2) ** ((head + 1) / heads) for head in range(heads)]
        # f = 2^(−1/half_life) = sigmoid(b), solved for b
        self.gate_bias_h.copy_(torch.tensor([-math.log(math.expm1(math.log(2) / tokens)) for tokens in half_life]))

    def scores_of(self, heads: Heads) -> Scores:
        """Dot products and decay."""
        return super().scores_of(heads) + self.decay(heads)

    def weigh(self, scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Weights:
        """Softmax over the visible keys."""
        return masked_softmax(scores_bhqk, visible_bhqk)

    def decay(self, heads: Heads) -> Scores:
        """Give Σ_{l = j+1 … i} log f_l for query i and key j, in float32 or wider; padding between them takes no time.

        Summed for each query from itself backwards. One running sum a token and its differences would be less work,
        and work for the fused kernel, but near tokens would get what is left of two large numbers, and tokens of
        another document gradients of rounding.
        """
        assert heads.gates_bhk is not None
        log_f_bhk = logsigmoid(heads.gates_bhk + wide(self.gate_bias_h)[:, None])
        seen_bhqk = log_f_bhk[:, :, None].masked_fill(~heads.visible.dense, 0.0)
        return pad(seen_bhqk[..., 1:].flip(-1).cumsum(-1).flip(-1), (0, 1))
