"""The plain average: every visible key weighs the same."""

from typing import ClassVar

import torch

from headstock.model.attention import masked_softmax, shared_by_groups, wide
from headstock.model.config import ModelConfig
from headstock.model.evaluations import note
from headstock.model.mixers.base import HeadSizes, ScoreMixer
from headstock.model.shapes import Keys, Mixed, Queries, Scores, Values, VisibleTensor, Weights
from headstock.model.visibility import Visible


class Uniform(ScoreMixer):
    """The average that all attention starts from; it cannot tell a shuffled prefix from another.

        w_k = 1 / (number of keys this query may attend to)

    It is softmax over queries and keys of width 0, whose scores are all 0; so there are no such projections and no keys
    in the cache. Source: the averaging baseline of every derivation of attention.
    """

    weights_are = "normalised"
    is_floor = True
    refuses: ClassVar = {
        "rope": "it has no queries and keys to rotate",
        "rope-interleaved": "it has no queries and keys to rotate",
        "xpos": "it has no queries and keys to rotate",
        "query_key": "it has no queries and keys",
        "qk_norm": "it has no queries and keys to norm",
        "soft_cap": "all its scores are 0",
        "scale_scores": "all its scores are 0",
        "alibi": "a penalty on distance would make it another average, no longer uniform",
    }

    @classmethod
    def sizes(cls, config: ModelConfig) -> HeadSizes:
        """Queries and keys of width 0."""
        return HeadSizes.usual(config, key_size=0)

    @classmethod
    def memory_is_linear(cls, config: ModelConfig) -> bool:
        """A running mean or, in a window, blocks; but only from the past on."""
        return config.causal and super().memory_is_linear(config)

    def weigh(self, scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Weights:
        """Softmax of zeros."""
        return masked_softmax(scores_bhqk, visible_bhqk)

    def mix_fast(self, q_bhqd: Queries, k_bhkd: Keys, v_bhkd: Values, visible: Visible) -> Mixed | None:
        """A running mean over the prefix, in one pass, where the prefix is all there is to see."""
        if not visible.is_plain_causal:
            return None
        note("running mean")
        count = torch.arange(1, visible.n_keys + 1, device=v_bhkd.device)[:, None]
        mean = wide(v_bhkd).cumsum(2) / count
        return shared_by_groups(mean.to(v_bhkd.dtype), self.heads.output_heads)
