"""How much of each head's weight falls on the answer, and how much on what only distracts from it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from headstock.errors import UserError, near_name
from headstock.instruments.passes import look_at_weights, refuse_without_weights, visible_to, weights_are
from headstock.instruments.tables import cells, head_labels, layer_labels
from headstock.model.attention import wide
from headstock.model.transformer import Transformer
from headstock.pictures import numbers
from headstock.pictures.bars import bars
from headstock.pictures.grid import heat
from headstock.pictures.picture import Picture
from headstock.tasks.base import Marks

ELSEWHERE = "elsewhere"
"""What no span holds: questions, separators, the query's own token."""
ROWS_AT_A_TIME = 64
ONE = 1e-3
"""How far from 1 a sum of weights may be for rounding alone."""


@dataclass(frozen=True)
class AttentionMass:
    """Weight by span from one query a row, {span: (layer, head)} in float64, with what is "elsewhere" last."""

    shares: Mapping[str, Tensor]
    """A span's part of Σ|w| of the row, mean of the rows that weigh anything; over all spans they add up to 1. Not a
    number for a head that weighs nothing in any row. A row without the span counts 0."""
    sums: Mapping[str, Tensor]
    """Σw over a span, negative weights subtracting, mean of all rows; over all spans they add up to `total`, which is 1
    for weights that are probabilities."""
    uniform: Mapping[str, float]
    """What a uniform average over the keys that the query sees would put on each span."""
    empty: Tensor
    """(layer, head): part of the rows that weigh nothing, which no share counts."""
    rows: int
    weights_are: str
    """normalised, signed or unnormalised, as the mixer declares."""

    @property
    def total(self) -> Tensor:
        """Sum of a row's weights, mean of the rows, (layer, head)."""
        return torch.stack(list(self.sums.values())).sum(0)

    def by_span(self, what: str = "shares") -> dict[str, float]:
        """Give {span: mean over heads and layers}: of the shares, or with "sums" of the signed sums.

        Heads that weigh nothing have no share, and are left out of theirs. Raises UserError for anything else.
        """
        if what not in ("shares", "sums"):
            raise UserError(f"there is no mass by {what!r}: {near_name(what, ('shares', 'sums'))}")
        values: Mapping[str, Tensor] = getattr(self, what)
        return {span: float(value_lh.nanmean()) for span, value_lh in values.items()}

    def __repr__(self) -> str:
        written = ", ".join(f"{span} {numbers.small(share, 3)}" for span, share in self.by_span().items())
        return f"AttentionMass({written}; {self._sums_said()}; {numbers.count(self.rows, 'row')})"

    def draw(self, span: str | None = None) -> Picture:
        """Draw the shares by span as bars, beside those of a uniform average; with a span, its share in each head.

        Raises UserError for a span that there is not, and where no head weighs anything.
        """
        if span is not None and span not in self.shares:
            raise UserError(f"there is no span {span!r}: {near_name(span, self.shares)}")
        mean = self.by_span()
        if math.isnan(mean[ELSEWHERE]):
            raise UserError("no head weighs anything in any row, so there is no mass to draw: see `empty`.")
        caption = f"Means over {numbers.count(self.rows, 'row')}. {self._sums_said().capitalize()}."
        if span is None:
            first, *others = [f"{numbers.small(share, 2)} on {name}" for name, share in mean.items()]
            return bars(
                mean,
                unit="share of |weight|",
                title=f"Of a query's weight {', '.join([first, *others[:2]])}",
                beside=self.uniform,
                beside_is="a uniform average",
                caption=f"Averaged over heads and layers. {caption}",
                name="attention-mass",
            )
        share_lh = self.shares[span]
        low, high = (float(end) for end in (share_lh.nan_to_num(math.inf).min(), share_lh.nan_to_num(-1.0).max()))
        return heat(
            cells(share_lh),
            layer_labels(len(share_lh)),
            head_labels(share_lh.shape[1]),
            title=f"Share on {span} by head: {low:.2g} to {high:.2g}, {self.uniform[span]:.2g} in a uniform average",
            rows="layer",
            columns="head",
            unit="share of |weight|",
            missing="the head weighs nothing",
            caption=caption,
            name=f"attention-mass-{span.replace(' ', '-')}",
        )

    def _repr_html_(self) -> str | None:
        """Give the bars; None, with which a notebook shows the values as text, where there is nothing to draw."""
        return None if math.isnan(self.by_span()[ELSEWHERE]) else self.draw()._repr_html_()

    def _sums_said(self) -> str:
        """Say what a row's weights add up to, and where that is not 1 or some are negative, their sums by span."""
        low, high = float(self.total.min()), float(self.total.max())
        if max(abs(low - 1), abs(high - 1)) < ONE and self.weights_are != "signed":
            return "weights add up to 1"
        ends = f"{low:.3g} to {high:.3g}" if high - low > ONE else f"{low:.3g}"
        by_span = ", ".join(f"{span} {numbers.small(value, 2)}" for span, value in self.by_span("sums").items())
        return f"weights of a head add up to {ends.replace('-', '−')}, by span: {by_span}"


