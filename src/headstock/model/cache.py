"""What decoding remembers: each block's keys and values, and where each row of the batch stands.

Keys are kept as they are scored, already rotated. A mixer without keys keeps keys of width 0, which cost nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from headstock.model.shapes import Keys, Values


class BlockCache:
    """The keys and values of one block."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def extend(self, k_bhkd: Keys, v_bhkd: Values) -> tuple[Tensor, Tensor]:
        """Append new keys and values; give all of them."""
        if self.keys is not None and self.values is not None:
            k_bhkd = torch.cat([self.keys, k_bhkd], dim=2)
            v_bhkd = torch.cat([self.values, v_bhkd], dim=2)
        self.keys, self.values = k_bhkd, v_bhkd
        return k_bhkd, v_bhkd

    @property
    def n_bytes(self) -> int:
        """Bytes held."""
        return sum(x.numel() * x.element_size() for x in (self.keys, self.values) if x is not None)


class Cache:
    """What a model remembers of the tokens it has read; `model(ids, cache=cache)` reads on from there.

    Made empty by `Cache(model.config.n_layers)`. One cache serves one batch of sequences.
    """

    def __init__(self, n_layers: int) -> None:
        self.blocks = [BlockCache() for _ in range(n_layers)]
        self.length = 0
        """Tokens read, padding included."""
        self.real_bk: Tensor | None = None
        self.document_bk: Tensor | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes of keys and values, all blocks together."""
        return sum(block.n_bytes for block in self.blocks)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Stand again where it stood, should the reading inside fail half-way."""
        keys_and_values = [(block.keys, block.values) for block in self.blocks]
        rest = self.length, self.real_bk, self.document_bk
        try:
            yield
        except BaseException:
            for block, (keys, values) in zip(self.blocks, keys_and_values, strict=True):
                block.keys, block.values = keys, values
            self.length, self.real_bk, self.document_bk = rest
            raise

    def extend_reading(
        self, real_bq: Tensor | None, document_bq: Tensor | None, ids_bq: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        """Append which of the new tokens are real and what document they belong to; give both for all tokens."""
        before = ids_bq.new_zeros(ids_bq.shape[0], self.length)
        if self.real_bk is not None or real_bq is not None:
            old = torch.ones_like(before, dtype=torch.bool) if self.real_bk is None else self.real_bk
            new = torch.ones_like(ids_bq, dtype=torch.bool) if real_bq is None else real_bq
            self.real_bk = torch.cat([old, new], dim=1)
        if self.document_bk is not None or document_bq is not None:
            old = before if self.document_bk is None else self.document_bk
            new = old[:, -1:].expand(ids_bq.shape) if document_bq is None else document_bq  # the last one goes on
            self.document_bk = torch.cat([old, new], dim=1)
        self.length += ids_bq.shape[1]
        return self.real_bk, self.document_bk
