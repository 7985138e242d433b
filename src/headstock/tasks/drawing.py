"""Drawing numbers as a pure function of what they are for: no generator, no state, nothing to restore on resuming."""

import hashlib

import numpy as np
import torch
from torch import Tensor


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
    drawn = draw(2**62, rows * count, *purpose).view(rows, count).numpy()
    numbers = np.broadcast_to(np.arange(below), (rows, below)).copy()
    every = np.arange(rows)
    for place in range(count):  # the first places of a shuffle: each takes one of those not yet taken
        other = place + drawn[:, place] % (below - place)
        numbers[every, place], numbers[every, other] = numbers[every, other], numbers[every, place].copy()
    return torch.from_numpy(numbers[:, :count].copy())
