"""The delta rule: a memory that overwrites what it held under a key instead of adding to it."""

from dataclasses import replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from headstock.model.attention import shared_by_groups
from headstock.model.cache import State
from headstock.model.config import ModelConfig
from headstock.model.heads import Heads
from headstock.model.mixers.base import HeadSizes
from headstock.model.mixers.states import Chunk, StateMixer
from headstock.model.norms import RMSNorm
from headstock.model.shapes import Mixed, Weights


class Delta(StateMixer):
    """Each token corrects what the memory recalls under its key, by the share β, towards its value.

        S_t = S_{t−1} + β_t k_t (v_t − S_{t−1}ᵀ k_t)ᵀ,   z_t = S_tᵀ q_t,   β = sigmoid(W_β x)
        w = Q Kᵀ (I + diag(β) K Kᵀ)⁻¹ diag(β),   Q Kᵀ on and below the diagonal, K Kᵀ below it

    Queries and keys have length 1, one β a key head; RMSNorm on each head's output, one weight for all heads. Weights
    are signed: a later key takes back what an earlier one like it wrote. The short convolution and the SiLU of some
    published models are left out; without SiLU, RoPE's rotations still cancel to distances.
    Source: Schlag et al., "Linear Transformers Are Secretly Fast Weight Programmers" (2021), arXiv 2102.11174; the
    chunks, the length 1 and the norm: Yang et al., "Parallelizing Linear Transformers with the Delta Rule over
    Sequence Length" (2024), arXiv 2406.06484.
    """

    weights_are = "signed"
    sees_order = True
    refuses: ClassVar = {
        "xpos": "its keys and queries are given length 1, which undoes xPos's scales",
        "alibi": "its memory holds keys of all distances, and has no score to take a penalty from",
        "window": "what a key wrote into its memory cannot be told from the rest",
        "soft_cap": "capped scores would be no rule of a memory of fixed size",
        "scale_scores": "it has no score to divide",
        "head_norm": "the norm of its heads is part of what it is",
        "qk_norm": "it gives queries and keys length 1 already",
        "causal": "a memory is written in one order",
        "cross attention": "a memory is written in one order, and its gates belong to the tokens that read",
    }

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__(config, layer)
        self.norm = RMSNorm(config.d_head, eps=config.norm_eps)

    @classmethod
    def sizes(cls, config: ModelConfig) -> HeadSizes:
        """One gate a key head."""
        return HeadSizes.usual(config, gates=config.n_kv_heads)

    @classmethod
    def own_parameters(cls, config: ModelConfig) -> int:
        """One weight of the heads' norm."""
        return config.d_head

    @classmethod
    def mixing_flops(cls, config: ModelConfig, length: int) -> int:
        """Products of queries and keys, of keys and keys, the triangular solution, and the average."""
        sizes = cls.sizes(config)
        written = sizes.key_heads * (2 * sizes.key_size + sizes.value_size)  # half of a square is solved
        return super().mixing_flops(config, length) + length * written

    def prepare(self, heads: Heads) -> Heads:
        """Give queries and keys length 1, and the gates their range."""
        assert heads.gates_bhk is not None
        return replace(
            heads,
            q_bhqd=F.normalize(heads.q_bhqd, dim=-1, eps=1e-6),
            k_bhkd=F.normalize(heads.k_bhkd, dim=-1, eps=1e-6),
            gates_bhk=torch.sigmoid(heads.gates_bhk),
        )

    def start(self, heads: Heads) -> State:
        """An empty memory, (batch, head, d, d_v)."""
        return (heads.k_bhkd.new_zeros(*heads.k_bhkd.shape[:2], heads.k_bhkd.shape[-1], heads.v_bhkd.shape[-1]),)

    def update(self, state: State, k_bhd: Tensor, v_bhd: Tensor, *gates_bh: Tensor) -> State:
        """Correct what the memory recalls under the key."""
        (memory,), (beta_bh,) = state, gates_bh
        error_bhd = v_bhd - self.recall(state, k_bhd)
        return (memory + k_bhd[..., :, None] * (beta_bh[..., None] * error_bhd)[..., None, :],)

    def recall(self, state: State, q_bhd: Tensor) -> Tensor:
        """Read."""
        return (q_bhd[..., None, :] @ state[0])[..., 0, :]

    def similarities(self, heads: Heads) -> Tensor:
        """q·k, (batch, head, query, key); 0 where hidden."""
        keys = shared_by_groups(heads.k_bhkd, self.heads.query_heads)
        return (heads.q_bhqd @ keys.transpose(-1, -2)).masked_fill(~heads.visible.dense, 0.0)

    def corrections(self, heads: Heads) -> Tensor:
        """I + diag(β) K Kᵀ, (batch, key head, key, key): what each key takes back from those before."""
        keys, beta_bhk = heads.k_bhkd, heads.gates_bhk
        assert beta_bhk is not None
        overlap = (keys @ keys.transpose(-1, -2)).masked_fill(~heads.visible.dense, 0.0).tril(-1)
        return beta_bhk[..., None] * overlap  # the diagonal of ones is never stored: `unitriangular`

    def weights_of(self, heads: Heads) -> Weights:
        """Solve for the weights from the right."""
        n_heads, beta_bhk = self.heads.query_heads, heads.gates_bhk
        assert beta_bhk is not None
        corrections = shared_by_groups(self.corrections(heads), n_heads)
        solved: Tensor = torch.linalg.solve_triangular(
            corrections, self.similarities(heads), upper=False, left=False, unitriangular=True
        )
        return solved * shared_by_groups(beta_bhk, n_heads)[:, :, None, :]

    def writes(self, heads: Heads, held_bhkd: Tensor | float) -> Tensor:
        """Give what each token writes under its key, (batch, key head, key, d); held: what the state held there."""
        assert heads.gates_bhk is not None
        wrong = heads.gates_bhk[..., None] * (heads.v_bhkd - held_bhkd)
        writes: Tensor = torch.linalg.solve_triangular(self.corrections(heads), wrong, upper=False, unitriangular=True)
        return writes

    def mix_plainly(self, heads: Heads) -> Mixed:
        """Average what is written with every q·k in sight: the weights' product with the values, from the right."""
        return self._read_within(self.writes(heads, 0.0), heads)

    def mix_chunk(self, state: State, chunk: Chunk) -> tuple[Mixed, State]:
        """Correct by what the state holds and what the chunk's own keys wrote before."""
        heads, (memory,) = chunk.heads, state
        writes = self.writes(heads, chunk.of_state(heads.k_bhkd) @ memory)
        from_state = chunk.of_state(heads.q_bhqd) @ shared_by_groups(memory, self.heads.query_heads)
        after = chunk.kept(memory) + chunk.to_the_end(heads.k_bhkd).transpose(-1, -2) @ writes
        return from_state + self._read_within(writes, heads), (after,)

    def _read_within(self, writes_bhkd: Tensor, heads: Heads) -> Tensor:
        return self.similarities(heads) @ shared_by_groups(writes_bhkd, self.heads.output_heads)

    def finish(self, z_bhqd: Mixed, heads: Heads) -> Mixed:
        """Norm each head alone."""
        return self.norm(z_bhqd)  # type: ignore[no-any-return]
