"""The difference of two softmax maps, averaged block by block of queries without either map ever being stored.

No fused kernel subtracts maps: asked for both averages it reads every value twice, and wants queries and keys padded
to the width of the values, which is nearly twice the work of softmax. Here the two maps of a block are subtracted
first, so that the values are read once; they are computed anew in the backward pass.

Letters: g a group of pairs that share keys and values, in one row of the batch; m one of a pair's two maps; r a query
of one of the group's pairs, time before pair, so that a block of queries is a block of rows.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from headstock.model.visibility import Visible

BLOCK = 64
"""Rows a block."""
FEWEST = 24
"""Queries below which the plain formula is as quick: a decoded token, or the shortest tasks."""
AT_ONCE = 2**19
"""Scores worked on at once, if one group's are no more: 2 MiB in float32, meant to stay near the processor."""


def differencing(q_bhqd: Tensor, k_bhkd: Tensor, v_bhkd: Tensor, less: Tensor, visible: Visible) -> Tensor:
    """Give (softmax(q₁·k₁/√d) − less · softmax(q₂·k₂/√d)) v, (batch, pair, query, width of v).

    q (batch, 2·pair, query, d) and k (batch, 2·group, key, d) hold the two of a pair side by side; v is (batch, group,
    key, width). Pair i reads group i // (pairs / groups). less is a scalar, or (pair,). All are of one dtype, float32
    or wider.
    Memory grows linearly with the keys, backwards too. ALiBi, one slope a pair, needs causal attention.
    There is no second derivative.
    """
    return _Differencing.apply(q_bhqd, k_bhkd, v_bhkd, less, visible)  # type: ignore[no-any-return, no-untyped-call]


