"""A learned table of scores: attention that looks at places and never at content."""

from typing import ClassVar

import torch
from torch import nn

from headstock.model.attention import masked_softmax
from headstock.model.config import ModelConfig
from headstock.model.heads import Heads
from headstock.model.mixers.base import HeadSizes, ScoreMixer
from headstock.model.positions import refuse_past_table
from headstock.model.shapes import Keys, Mixed, Queries, Scores, VisibleTensor, Weights
from headstock.model.visibility import Visible


class Table(ScoreMixer):
    """Weights that depend on where the query and the key stand, learned, and on nothing else.

        w_k = exp(S[i, j]) / Σ_j' exp(S[i, j']),   S a trained context × context table a head

    Rows sum to one. Source: "Random Synthesizer", Tay et al. (2021).
    """

    weights_are = "normalised"
    sees_order = True
    refuses: ClassVar = {
        "rope": "it has no queries and keys to rotate",
        "rope-interleaved": "it has no queries and keys to rotate",
        "xpos": "it has no queries and keys to rotate",
        "query_key": "it has no queries and keys",
        "qk_norm": "it has no queries and keys to norm",
        "soft_cap": "its scores are no dot products but learned as they are",
        "scale_scores": "its scores are no dot products but learned as they are",
        "cross attention": "its scores belong to places of one sequence",
    }

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__(config, layer)
        self.context = config.context
        self.table_hqk = nn.Parameter(torch.zeros(config.n_heads, config.context, config.context))

    def initialise(self, generator: torch.Generator) -> None:
        """Start next to the uniform average."""
        nn.init.normal_(self.table_hqk, std=0.02, generator=generator)

    @classmethod
    def own_parameters(cls, config: ModelConfig) -> int:
        """One table a head."""
        return config.n_heads * config.context**2

    @classmethod
    def sizes(cls, config: ModelConfig) -> HeadSizes:
        """Queries and keys of width 0."""
        return HeadSizes.usual(config, key_size=0)

    def score(self, q_bhqd: Queries, k_bhkd: Keys, visible: Visible) -> Scores:
        """Look the score of each pair of places up."""
        queries, keys = visible.query_positions, visible.key_positions
        refuse_past_table(visible, self.context, "the table's scores")
        looked_up = self.table_hqk[:, queries[..., :, None], keys[..., None, :]]
        scores = looked_up if looked_up.ndim == 3 else looked_up.transpose(0, 1)
        return super().score(q_bhqd, k_bhkd, visible) + scores

    def mix(self, heads: Heads) -> Mixed:
        """Store every weight: the table is a square already, and each block of queries would send it all a gradient."""
        return self.mix_plainly(heads)

    @classmethod
    def memory_is_linear(cls, config: ModelConfig) -> bool:
        """A square of weights beside a square of scores."""
        return False

    def weigh(self, scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Weights:
        """Softmax over the visible keys."""
        return masked_softmax(scores_bhqk, visible_bhqk)
