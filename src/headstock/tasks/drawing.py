"""Drawing numbers as a pure function of what they are for: no generator, no state, nothing to restore on resuming."""

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Numbers = NDArray[np.int64]

IN_SIGHT = 2**20
"""Numbers of all rows together up to which a shuffle is written down."""


def draw(below: int, count: int, *purpose: str | int) -> Tensor:
    """Draw `count` numbers of 0 … below − 1, evenly and with repetition: int64 (count,), decided by `purpose` alone.

    The same on every machine and in every version of torch or numpy, for the bits are those of SHAKE-128. (A seeded
    torch.Generator keeps only 32 bits of its seed, so that long runs would meet another run's batches.) The first
    numbers of a longer draw are those of a shorter one. Dividing 64 bits favours no number by more than below / 2^64.
    """
    bits = hashlib.shake_128(repr(purpose).encode()).digest(8 * count)
    return torch.from_numpy((np.frombuffer(bits, dtype="<u8") % np.uint64(below)).astype(np.int64))


def draw_different(below: int, rows: int, count: int, *purpose: str | int) -> Tensor:
    """Draw `count` numbers of 0 … below − 1 a row, no two of a row alike, every order as likely: int64 (rows, count).

    Decided by `purpose` alone, as `draw` is. Needs count ≤ below.
    """
    assert count <= below
    drawn_rp: Numbers = draw(2**62, rows * count, *purpose).view(rows, count).numpy()
    place_p = np.arange(count)
    other_rp: Numbers = place_p + drawn_rp % (below - place_p)
    shuffled = _shuffled if rows * below <= IN_SIGHT else _shuffled_unseen
    return torch.from_numpy(shuffled(below, other_rp))


def _shuffled(below: int, other_rp: Numbers) -> Numbers:
    """Give the first places of a shuffle: each takes what stands at `other` of those not yet taken."""
    rows, count = other_rp.shape
    numbers = np.broadcast_to(np.arange(below), (rows, below)).copy()
    every = np.arange(rows)
    for place in range(count):
        other = other_rp[:, place]
        numbers[every, place], numbers[every, other] = numbers[every, other], numbers[every, place].copy()
    return numbers[:, :count].copy()


def _shuffled_unseen(below: int, other_rp: Numbers) -> Numbers:
    """Give the same of a shuffle too long to be written down: only what was moved is kept."""
    taken_rp, moved_rp = np.empty_like(other_rp), np.empty_like(other_rp)

    def standing(position_r: Numbers, after: int) -> Numbers:
        found_r = position_r.copy()
        for earlier in range(after):  # the last one to be moved there stands there
            np.copyto(found_r, moved_rp[:, earlier], where=other_rp[:, earlier] == position_r)
        return found_r

    for place in range(other_rp.shape[1]):
        taken_rp[:, place] = standing(other_rp[:, place], place)
        moved_rp[:, place] = standing(np.full(len(other_rp), place), place)
    return taken_rp
