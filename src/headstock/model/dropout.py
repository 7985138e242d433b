"""Dropout whose draws depend on (seed, step, row) alone: cutting a batch into pieces changes no draw.

Without draws given, torch's own generator serves, as in any module in training mode.
"""

import hashlib
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


class DropoutDraws:
    """One generator a row of the batch, drawn from in the order in which the forward pass drops."""

    def __init__(self, seed: int, step: int, rows: Sequence[int], device: torch.device) -> None:
        self._generators = [torch.Generator(device).manual_seed(seed_from("dropout", seed, step, row)) for row in rows]

    def keep(self, like: Tensor, p: float) -> Tensor:
        """Give 1/(1−p) with probability 1−p and 0 otherwise, in the shape of `like`, whose first axis is the batch."""
        kept = torch.empty_like(like)
        for row, generator in zip(kept, self._generators, strict=True):
            row.bernoulli_(1 - p, generator=generator)
        return kept.div_(1 - p)


def dropout(x: Tensor, p: float, draws: DropoutDraws | None) -> Tensor:
    """Drop numbers of x with probability p and scale up the rest; the caller has seen to it that it is training."""
    return F.dropout(x, p) if draws is None else x * draws.keep(x, p)


def seed_from(*parts: object) -> int:
    """Give a seed below 2^63 that follows from the parts, the same on every machine."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big") >> 1
