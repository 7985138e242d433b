"""Where a token stands: tables added to the embedding, rotations of queries and keys, penalties on distance.

Every table is computed in float32, or float64 for a float64 model: in bfloat16 positions from 257 on collide.
Positions are counted within a document, from 0, padding left out.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headstock.errors import UserError
from headstock.model.visibility import Visible

ROTARY_BASE = 10_000.0


class LearnedPositions(nn.Module):
    """One trained vector a position; there is no vector past `context`."""

    def __init__(self, context: int, width: int) -> None:
        super().__init__()
        self.context = context
        self.weight = nn.Parameter(torch.empty(context, width))
        nn.init.normal_(self.weight)

    def forward(self, positions: Tensor) -> Tensor:
        """(…) → (…, m). The caller has seen to it that no position is past the table."""
        return nn.functional.embedding(positions, self.weight)


class SinusoidalPositions(nn.Module):
    """Sines in the even columns and cosines in the odd, wavelengths 2π to 10,000·2π (Vaswani et al., 2017)."""

    def __init__(self, width: int, like: Tensor) -> None:
        super().__init__()
        self.width = width
        self._like = [like]  # in a list, so that it is no parameter of this module

    def forward(self, positions: Tensor) -> Tensor:
        """(…) → (…, m), for any position."""
        dtype = self._like[0].dtype
        angles = positions[..., None] * _frequencies(self.width + self.width % 2, positions.device, dtype)
        table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., : self.width]
        return table.to(dtype)


def _frequencies(width: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """(width/2): 10,000^(−2i/width), in float32 or float64."""
    exact = torch.float64 if dtype == torch.float64 else torch.float32
    return ROTARY_BASE ** (-torch.arange(0, width, 2, device=device, dtype=exact) / width)


@dataclass(frozen=True)
class Rotation:
    """Cosines and sines of the angles of each position: RoPE (Su et al., 2021), for one forward pass.

    halves: number i of a head turns with number i + d/2 (Llama, GPT-NeoX); otherwise numbers 2i and 2i+1 turn
    together (GPT-J, and the paper). The two layouts are one function up to a permutation of a head's numbers.
    """

    cos: Tensor
    """(…, query, d/2)"""
    sin: Tensor
    halves: bool
    scale: Tensor | None = None
    """(…, query, d/2): what xPos multiplies a turned query by, and divides a turned key by."""

    @classmethod
    def at(cls, positions: Tensor, d_head: int, dtype: torch.dtype, *, layout: str) -> "Rotation":
        """Give the rotation of positions (query) or (batch, query), as ModelConfig.position names it.

        For xpos the caller has seen to it that no position is past `xpos_end`.
        """
        frequencies = _frequencies(d_head, positions.device, dtype)
        if positions.ndim == 2:
            positions = positions[:, None]  # one axis for the heads
        angles = positions[..., None] * frequencies
        scale = None
        if layout == "xpos":
            scale = _xpos_bases(d_head, frequencies) ** (positions[..., None] / XPOS_STEP)
        return cls(angles.cos(), angles.sin(), layout == "rope", scale)

    def of_queries(self, q_bhqd: Tensor) -> Tensor:
        """Turn queries."""
        return self._turned(q_bhqd, self.scale)

    def of_keys(self, k_bhkd: Tensor) -> Tensor:
        """Turn keys."""
        return self._turned(k_bhkd, None if self.scale is None else 1 / self.scale)

    def _turned(self, x_bhqd: Tensor, scale: Tensor | None) -> Tensor:
        a, b = x_bhqd.chunk(2, dim=-1) if self.halves else (x_bhqd[..., 0::2], x_bhqd[..., 1::2])
        turned = [a * self.cos - b * self.sin, b * self.cos + a * self.sin]
        if scale is not None:
            turned = [part * scale for part in turned]
        whole = torch.cat(turned, dim=-1) if self.halves else torch.stack(turned, dim=-1).flatten(-2)
        return whole.to(x_bhqd.dtype)


XPOS_STEP = 512.0
"""Positions over which xPos lets a score fall by one base, as the paper's code has it."""


def _xpos_bases(d_head: int, like: Tensor) -> Tensor:
    """(d/2): (2i/d + 0.4) / 1.4, each below 1: fast turning pairs fall off first (xPos; Sun et al., 2022)."""
    return (torch.arange(0, d_head, 2, device=like.device, dtype=like.dtype) / d_head + 0.4) / 1.4


def xpos_end(dtype: torch.dtype) -> int:
    """Give the positions at which xPos ends: from there a scale passes the root of the largest number of the dtype.

    Until there a query and a key, and the score of any two of them, stay clear of what the dtype cannot hold.
    """
    return int(XPOS_STEP * math.log(torch.finfo(dtype).max) / 2 / math.log(1.4 / 0.4))


def refuse_past_xpos(visible: Visible, dtype: torch.dtype) -> None:
    """Raise UserError where a position is past the end of xPos."""
    end = xpos_end(dtype)
    length = _length_past(visible, end)
    if length:
        raise UserError(
            f"the sequence has {length} tokens but xpos ends at {end}, where its scales would leave "
            f"{str(dtype).removeprefix('torch.')}: shorten it, or choose another position, such as rope or alibi."
        )


def alibi_slopes(n_heads: int) -> Tensor:
    """ALiBi's slopes (Press et al., 2022), float64 (head): 2^(−8/n), 2^(−16/n), … for n a power of two.

    For another count the slopes of the power of two below, then every other one of the power of two above.
    """
    below = 2 ** int(math.log2(n_heads))
    slopes = [2.0 ** (-8 * (i + 1) / below) for i in range(below)]
    between = [2.0 ** (-8 * (i + 1) / (2 * below)) for i in range(0, 2 * below, 2)]
    return torch.tensor((slopes + between)[:n_heads], dtype=torch.float64)


def refuse_past_table(visible: Visible, context: int, what: str) -> None:
    """Raise UserError where a position is past a learned table of `context` rows."""
    length = _length_past(visible, context)
    if length:
        raise UserError(
            f"the sequence has {length} tokens but {what} end at {context}: shorten it, or build the model with a "
            f"longer context, or with parts that need no table, such as softmax+rope or softmax+alibi."
        )


def _length_past(visible: Visible, end: int) -> int:
    """Give the length of the longest sequence if it is above `end`, else 0; the tokens are read only if need be."""
    if visible.before + visible.n_keys <= end or not visible.key_positions.numel():
        return 0
    length = int(visible.key_positions.max()) + 1
    return length if length > end else 0
