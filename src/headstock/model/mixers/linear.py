"""Linear attention: softmax's exponential of a dot product made a dot product of features, so that sums can be kept."""

from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from headstock.model.attention import shared_by_groups
from headstock.model.cache import State
from headstock.model.config import ModelConfig
from headstock.model.heads import Heads
from headstock.model.mixers.states import Chunk, StateMixer
from headstock.model.shapes import Mixed, Weights

_NO_ROTATION = "the features act on each number of a query alone, so a rotation would no longer cancel to a distance"


class Linear(StateMixer):
    """Weights by dot products of positive features; all the past is two sums.

        w_k = φ(q)·φ(k) / Σ_j φ(q)·φ(j),   φ(x) = elu(x) + 1
        S_t = S_{t−1} + φ(k_t) v_tᵀ,   n_t = n_{t−1} + φ(k_t),   z_t = S_tᵀ φ(q_t) / n_t·φ(q_t)

    Rows sum to one. S is the fast weight matrix of Schmidhuber, "Learning to Control Fast-Weight Memories" (1992), as
    Schlag et al. (2021) point out. Source: Katharopoulos et al., "Transformers are RNNs" (2020), arXiv 2006.16236.
    """

    weights_are = "normalised"
    refuses: ClassVar = {
        "rope": _NO_ROTATION,
        "rope-interleaved": _NO_ROTATION,
        "xpos": _NO_ROTATION,
        "alibi": "its sums hold keys of all distances, and have no score to take a penalty from",
        "window": "a key that has joined its sums cannot leave them",
        "soft_cap": "it has no score to cap",
        "scale_scores": "it has no score to divide",
    }

    @classmethod
    def state_numbers(cls, config: ModelConfig) -> int:
        """The sums of φ(k) vᵀ and of φ(k), a key head."""
        sizes = cls.sizes(config)
        return super().state_numbers(config) + sizes.key_heads * sizes.key_size

    def prepare(self, heads: Heads) -> Heads:
        """Take the features."""
        return replace(heads, q_bhqd=features(heads.q_bhqd), k_bhkd=features(heads.k_bhkd))

    def start(self, heads: Heads) -> State:
        """No sum yet: (batch, head, d, d_v) and (batch, head, d)."""
        k_bhkd, v_bhkd = heads.k_bhkd, heads.v_bhkd
        batch, groups, _, width = k_bhkd.shape
        return k_bhkd.new_zeros(batch, groups, width, v_bhkd.shape[-1]), k_bhkd.new_zeros(batch, groups, width)

    def update(self, state: State, k_bhd: Tensor, v_bhd: Tensor, *gates_bh: Tensor) -> State:
        """Add."""
        sums, norms = state
        return sums + k_bhd[..., :, None] * v_bhd[..., None, :], norms + k_bhd

    def recall(self, state: State, q_bhd: Tensor) -> Tensor:
        """Read, and divide by what all keys together weigh."""
        sums, norms = state
        return _divided((q_bhd[..., None, :] @ sums)[..., 0, :], (q_bhd * norms).sum(-1, keepdim=True))

    def similarities(self, heads: Heads) -> Tensor:
        """φ(q)·φ(k), (batch, head, query, key); 0 where hidden."""
        keys = shared_by_groups(heads.k_bhkd, self.heads.query_heads)
        return (heads.q_bhqd @ keys.transpose(-1, -2)).masked_fill(~heads.visible.dense, 0.0)

    def weights_of(self, heads: Heads) -> Weights:
        """Divide each row by its sum."""
        similar = self.similarities(heads)
        return _divided(similar, similar.sum(-1, keepdim=True))

    def mix_chunk(self, state: State, chunk: Chunk) -> tuple[Mixed, State]:
        """Add what the sums give to what the chunk's own keys give, then divide."""
        heads, (sums, norms) = chunk.heads, state
        similar, q_bhqd = self.similarities(heads), chunk.of_state(heads.q_bhqd)
        n_heads = self.heads.query_heads
        total = q_bhqd @ shared_by_groups(sums, n_heads) + self._averaged(similar, heads)
        weight = q_bhqd @ shared_by_groups(norms, n_heads)[..., None] + similar.sum(-1, keepdim=True)
        keys = chunk.to_the_end(heads.k_bhkd)
        after = chunk.kept(sums) + keys.transpose(-1, -2) @ heads.v_bhkd, chunk.kept(norms) + keys.sum(2)
        return _divided(total, weight), after

    def mix_whole(self, heads: Heads) -> Mixed:
        """Read the sums over all keys, where one document is all there is."""
        visible, keys = heads.visible, heads.k_bhkd
        if visible.document_bk is not None:
            return self.mix_plainly(heads)
        if visible.real_bk is not None:
            keys = keys * visible.real_bk[:, None, :, None]
        sums, norms = (keys.transpose(-1, -2) @ heads.v_bhkd), keys.sum(2)[..., None]
        sums, norms = (shared_by_groups(x, self.heads.query_heads) for x in (sums, norms))
        z = _divided(heads.q_bhqd @ sums, heads.q_bhqd @ norms)
        if visible.real_bk is None or visible.elsewhere:
            return z
        return z * visible.real_bk[:, None, :, None]


def features(x: Tensor) -> Tensor:
    """φ(x) = elu(x) + 1 = x + 1 above 0 and exp(x) below, never less than exp(−30): no product of two vanishes."""
    return torch.where(x > 0, x + 1, x.clamp(-30, 0).exp())


def _divided(total: Tensor, weight: Tensor) -> Tensor:
    """Give total / weight, and 0 where nothing weighs."""
    return total / weight.masked_fill(weight == 0, 1.0)
