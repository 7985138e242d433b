"""Retention: dot products that fade with distance at a rate fixed for each head."""

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstock.model.attention import shared_by_groups, wide
from headstock.model.cache import State
from headstock.model.config import ModelConfig
from headstock.model.heads import Heads
from headstock.model.mixers.states import Chunk, StateMixer
from headstock.model.shapes import Mixed, Weights


class Retention(StateMixer):
    """Weights by dot product, times a decay for every token in between.

        w_k = q·k/√d · γ_h^distance,   γ_h = 1 − 2^(−5−h) for head h = 0, 1, …
        S_t = γ_h S_{t−1} + k_t v_tᵀ,   z_t = S_tᵀ q_t/√d
        out = W_O (RMSNorm(z) ⊙ swish(W_G x)),   the norm on each head, without a weight

    Weights are signed. Distances count real tokens. Under grouped heads there is one γ a key head, since its queries
    read one state. The paper's own normalisations of scores cancel in the norm and are left out; its rotation is
    chosen by the position: xpos, or rope as the authors' code has it.
    Source: Sun et al., "Retentive Network" (2023), arXiv 2307.08621.
    """

    weights_are = "signed"
    sees_order = True
    numbers_heads = True
    refuses: ClassVar = {
        "alibi": "its own decay says how a key fades with distance",
        "window": "what a key wrote into its state cannot be told from the rest",
        "soft_cap": "capped scores could not be read from a state of fixed size",
        "scale_scores": "its norm would undo it",
        "head_norm": "the norm of its heads is part of what it is",
        "causal": "its decay runs from the past to the present",
        "cross attention": "its decay needs distances, and two sequences have no common places",
    }

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__(config, layer)
        self.eps = config.norm_eps
        self.swish = nn.Linear(config.d_model, config.n_heads * config.d_head, bias=False)

    @classmethod
    def own_parameters(cls, config: ModelConfig) -> int:
        """The map of the swish gate."""
        return config.d_model * config.n_heads * config.d_head

    @classmethod
    def own_flops(cls, config: ModelConfig) -> int:
        """The map of the swish gate."""
        return 2 * cls.own_parameters(config)

    def prepare(self, heads: Heads) -> Heads:
        """Keep queries, keys and values as they are."""
        return heads

    def start(self, heads: Heads) -> State:
        """Nothing retained, (batch, head, d, d_v)."""
        return (heads.k_bhkd.new_zeros(*heads.k_bhkd.shape[:2], heads.k_bhkd.shape[-1], heads.v_bhkd.shape[-1]),)

    def log_decay_h(self, like: Tensor) -> Tensor:
        """log γ of each key head, (head)."""
        rates = [math.log1p(-(2.0 ** (-5 - head))) for head in range(self.heads.key_heads)]
        return torch.tensor(rates, dtype=like.dtype, device=like.device)

    def update(self, state: State, k_bhd: Tensor, v_bhd: Tensor, *gates_bh: Tensor) -> State:
        """Fade, then add."""
        decay_h = self.log_decay_h(k_bhd).exp()
        return (decay_h[:, None, None] * state[0] + k_bhd[..., :, None] * v_bhd[..., None, :],)

    def recall(self, state: State, q_bhd: Tensor) -> Tensor:
        """Read."""
        return (q_bhd[..., None, :] @ state[0])[..., 0, :] / math.sqrt(q_bhd.shape[-1])

    def weights_of(self, heads: Heads) -> Weights:
        """Score, fade, hide."""
        visible, n_heads = heads.visible, self.heads.query_heads
        scores = heads.q_bhqd @ shared_by_groups(heads.k_bhkd, n_heads).transpose(-1, -2)
        distance = (visible.query_positions[..., :, None] - visible.key_positions[..., None, :]).clamp(min=0)
        fading = self._faded(distance if distance.ndim == 3 else distance[None], scores)
        faded = scores * shared_by_groups(fading, n_heads) / math.sqrt(heads.q_bhqd.shape[-1])
        return faded.masked_fill(~visible.dense, 0.0)

    def mix_chunk(self, state: State, chunk: Chunk) -> tuple[Mixed, State]:
        """Read the faded state, and the chunk's own keys."""
        heads, (memory,) = chunk.heads, state
        tokens_bk = chunk.real_so_far_bk
        since_start, to_end = (
            self._faded(n_bk, memory)[..., None] for n_bk in (tokens_bk, tokens_bk[:, -1:] - tokens_bk)
        )
        n_heads = self.heads.query_heads
        q_bhqd = chunk.of_state(heads.q_bhqd) * shared_by_groups(since_start, n_heads)
        z = q_bhqd @ shared_by_groups(memory, n_heads) / math.sqrt(q_bhqd.shape[-1])
        keys = chunk.to_the_end(heads.k_bhkd) * to_end
        after = chunk.kept(memory) * since_start[:, :, -1:] + keys.transpose(-1, -2) @ heads.v_bhkd
        return z + self._averaged(self.weights_of(heads), heads), (after,)

    def _faded(self, tokens: Tensor, like: Tensor) -> Tensor:
        """γ_h to the power of a number of tokens, (batch or 1, …) → (batch or 1, key head, …)."""
        rates = self.log_decay_h(like).view(1, -1, *(1,) * (tokens.ndim - 1))
        return (rates * tokens[:, None].to(like.dtype)).exp()

    def finish(self, z_bhqd: Mixed, heads: Heads) -> Mixed:
        """Norm each head alone, then open or close it by what the token is."""
        normed = F.rms_norm(wide(z_bhqd), z_bhqd.shape[-1:], eps=self.eps).to(z_bhqd.dtype)
        batch, n_heads, n_queries, width = z_bhqd.shape
        gate: Tensor = F.silu(self.swish(heads.x_bqm))
        return normed * gate.view(batch, n_queries, n_heads, width).transpose(1, 2)
