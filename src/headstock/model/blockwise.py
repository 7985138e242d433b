"""Averaging block by block of queries, each over the keys that it may see: memory that grows linearly with length.

A block's weights live while it is worked on and are computed anew in the backward pass, so what is kept for it is
queries, keys and values alone.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from headstock.model.evaluations import note
from headstock.model.heads import Heads

BLOCK = 128
"""Queries a block."""
SHORTEST = 256
"""Queries below which storing every weight is quicker: at 256 blocks cost a tenth more for one sequence and save half
for 32; from 512 on they save a quarter and more."""


def by_blocks(average: Callable[[Heads], Tensor], heads: Heads) -> Tensor:
    """Give average(heads), (batch, head, query, d), computed block by block where the sequence is long.

    Each query's average must follow from that query and what it sees. Bidirectional attention is averaged at once.
    """
    n_queries = heads.visible.n_queries
    if n_queries < SHORTEST or not heads.visible.causal:
        return average(heads)
    note("blockwise")

    def average_from(start: int) -> Tensor:
        # Cut here, within the checkpoint, or every block's mask and penalties would live until the backward pass.
        return average(heads.block(start, min(start + BLOCK, n_queries)))

    starts = range(0, n_queries, BLOCK)
    if not torch.is_grad_enabled():
        return torch.cat([average_from(start) for start in starts], dim=2)
    averages = [checkpoint(average_from, start, use_reentrant=False, preserve_rng_state=False) for start in starts]
    return torch.cat(averages, dim=2)
