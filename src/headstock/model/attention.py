"""Evaluating a weighted average: plainly, with every weight in sight, and fused, without ever storing them.

Masking writes −inf and nothing else. A row that sees nothing weighs nothing: zeros, with finite gradients.
Softmax runs in float32, or float64 for a float64 model, whatever the model's own dtype.
"""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from headstock.model.evaluations import note
from headstock.model.shapes import Keys, Mixed, Queries, Scores, Values, VisibleTensor
from headstock.model.visibility import Visible

KEYS_OF_A_VECTOR = 16
"""Of float32, as the kernel on the CPU reads them."""
WINDOWED_BLOCK = 128
"""Queries a fused call where a window hides most keys."""


def wide(x: Tensor) -> Tensor:
    """Give x in float32, or in float64 if it is that already."""
    return x if x.dtype == torch.float64 else x.float()


def masked_softmax(scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Scores:
    """Softmax over the visible keys; hidden ones get exactly 0, and a row that sees nothing is all zeros."""
    sees_something = visible_bhqk.any(-1, keepdim=True)
    # A row of −inf alone is NaN, backwards too: such a row is left unmasked here and zeroed after.
    hidden = ~visible_bhqk & sees_something
    return scores_bhqk.masked_fill(hidden, -math.inf).softmax(-1).masked_fill(~sees_something, 0.0)


def masked_logsumexp(scores_bhqk: Scores, visible_bhqk: VisibleTensor) -> Tensor:
    """Log of Σ exp over the visible keys, (batch, head, query, 1); −inf for a row that sees nothing."""
    sees_something = visible_bhqk.any(-1, keepdim=True)
    hidden = ~visible_bhqk & sees_something
    total = scores_bhqk.masked_fill(hidden, -math.inf).logsumexp(-1, keepdim=True)
    return total.masked_fill(~sees_something, -math.inf)


def dot_products(
    q_bhqd: Queries, k_bhkd: Keys, visible: Visible, soft_cap: float | None = None, scale: float | None = None
) -> Scores:
    """Scores q·k/√d, capped if asked, less ALiBi's penalty if there is one, in float32 or wider; 0 for width 0.

    `scale` multiplies q·k, 1/√d where not given.
    """
    width = q_bhqd.shape[-1]
    if scale is None:
        scale = 1 / math.sqrt(width) if width else 1.0
    scores = wide(q_bhqd) @ wide(k_bhkd).transpose(-1, -2) * scale
    if soft_cap is not None:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    return scores if visible.penalty_bhqk is None else scores + visible.penalty_bhqk


def fused_attention(
    q_bhqd: Queries, k_bhkd: Keys, v_bhkd: Values, visible: Visible, scale: float | None = None
) -> Mixed:
    """Softmax attention by torch's fused kernel; keys and values may be grouped.

    The kernel is left for a slower one where values are wider than keys: pad them to one size before.
    `scale` multiplies q·k, 1/√d where not given. Where a window hides most of a long sequence, one call a block of
    queries, with the keys that it sees: time and memory grow linearly with the length.
    """
    if visible.is_band and visible.n_queries >= 2 * WINDOWED_BLOCK:
        return _fused_in_window(q_bhqd, k_bhkd, v_bhkd, visible, scale)
    odd_bhq1 = _odd_numbers(q_bhqd, k_bhkd, visible) if visible.n_keys < KEYS_OF_A_VECTOR else None
    grouped = k_bhkd.shape[1] != q_bhqd.shape[1]
    if grouped and q_bhqd.device.type != "cpu":  # where not every fused kernel reads groups
        k_bhkd, v_bhkd = (shared_by_groups(x, q_bhqd.shape[1]) for x in (k_bhkd, v_bhkd))
        grouped = False
    mask, is_causal = None, False
    if visible.penalty_bhqk is not None:
        mask = visible.penalty_bhqk.to(q_bhqd.dtype).masked_fill(~visible.dense, -math.inf)
    elif visible.is_causal_after_leading:
        # A query of zeros at each leading key makes it a square, whose triangle needs no mask; it is dropped after.
        q_bhqd, is_causal = F.pad(q_bhqd, (0, 0, visible.leading, 0)), True
    elif not visible.is_everything:
        mask = visible.dense
    z_bhqd = F.scaled_dot_product_attention(
        q_bhqd, k_bhkd, v_bhkd, attn_mask=mask, is_causal=is_causal, scale=scale, enable_gqa=grouped
    )
    z_bhqd = z_bhqd[:, :, visible.leading :] if is_causal else z_bhqd
    return z_bhqd if odd_bhq1 is None else z_bhqd + odd_bhq1


def _odd_numbers(q_bhqd: Queries, k_bhkd: Keys, visible: Visible) -> Tensor | None:
    """Give what to add to a query's average, (batch, head, query, 1): NaN where its scores are, else 0.

    Among fewer keys than a vector holds, torch's kernel on the CPU (2.13) takes scores that all are NaN for equal ones,
    and a broken model looks whole. None elsewhere.
    """
    if q_bhqd.device.type != "cpu":
        return None
    q_bhq1, k_bhk = (q_bhqd.detach() * 0).sum(-1, keepdim=True), (k_bhkd.detach() * 0).sum(-1)
    k_bhk = k_bhk.repeat_interleave(q_bhqd.shape[1] // k_bhkd.shape[1], dim=1)
    return q_bhq1 + torch.where(visible.dense, k_bhk[:, :, None], 0.0).sum(-1, keepdim=True).to(q_bhqd.dtype)


def _fused_in_window(q_bhqd: Tensor, k_bhkd: Tensor, v_bhkd: Tensor, visible: Visible, scale: float | None) -> Tensor:
    note("blockwise")
    leading, n_queries = visible.leading, visible.n_queries
    timed = replace(visible, n_keys=visible.n_keys - leading, leading=0)
    # Keys and values are cut into pieces once: the gradient of a piece is as long as the piece, that of a slice as
    # long as the whole, and there is one for each block.
    pieces = [torch.split(x[:, :, leading:], WINDOWED_BLOCK, dim=2) for x in (k_bhkd, v_bhkd)]
    averages = []
    for start in range(0, n_queries, WINDOWED_BLOCK):
        stop = min(start + WINDOWED_BLOCK, n_queries)
        part, keys = timed.block(start, stop)
        first, last = keys.start // WINDOWED_BLOCK, -(-keys.stop // WINDOWED_BLOCK)
        of_pieces = slice(keys.start - first * WINDOWED_BLOCK, keys.stop - first * WINDOWED_BLOCK)
        k, v = (torch.cat(x[first:last], dim=2)[:, :, of_pieces] for x in pieces)
        if leading:
            k, v = (torch.cat([x[:, :, :leading], y], dim=2) for x, y in ((k_bhkd, k), (v_bhkd, v)))
            part = replace(part, n_keys=part.n_keys + leading, leading=leading)
        averages.append(fused_attention(q_bhqd[:, :, start:stop], k, v, part, scale))
    return torch.cat(averages, dim=2)


def with_zero(x_bhkd: Tensor) -> Tensor:
    """Give keys or values with one zero vector in front."""
    return F.pad(x_bhkd, (0, 0, 1, 0))


def widened(x_bhkd: Tensor, width: int) -> Tensor:
    """Give x with zeros behind, up to `width`: dot products stay as they are."""
    return F.pad(x_bhkd, (0, width - x_bhkd.shape[-1]))


def shared_by_groups(x_bhkd: Tensor, n_heads: int, together: int = 1) -> Tensor:
    """Repeat grouped key or value heads until there are n_heads: head i reads group i // (n_heads / groups).

    `together` heads that stand side by side count as one and stay side by side.
    """
    groups = x_bhkd.shape[1]
    if groups == n_heads:
        return x_bhkd
    together_bghkd = x_bhkd.reshape(x_bhkd.shape[0], groups // together, together, *x_bhkd.shape[2:])
    return together_bghkd.repeat_interleave(n_heads // groups, dim=1).flatten(1, 2)
