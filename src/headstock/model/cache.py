"""What decoding remembers: each block's keys and values, or its state, and where each row of the batch stands.

Keys are kept as they are scored, already rotated. A mixer without keys keeps keys of width 0, which cost nothing.
A model with a window of W forgets what no later token sees: W − 1 tokens are kept, for a query brings its own key.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.config import ModelConfig

State = tuple[Tensor, ...]
"""What a recurrent mixer remembers, each tensor (batch, …). Never changed in place."""


class BlockCache:
    """What one block remembers: `kept` grows along its third axis; `state` is replaced."""

    def __init__(self) -> None:
        self.kept: tuple[Tensor, ...] = ()
        """Keys, values and, for a mixer that keeps them, gates: each (batch, head, key, …)."""
        self.state: State = ()

    def extend(self, *new: Tensor) -> tuple[Tensor, ...]:
        """Append what the new tokens give, each (batch, head, key, …); give all of it."""
        if self.kept:
            new = tuple(torch.cat(pair, dim=2) for pair in zip(self.kept, new, strict=True))
        self.kept = new
        return new

    @property
    def n_bytes(self) -> int:
        """Bytes held."""
        return sum(x.numel() * x.element_size() for x in (*self.kept, *self.state))


class Cache:
    """What a model remembers of the tokens it has read; `model(ids, cache=cache)` reads on from there.

    Made empty by `Cache(model.config.n_layers)`. One cache serves one batch of sequences.
    """

    def __init__(self, n_layers: int) -> None:
        self.blocks = [BlockCache() for _ in range(n_layers)]
        self.length = 0
        """Tokens read, padding included."""
        self.forgotten = 0
        """Tokens read whose keys and values are no longer kept."""
        self.real_bk: Tensor | None = None
        self.document_bk: Tensor | None = None
        self.reader: tuple[ModelConfig, int, torch.dtype] | None = None
        """Config, batch and dtype of the model that reads; None before it does."""

    @property
    def n_bytes(self) -> int:
        """Bytes of all blocks together."""
        return sum(block.n_bytes for block in self.blocks)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Stand again where it stood, should the reading inside fail half-way."""
        blocks = [(block.kept, block.state) for block in self.blocks]
        rest = self.length, self.forgotten, self.real_bk, self.document_bk, self.reader
        try:
            yield
        except BaseException:
            for block, (kept, state) in zip(self.blocks, blocks, strict=True):
                block.kept, block.state = kept, state
            self.length, self.forgotten, self.real_bk, self.document_bk, self.reader = rest
            raise

    def serve(self, config: ModelConfig, batch: int, dtype: torch.dtype) -> None:
        """Raise UserError for another reader than before: states would spread over a batch, not only fail to fit."""
        if len(self.blocks) != config.n_layers:
            raise UserError(
                f"the cache is made for n_layers={len(self.blocks)}, but the model has {config.n_layers}: make it by "
                f"Cache(model.config.n_layers)."
            )
        if self.reader is None:
            self.reader = config, batch, dtype
        config_before, batch_before, dtype_before = self.reader
        if config != config_before:
            raise UserError(
                f"the cache remembers what another model read ({config_before.variant}), not this one "
                f"({config.variant}): give each model a cache of its own."
            )
        if batch != batch_before:
            raise UserError(
                f"the cache remembers a batch of {batch_before}, but a batch of {batch} is read: give each batch a "
                f"cache of its own."
            )
        if dtype != dtype_before:
            was, now = (str(name).removeprefix("torch.") for name in (dtype_before, dtype))
            raise UserError(f"the cache was begun in {was}, but the model is in {now} now: begin a new one.")

    def extend_reading(
        self, real_bq: Tensor | None, document_bq: Tensor | None, ids_bq: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        """Append which of the new tokens are real and what document they belong to; give both for all tokens."""
        if not ids_bq.shape[1]:  # of no tokens nothing is said
            return self.real_bk, self.document_bk
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

    def forget_past(self, window: int) -> None:
        """Let go of what no token to come sees; keep all where there is padding, or documents: a window skips them."""
        surplus = self.length - self.forgotten - (window - 1)
        if surplus <= 0 or self.real_bk is not None or self.document_bk is not None:
            return
        for block in self.blocks:
            block.kept = tuple(x[:, :, surplus:].clone() for x in block.kept)  # a view would hold on to it all
        self.forgotten += surplus
