"""The difference of two softmax maps, averaged block by block of queries without either map ever being stored.

No fused kernel subtracts maps: asked for both averages it reads every value twice. Here the two maps of a block are
subtracted first, so that the values are read once; they are computed anew in the backward pass. For version 1 that is
as many products as softmax has, where a fused call would want queries and keys padded to the width of the values; for
version 2, with twice the queries, 11 for softmax's 7, where a fused call has 14.

Letters: g a group of pairs that share keys and values, in one row of the batch; m one of a pair's two maps; r a query
of one of the group's pairs, time before pair, so that a block of queries is a block of rows. Where the two maps of a
pair have keys of their own, each map has rows of its own; where they read the same keys, their rows are one matrix:
query before map before pair.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from headstock.errors import UserError
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
    key, width). With k (batch, group, key, d) both maps of a pair read the same keys. Pair i reads group
    i // (pairs / groups). less is a scalar, (pair,), or (batch, pair, query). All are of one dtype, float32 or wider.
    Memory grows linearly with the keys, backwards too. ALiBi, one slope a pair, needs causal attention.
    Raises UserError where a gradient is to be differentiated again, which the walk cannot be.
    """
    return _Differencing.apply(q_bhqd, k_bhkd, v_bhkd, less, visible)  # type: ignore[no-any-return, no-untyped-call]


