"""Small batch sources with an answer that can be worked out by hand."""

from collections.abc import Iterator

import torch
from torch import Tensor

from headstock.training.batch import Batch, Split


class Counting:
    """Rows that count upwards from a random start, modulo the vocabulary: a model learns it in a few steps.

    `scored` gives which positions count, counted from 0; all of them where it is None.
    """

    bytes_per_token: Tensor | None = None

    def __init__(self, vocab_size: int = 11, context: int = 6, scored: tuple[int, ...] | None = None) -> None:
        self.vocab_size = vocab_size
        self.context = context
        self.mask = torch.ones(context, dtype=torch.bool)
        if scored is not None:
            self.mask[:] = False
            self.mask[list(scored)] = True

    def batch(self, *, seed: int, index: int, size: int, split: Split = "train") -> Batch:
        generator = torch.Generator().manual_seed(seed * 10_007 + index)
        return self._rows(torch.randint(self.vocab_size, (size,), generator=generator))

    def evaluation(self, split: Split = "held-out", *, size: int = 64) -> Iterator[Batch]:
        for starts in torch.arange(self.vocab_size).split(size):
            yield self._rows(starts)

    def _rows(self, starts: Tensor) -> Batch:
        ids = (starts[:, None] + torch.arange(self.context + 1)) % self.vocab_size
        return Batch(ids[:, :-1], ids[:, 1:], self.mask.expand(len(starts), -1))
