"""Attention maps as text that a page can hold: rounded to a few bits, packed, and unpacked head by head.

A weight w of a map whose largest is s becomes the nearest whole number to n·√(|w|/s), with its sign: small weights,
of which there are most, keep more digits than large ones. The page shows no more digits than are left. A map in
which no query weighs a later key is kept as its lower triangle, row after row. Knows nothing of models and pages.
"""

import base64
import math
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

EXACT_UP_TO = 1_000_000
"""Weights of a page that are kept in two bytes each; of more, each is kept in one."""
SIDE = 64
"""Cells along a small picture's side; of a longer text the largest weight of a few neighbours is shown."""
WIDTHS = (1, 2)

Codes = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]


@dataclass(frozen=True)
class EncodedMap:
    """One map (query, key), rounded and packed."""

    scale: float
    """The largest |weight|; 0 where there is none above it."""
    triangle: bool
    """Whether only keys up to the query's own place are kept."""
    signed: bool
    packed: str
    """base64 of deflated codes; in two bytes, all high ones come before all low ones."""
    small: bytes
    """One byte a cell of the small picture, row after row, coded in the same way."""


def encoded(weights_hqk: Tensor, width: int) -> list[EncodedMap]:
    """Give each head's map, rounded to `width` bytes a weight.

    A weight that is no finite number has a code of its own.
    """
    maps = weights_hqk.detach().float().cpu().numpy()
    with ThreadPoolExecutor() as pool:  # deflating takes the most time, and lets others work
        return list(pool.map(lambda one: _encoded(one, width), maps))


def width_for(n_weights: int) -> int:
    """Give how many bytes a weight of so many is kept in."""
    return WIDTHS[n_weights <= EXACT_UP_TO]


def levels(width: int, signed: bool) -> int:
    """Give n: how many steps there are from 0 to the largest weight. The code after the last one is no number."""
    steps: int = 256**width - 2
    return steps // 2 if signed else steps


def largest_error(weight: float, scale: float, width: int, signed: bool) -> float:
    """Give how far the weight that a page shows may lie from the true one: half a step of the root, to both sides."""
    step = 0.5 / levels(width, signed)
    return scale * (2 * math.sqrt(min(1.0, abs(weight) / scale)) * step + step * step) if scale else 0.0


def codes_of(weights: npt.NDArray[np.float32], scale: float, width: int, signed: bool) -> Codes:
    """Round weights to codes: 0 is the middle one where there are signs."""
    n = levels(width, signed)
    dtype = np.uint8 if width == 1 else np.uint16
    size = np.sqrt(np.abs(weights) * (1 / scale if scale else 0.0))
    with np.errstate(invalid="ignore"):
        codes = np.rint(n * (np.copysign(size, weights) if signed else size)) + (n if signed else 0)
        made: Codes = np.where(np.isfinite(weights), codes, 256**width - 1).astype(dtype)
    return made


def _encoded(map_qk: npt.NDArray[np.float32], width: int) -> EncodedMap:
    finite = map_qk if np.isfinite(map_qk).all() else np.nan_to_num(map_qk, nan=0.0, posinf=0.0, neginf=0.0)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    scale, signed = max(-low, high), low < 0
    rows, columns = map_qk.shape
    triangle = rows == columns and not np.triu(map_qk, 1).any()
    kept = map_qk[np.tril_indices(rows)] if triangle else map_qk.ravel()
    codes = codes_of(kept, scale, width, signed)
    raw = codes.tobytes() if width == 1 else (codes >> 8).astype(np.uint8).tobytes() + codes.astype(np.uint8).tobytes()
    small = codes_of(_small(map_qk, finite), scale, 1, signed)
    return EncodedMap(scale, triangle, signed, packed(raw), small.tobytes())


def packed(raw: bytes) -> str:
    """Give bytes deflated, as letters."""
    return base64.b64encode(zlib.compress(raw, 6)).decode("ascii")


def _small(map_qk: npt.NDArray[np.float32], finite: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Give the largest weight, by size, of each group of cells; what is no number only where nothing else is."""
    if max(map_qk.shape) <= SIDE:
        return map_qk
    queries, keys = (_starts(length) for length in map_qk.shape)
    high, low = finite, finite
    for starts, axis in ((queries, 0), (keys, 1)):
        high, low = np.maximum.reduceat(high, starts, axis), np.minimum.reduceat(low, starts, axis)
    return np.where(high >= -low, high, low)


def _starts(length: int) -> Sequence[int]:
    cells = min(length, SIDE)
    return [place * length // cells for place in range(cells)]