class _Differencing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q_bhqd: Tensor, k_bhkd: Tensor, v_bhkd: Tensor, less: Tensor, visible: Visible) -> Tensor:
        layout = ctx.layout = _Layout.of(q_bhqd, k_bhkd, v_bhkd, visible)
        q, k, v = layout.rows(q_bhqd, maps=2), k_bhkd.flatten(0, 1), v_bhkd.flatten(0, 1)
        z = v.new_empty(layout.groups, layout.share * visible.n_queries, v.shape[2])
        scores_room, maps_room = (q.new_empty(layout.room) for _ in range(2))
        less_g1qs1 = layout.of_pairs(less)
        kept: list[Tensor] = []
        for block in layout.blocks():
            scores, maps = block.both(scores_room), block.both(maps_room)
            if layout.is_one_block:  # a block of queries is a small matter: better kept than computed anew
                maps = torch.empty_like(scores)
                kept.append(maps)
            block.softmax(q, k, scores, maps)
            difference = block.one(scores_room)
            block.difference(maps, less_g1qs1, difference)
            torch.bmm(difference, v[block.groups, block.keys], out=z[block.groups, block.rows])
        ctx.save_for_backward(q, k, v, less, *kept)
        return layout.heads(z, maps=1)

    @staticmethod
    def backward(ctx: Any, dz_bhqd: Tensor) -> tuple[Tensor | None, ...]:
        """Softmax backwards, map by map: ds = p ∘ (dp − Σ p ∘ dp), where dp₁ = dz·v and dp₂ = −less · dp₁."""
        if (
            torch.is_grad_enabled()
        ):  # as create_graph sets it; torch's own once_differentiable says it to .backward() alone
            raise UserError(
                "maps subtracted block by block have no second derivative: leave create_graph out, or set "
                "model.plain = True."
            )
        layout: _Layout = ctx.layout
        q, k, v, less, *kept = ctx.saved_tensors
        dz = layout.rows(dz_bhqd, maps=1)
        dq, dk, dv, dless = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v), less.new_zeros(less.shape)
        less_g1qs1 = layout.of_pairs(less)
        # The factor of dp₂ is left out of ds₂ and put on what ds₂ is multiplied with: rows of d, not rows of keys.
        factor_gmqs1 = torch.cat([torch.ones_like(less_g1qs1), -less_g1qs1], dim=1)
        q_times = torch.empty_like(q)
        torch.mul(layout.by_map(q), factor_gmqs1, out=layout.by_map(q_times))
        scores_room, maps_room, one_room = (q.new_empty(size) for size in (layout.room, layout.room, layout.room // 2))
        for block in layout.blocks():
            groups, pairs, rows, keys = block.groups, block.maps, block.rows, block.keys
            scores, one = block.both(scores_room), block.one(one_room)
            if kept:
                maps = kept.pop(0)
            else:
                maps = block.both(maps_room)
                block.softmax(q, k, scores, maps)
            block.difference(maps, less_g1qs1, one)
            dv[groups, keys].baddbmm_(one.transpose(1, 2), dz[groups, rows])
            torch.bmm(dz[groups, rows], v[groups, keys].transpose(1, 2), out=one)  # dp₁
            p_gmqsk, dp_gmqsk = block.by_map(maps), block.by_map(scores)
            torch.mul(p_gmqsk, block.of_one(one), out=dp_gmqsk)
            total_gmqs1 = dp_gmqsk.sum(-1, keepdim=True)
            layout.take_from_less(dless, block, total_gmqs1[:, 1])
            dp_gmqsk.addcmul_(p_gmqsk, total_gmqs1, value=-1)
            torch.bmm(scores, k[pairs, keys], out=dq[pairs, block.rows_of_maps])
            dk[pairs, keys].baddbmm_(scores.transpose(1, 2), q_times[pairs, block.rows_of_maps], alpha=layout.scale)
        layout.by_map(dq).mul_(factor_gmqs1 * layout.scale)
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
    own_keys: bool
    """Whether each map of a pair has keys of its own."""
    scale: float
    may_be_odd: bool
    """Whether there may be scores that are no finite numbers."""

    @classmethod
    def of(cls, q_bhqd: Tensor, k_bhkd: Tensor, v_bhkd: Tensor, visible: Visible) -> "_Layout":
        batch, heads, _, width = q_bhqd.shape
        groups = v_bhkd.shape[1]
        own_keys = k_bhkd.shape[1] == 2 * groups
        most = float(torch.linalg.vector_norm(q_bhqd)) * float(torch.linalg.vector_norm(k_bhkd))  # no score is larger
        is_odd = not most < torch.finfo(q_bhqd.dtype).max
        return cls(visible, batch, batch * groups, heads // 2 // groups, own_keys, 1 / math.sqrt(width), is_odd)

    def rows(self, x_bhqd: Tensor, maps: int) -> Tensor:
        """(batch, head, query, d) → (group·map, row, d), or (group, row, d) where maps share their keys"""
        split_bgsmqd = x_bhqd.reshape(self.batch, -1, self.share, maps, *x_bhqd.shape[2:])
        if self.own_keys:
            return split_bgsmqd.permute(0, 1, 3, 4, 2, 5).reshape(self.groups * maps, -1, x_bhqd.shape[3])
        return split_bgsmqd.permute(0, 1, 4, 3, 2, 5).reshape(self.groups, -1, x_bhqd.shape[3])

    def heads(self, x: Tensor, maps: int) -> Tensor:
        """Undo `rows`."""
        width = x.shape[2]
        if self.own_keys:
            split_bgmqsd = x.view(self.batch, -1, maps, self.visible.n_queries, self.share, width)
            return split_bgmqsd.permute(0, 1, 4, 2, 3, 5).flatten(1, 3)
        split_bgqmsd = x.view(self.batch, -1, self.visible.n_queries, maps, self.share, width)
        return split_bgqmsd.permute(0, 1, 4, 3, 2, 5).flatten(1, 3)

    def by_map(self, x: Tensor) -> Tensor:
        """Both maps' rows → (group, map, query, pair of the group, width), a view"""
        if self.own_keys:
            return x.view(-1, 2, x.shape[1] // self.share, self.share, x.shape[2])
        return x.view(x.shape[0], -1, 2, self.share, x.shape[2]).transpose(1, 2)

    def of_pairs(self, less: Tensor) -> Tensor:
        """(pair,) → (group, 1, 1, pair of the group, 1), with queries where there are any; of a scalar all are 1."""
        if not less.ndim:
            return less.view(1, 1, 1, 1, 1)
        if less.ndim == 1:
            return less.view(-1, 1, 1, self.share, 1).repeat(self.batch, 1, 1, 1, 1)
        return less.reshape(self.groups, self.share, -1).transpose(1, 2)[:, None, :, :, None]

    def take_from_less(self, sums: Tensor, block: "_Block", x_gqs1: Tensor) -> None:
        """Take what a block has in each row from the gradient of what the maps are multiplied with."""
        if not sums.ndim:
            sums -= x_gqs1.sum()
        elif sums.ndim == 1:
            groups = torch.arange(block.groups.start, block.groups.stop, device=sums.device)
            of_pairs = x_gqs1.sum((1, 3))
            sums.view(-1, self.share).index_add_(0, groups % (self.groups // self.batch), of_pairs, alpha=-1)
        else:
            sums.view(self.groups, self.share, -1)[block.groups, :, block.queries] -= x_gqs1[..., 0].transpose(1, 2)

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
                yield _Block(self, slice(first, last), slice(start, stop), keys, *mine)


@dataclass(frozen=True)
class _Block:
    """Some queries of some groups, and the keys that they see."""

    layout: _Layout
    groups: slice
    queries: slice
    keys: slice
    added: Tensor | None
    """float (group or 1, 1, query, share or 1, key): −inf for a hidden key, less ALiBi's penalty; of the last keys,
    where all before them are seen."""
    blind: Tensor | None
    """bool (group or 1, 1, query, 1, 1): True for a query that sees nothing."""

    @cached_property
    def maps(self) -> slice:
        """Where the block's groups stand among the rows of both maps."""
        each = 2 if self.layout.own_keys else 1
        return slice(each * self.groups.start, each * self.groups.stop)

    @cached_property
    def rows(self) -> slice:
        """The rows of its queries where each pair has one map."""
        return slice(self.queries.start * self.layout.share, self.queries.stop * self.layout.share)

    @cached_property
    def rows_of_maps(self) -> slice:
        """The rows of its queries where each pair has two."""
        each = 1 if self.layout.own_keys else 2
        return slice(each * self.rows.start, each * self.rows.stop)

    def one(self, room: Tensor) -> Tensor:
        """Give a part of room as a map a pair, (group, row, key)."""
        return self._cut(room, self.groups, self.rows)

    def both(self, room: Tensor) -> Tensor:
        """Give a part of room as both, (group·map, row, key), or (group, row, key) where maps share their keys."""
        return self._cut(room, self.maps, self.rows_of_maps)

    def _cut(self, room: Tensor, groups: slice, rows: slice) -> Tensor:
        shape = [part.stop - part.start for part in (groups, rows, self.keys)]
        return room[: math.prod(shape)].view(shape)

    def by_map(self, x: Tensor) -> Tensor:
        """What `both` gives → (group, map, query, pair of the group, key), a view"""
        return self.layout.by_map(x)

    def of_one(self, x: Tensor) -> Tensor:
        """What `one` gives → (group, 1, query, pair of the group, key), a view"""
        return x.view(x.shape[0], 1, -1, self.layout.share, x.shape[2])

    def difference(self, maps: Tensor, less_g1qs1: Tensor, out: Tensor) -> None:
        """Write the first map less its share of the second."""
        less = less_g1qs1 if len(less_g1qs1) == 1 else less_g1qs1[self.groups]
        less = less if less.shape[2] == 1 else less[:, :, self.queries]
        maps_gmqsk = self.by_map(maps)
        torch.addcmul(maps_gmqsk[:, :1], maps_gmqsk[:, 1:], -less, out=self.of_one(out))

    def softmax(self, q: Tensor, k: Tensor, scores: Tensor, maps: Tensor) -> None:
        """Write both maps by way of scores."""
        keys = k[self.maps, self.keys].transpose(1, 2)
        torch.baddbmm(scores, q[self.maps, self.rows_of_maps], keys, beta=0, alpha=self.layout.scale, out=scores)
        if self.added is not None:
            last = self.by_map(scores)[..., -self.added.shape[-1] :]
            last += self.added
            if self.layout.may_be_odd:  # less infinity they are still no number, and would be seen
                last.masked_fill_(self.added == -math.inf, -math.inf)
        torch.softmax(scores, -1, out=maps)
        if self.blind is not None:
            self.by_map(maps).masked_fill_(self.blind, 0.0)


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