class _Differencing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q_bhqd: Tensor, k_bhkd: Tensor, v_bhkd: Tensor, less: Tensor, visible: Visible) -> Tensor:
        layout = ctx.layout = _Layout.of(q_bhqd, k_bhkd, visible)
        q, k, v = layout.rows(q_bhqd, maps=2), k_bhkd.flatten(0, 1), v_bhkd.flatten(0, 1)
        z = v.new_empty(layout.groups, q.shape[1], v.shape[2])
        scores_room, maps_room = (q.new_empty(layout.room) for _ in range(2))
        less_g1rs1 = layout.of_pairs(less)
        kept: list[Tensor] = []
        for block in layout.blocks():
            scores, maps = block.cut(scores_room, 2), block.cut(maps_room, 2)
            if layout.is_one_block:  # a block of queries is a small matter: better kept than computed anew
                maps = torch.empty_like(scores)
                kept.append(maps)
            block.softmax(q, k, scores, maps)
            difference = block.cut(scores_room, 1)
            block.difference(maps, less_g1rs1, difference)
            torch.bmm(difference[:, 0], v[block.groups, block.keys], out=z[block.groups, block.rows])
        ctx.save_for_backward(q, k, v, less, *kept)
        return layout.heads(z, maps=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dz_bhqd: Tensor) -> tuple[Tensor | None, ...]:
        """Softmax backwards, map by map: ds = p ∘ (dp − Σ p ∘ dp), where dp₁ = dz·v and dp₂ = −less · dp₁."""
        layout: _Layout = ctx.layout
        q, k, v, less, *kept = ctx.saved_tensors
        dz = layout.rows(dz_bhqd, maps=1)
        dq, dk, dv, dless = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v), torch.zeros_like(less)
        less_g1rs1 = layout.of_pairs(less)
        # The factor of dp₂ is left out of ds₂ and put on what ds₂ is multiplied with: rows of d, not rows of keys.
        factor_gmrs1 = torch.cat([torch.ones_like(less_g1rs1), -less_g1rs1], dim=1)
        q_gmrsd = q.view(-1, 2, layout.visible.n_queries, layout.share, q.shape[2])
        q_times = (q_gmrsd * factor_gmrs1).view(q.shape)
        scores_room, maps_room, one_room = (q.new_empty(size) for size in (layout.room, layout.room, layout.room // 2))
        for block in layout.blocks():
            groups, pairs, rows, keys = block.groups, block.maps, block.rows, block.keys
            scores, one = block.cut(scores_room, 2), block.cut(one_room, 1)
            if kept:
                maps = kept.pop(0)
            else:
                maps = block.cut(maps_room, 2)
                block.softmax(q, k, scores, maps)
            block.difference(maps, less_g1rs1, one)
            dv[groups, keys].baddbmm_(one[:, 0].transpose(1, 2), dz[groups, rows])
            torch.bmm(dz[groups, rows], v[groups, keys].transpose(1, 2), out=one[:, 0])  # dp₁
            torch.mul(maps, one, out=scores)
            total = scores.sum(-1, keepdim=True)
            if less.ndim:
                layout.add_to_pairs(dless, block, -total[:, 1])
            else:
                dless -= total[:, 1].sum()
            dscores = scores.addcmul_(maps, total, value=-1).flatten(0, 1)
            torch.bmm(dscores, k[pairs, keys], out=dq[pairs, rows])
            dk[pairs, keys].baddbmm_(dscores.transpose(1, 2), q_times[pairs, rows], alpha=layout.scale)
        dq.view(q_gmrsd.shape).mul_(factor_gmrs1 * layout.scale)
        dk, dv = (x.view(layout.batch, -1, *x.shape[1:]) for x in (dk, dv))
        return layout.heads(dq, maps=2), dk, dv, dless, None


@dataclass(frozen=True)
class _Layout:
    """How heads are laid out as groups and rows, and rows walked."""

    visible: Visible
    batch: int
    groups: int
    """Of all rows of the batch together."""
    share: int
    """Pairs that read one group."""
    scale: float

    @classmethod
    def of(cls, q_bhqd: Tensor, k_bhkd: Tensor, visible: Visible) -> "_Layout":
        batch, heads, _, width = q_bhqd.shape
        groups = k_bhkd.shape[1] // 2
        return cls(visible, batch, batch * groups, heads // 2 // groups, 1 / math.sqrt(width))

    def rows(self, x_bhqd: Tensor, maps: int) -> Tensor:
        """(batch, head, query, d) → (group·map, row, d)"""
        split = x_bhqd.reshape(self.batch, -1, self.share, maps, *x_bhqd.shape[2:])
        return split.permute(0, 1, 3, 4, 2, 5).reshape(self.groups * maps, -1, x_bhqd.shape[3])

    def heads(self, x: Tensor, maps: int) -> Tensor:
        """(group·map, row, d) → (batch, head, query, d)"""
        split = x.view(self.batch, -1, maps, x.shape[1] // self.share, self.share, x.shape[2])
        return split.permute(0, 1, 4, 2, 3, 5).flatten(1, 3)

    def of_pairs(self, x: Tensor) -> Tensor:
        """(pair,) → (group, 1, 1, pair of the group, 1); of a scalar (1, 1, 1, 1, 1)."""
        if not x.ndim:
            return x.view(1, 1, 1, 1, 1)
        return x.view(-1, 1, 1, self.share, 1).repeat(self.batch, 1, 1, 1, 1)

    def add_to_pairs(self, sums_p: Tensor, block: "_Block", x_gr1: Tensor) -> None:
        """Add what a block has in each row to the sum of the row's pair."""
        groups = torch.arange(block.groups.start, block.groups.stop, device=x_gr1.device) % (self.groups // self.batch)
        sums_p.view(-1, self.share).index_add_(0, groups, x_gr1.view(len(groups), -1, self.share).sum(1))

    @property
    def queries(self) -> int:
        """Queries a block."""
        return max(BLOCK // self.share, BLOCK // 4)

    @property
    def is_one_block(self) -> bool:
        return self.visible.n_queries <= self.queries

    @property
    def room(self) -> int:
        """Numbers in the maps that are worked on at once."""
        of_a_group = 2 * min(self.queries, self.visible.n_queries) * self.share * self.visible.n_keys
        return min(max(AT_ONCE, of_a_group), self.groups * of_a_group)

    def blocks(self) -> Iterator["_Block"]:
        """Give each block of queries, for as many groups at a time as there is room for."""
        n_queries, share, a_row = self.visible.n_queries, self.share, self.groups // self.batch
        for start in range(0, n_queries, self.queries):
            stop = min(start + self.queries, n_queries)
            keys, added, blind = _seen(self.visible, start, stop, share)
            n_rows, n_keys = (stop - start) * share, keys.stop - keys.start
            step = max(1, AT_ONCE // (2 * n_rows * n_keys))
            for first in range(0, self.groups, step):
                last = min(first + step, self.groups)
                mine = [None if x is None else _of_groups(x, first, last, a_row) for x in (added, blind)]
                rows = slice(start * share, stop * share)
                yield _Block(slice(first, last), slice(2 * first, 2 * last), rows, keys, share, self.scale, *mine)


@dataclass(frozen=True)
class _Block:
    """Some rows of some groups, and the keys that they see."""

    groups: slice
    maps: slice
    rows: slice
    keys: slice
    share: int
    scale: float
    added: Tensor | None
    """float (group or 1, 1, query, share or 1, key): −inf for a hidden key, less ALiBi's penalty; of the last keys,
    where all before them are seen."""
    blind: Tensor | None
    """bool (group or 1, 1, query, 1, 1): True for a query that sees nothing."""

    def cut(self, room: Tensor, maps: int) -> Tensor:
        """Give a part of room as (group, map, row, key)."""
        shape = (self.groups.stop - self.groups.start, maps, self.rows.stop - self.rows.start)
        n_keys = self.keys.stop - self.keys.start
        return room[: math.prod(shape) * n_keys].view(*shape, n_keys)

    def difference(self, maps: Tensor, less_g1rs1: Tensor, out: Tensor) -> None:
        """Write the first map less its share of the second, (group, 1, row, key)."""
        less = less_g1rs1 if len(less_g1rs1) == 1 else less_g1rs1[self.groups]
        first, second, to = (self.by_pair(x) for x in (maps[:, :1], maps[:, 1:], out))
        torch.addcmul(first, second, -less, out=to)

    def by_pair(self, x: Tensor) -> Tensor:
        """(group, map, row, key) → (group, map, query, pair of the group, key)"""
        return x.view(*x.shape[:2], -1, self.share, x.shape[3])

    def softmax(self, q: Tensor, k: Tensor, scores: Tensor, maps: Tensor) -> None:
        """Write both maps, (group, map, row, key), by way of scores."""
        flat, keys = scores.flatten(0, 1), k[self.maps, self.keys].transpose(1, 2)
        torch.baddbmm(flat, q[self.maps, self.rows], keys, beta=0, alpha=self.scale, out=flat)
        if self.added is not None:
            self.by_pair(scores)[..., -self.added.shape[-1] :] += self.added
        torch.softmax(scores, -1, out=maps)
        if self.blind is not None:
            self.by_pair(maps).masked_fill_(self.blind, 0.0)


def _seen(visible: Visible, start: int, stop: int, share: int) -> tuple[slice, Tensor | None, Tensor | None]:
    """Give the keys that queries start to stop see, and what `_Block` adds and blinds: (batch or 1, group or 1, …)."""
    n_queries, slopes = stop - start, visible.slopes_h
    if visible.causal:
        part, keys = visible.block(start, stop)
        window_hides = part.window is not None and part.n_keys > part.window
        if part.masks_nothing and slopes is None and not window_hides:
            hidden = torch.ones(n_queries, n_queries, dtype=torch.bool, device=visible.device).triu(1)
            return keys, _as_added(hidden), None
        dense_bqk = part.dense[:, 0]
    else:
        assert slopes is None
        keys = slice(0, visible.n_keys)
        if visible.is_everything:
            return keys, None, None
        dense_bqk = visible.dense[:, 0, start:stop]
    blind = None
    if visible.real_bk is not None:
        # softmax of −inf alone is NaN: a row that sees nothing is left unmasked and zeroed after.
        sees_bq1 = dense_bqk.any(-1, keepdim=True)
        dense_bqk, blind = dense_bqk | ~sees_bq1, ~sees_bq1[:, None, None, :, None]
    added = _as_added(~dense_bqk)
    if slopes is not None:
        penalty_bpqk = replace(part, slopes_h=slopes[::2]).penalty_bhqk
        assert penalty_bpqk is not None
        added = (
            added + penalty_bpqk.view(penalty_bpqk.shape[0], -1, share, *added.shape[3::2]).transpose(2, 3)[:, :, None]
        )
    return keys, added, blind


def _as_added(hidden: Tensor) -> Tensor:
    """bool (…, query, key) → float (batch or 1, 1, 1, query, 1, key)"""
    n_queries, n_keys = hidden.shape[-2:]
    minus = torch.zeros(hidden.shape, device=hidden.device).masked_fill(hidden, -math.inf)
    return minus.view(-1, 1, 1, n_queries, 1, n_keys)


def _of_groups(x: Tensor, first: int, last: int, a_row: int) -> Tensor:
    """(batch or 1, group or 1, …) → (group or 1, …), of groups first to last, a_row of them in a row of the batch."""
    if x.shape[:2].numel() == 1:
        return x[0]
    groups = torch.arange(first, last, device=x.device)
    row, of_row = groups // a_row, groups % a_row
    return x[row if x.shape[0] > 1 else 0, of_row if x.shape[1] > 1 else 0]
