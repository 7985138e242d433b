"""Rounding to so many bits by the largest |x|, and back to floating point: what low precision loses, simulated.

Knows nothing of models.
"""

import math
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from headstock.errors import UserError, near_name
from headstock.model.attention import wide

Per: TypeAlias = Literal["tensor", "row"]
"""What shares one scale: a whole tensor, or each row along its last axis."""
MOST_BITS = 32


def rounded(x: Tensor, bits: int, per: Per = "tensor") -> Tensor:
    """Give x rounded to 2^bits − 1 evenly spaced values from −max |x| to max |x|, in its own shape and dtype.

    Symmetric absmax quantisation: zero stays zero, the largest |x| stays itself, −x gives the negative of what x gives.
    One bit has zero alone. −inf, which hides a score, stays, and is not what the largest is taken of. Rounds half to
    even, in float32 or wider; no gradient flows through it.
    """
    exact = wide(x)
    hidden = exact == -math.inf
    largest = _largest(exact.masked_fill(hidden, 0.0).abs(), per)
    levels = 2 ** (bits - 1) - 1
    shares = exact / largest.where(largest > 0, 1.0)
    grid = (shares * levels).round() / levels * largest if levels else torch.zeros_like(exact)
    return torch.where(hidden, exact, grid).to(x.dtype)


def _largest(sizes: Tensor, per: Per) -> Tensor:
    if not sizes.numel():
        return sizes.new_zeros(())
    return sizes.amax() if per == "tensor" else sizes.amax(-1, keepdim=True)


def refuse_rounding(bits: int, per: str) -> None:
    """Raise UserError for a number of bits that is none, and for a scale that nothing shares."""
    if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= MOST_BITS:
        raise UserError(f"bits={bits!r} makes no grid to round to: choose a whole number from 1 to {MOST_BITS}.")
    if per not in get_args(Per):
        raise UserError(f"a scale cannot be taken per {per!r}: {near_name(str(per), get_args(Per))}")