def attention_mass(
    model: Transformer,
    ids: Tensor | Marks,
    queries: Tensor | None = None,
    spans: Mapping[str, Tensor] | None = None,
    *,
    real: Tensor | None = None,
    documents: Tensor | None = None,
) -> AttentionMass:
    """Give how much weight each head puts on the answer and on what distracts, from the query of each row.

    ids: a task's `marks()`, or (row, time), with queries int (row,), the position whose prediction is the answer, and
    spans {name: bool (row, time)}, no position in two of them. real and documents: as `Transformer.forward` takes them.

    Source: Ye et al., "Differential Transformer" (2024), which compares normalised scores on answer and noise, averaged
    over heads and layers: `by_span()`. It does not say how negative weights were normalised: here a share is one of
    Σ|w|, so that what cancels still counts as looking, and the signed sums stand beside. Raises UserError where the
    mixer has no weights, and for queries and spans that do not fit ids.
    """
    refuse_without_weights(model)
    if isinstance(ids, Marks):
        if queries is not None or spans is not None:
            raise UserError("marks hold queries and spans already: give marks alone, or ids with queries and spans.")
        queries, spans, ids = ids.queries, ids.spans, ids.inputs.to(model.embed.weight.device)
    if queries is None or spans is None:
        raise UserError("ids were given without queries and spans: give both, or a task's marks().")
    visible_b1qk = visible_to(model, ids, real, documents).expand(len(ids), -1, -1, -1)
    span_sbk = _spans(ids, queries, spans).to(ids.device)
    at_b = queries.to(ids.device)
    parts = [
        _of_rows(model, ids[rows], at_b[rows], span_sbk[:, rows], _cut(real, rows), _cut(documents, rows))
        for rows in (slice(start, start + ROWS_AT_A_TIME) for start in range(0, len(ids), ROWS_AT_A_TIME))
    ]
    size_slbh, sum_slbh = (torch.cat(some, 2) for some in zip(*parts, strict=True))
    whole_lbh = size_slbh.sum(0)
    weighs_lbh = whole_lbh > 0
    share_slbh = size_slbh / whole_lbh.where(weighs_lbh, 1.0)
    share_slh = share_slbh.sum(2) / weighs_lbh.sum(1)  # 0 / 0 where a head weighs nothing in any row
    seen_bk = visible_b1qk[torch.arange(len(ids)), 0, at_b]
    even_s = ((span_sbk & seen_bk).sum(-1).double() / seen_bk.sum(-1).clamp(min=1)).mean(-1)
    names = [*spans, ELSEWHERE]
    return AttentionMass(
        shares=dict(zip(names, share_slh, strict=True)),
        sums=dict(zip(names, sum_slbh.mean(2), strict=True)),
        uniform=dict(zip(names, even_s.tolist(), strict=True)),
        empty=(~weighs_lbh).double().mean(1),
        rows=len(ids),
        weights_are=weights_are(model),
    )


def _of_rows(
    model: Transformer, ids: Tensor, at_b: Tensor, span_sbk: Tensor, real: Tensor | None, documents: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Give Σ|w| and Σw over each span, (span, layer, row, head) each, float64 on the host."""
    rows = torch.arange(len(ids), device=ids.device)
    found: list[tuple[Tensor, Tensor]] = []

    def at_weights(w_bhqk: Tensor, _: int) -> None:
        w_bhk = wide(w_bhqk[rows, :, at_b]).double()
        inside = span_sbk.double()
        found.append(
            (
                torch.einsum("bhk,sbk->sbh", w_bhk.abs(), inside).cpu(),
                torch.einsum("bhk,sbk->sbh", w_bhk, inside).cpu(),
            )
        )

    look_at_weights(model, ids, at_weights, real=real, documents=documents)
    sizes, sums = zip(*found, strict=True)
    return torch.stack(sizes, 1), torch.stack(sums, 1)


def _spans(ids: Tensor, queries: Tensor, spans: Mapping[str, Tensor]) -> Tensor:
    """Give the spans and what none of them holds, bool (span, row, time). Raises UserError where they do not fit."""
    for name, given in {"queries": queries, **spans}.items():
        if not isinstance(given, Tensor):
            raise UserError(f"{name} must be a tensor, not {type(given).__name__}: give torch.tensor(...).")
    if queries.shape != ids.shape[:1] or queries.dtype.is_floating_point or queries.dtype == torch.bool:
        raise UserError(
            f"queries are {queries.dtype} of shape {tuple(queries.shape)} for {len(ids)} rows of ids: give each row "
            f"the position of its question, a whole number."
        )
    if not bool(((queries >= 0) & (queries < ids.shape[1])).all()):
        raise UserError(f"a query lies outside its row: choose positions from 0 to {ids.shape[1] - 1}.")
    if not spans:
        raise UserError('no span was given: name at least one, such as {"answer": mask}.')
    if ELSEWHERE in spans:
        raise UserError(f"{ELSEWHERE!r} is what no span holds: give that span another name.")
    for name, span in spans.items():
        if span.shape != ids.shape or span.dtype != torch.bool:
            raise UserError(
                f"the span {name!r} is {span.dtype} of shape {tuple(span.shape)}, but ids are of shape "
                f"{tuple(ids.shape)}: give a bool for each token."
            )
    span_sbk = torch.stack([span.cpu() for span in spans.values()])
    if bool((span_sbk.sum(0) > 1).any()):
        raise UserError("a position is in two spans, and would be counted twice: give spans that do not overlap.")
    return torch.cat([span_sbk, ~span_sbk.any(0, keepdim=True)])


def _cut(x: Tensor | None, rows: slice) -> Tensor | None:
    return None if x is None else x[rows]
