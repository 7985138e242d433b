"""What a head does on one text, in a few numbers: of weights that the page has already, with no further pass.

`score_statistics` says more, of many texts.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class HeadSummary:
    """One head's weights over one text. Means are over the queries that have a token before them; NaN without any."""

    layer: int
    head: int
    effective_tokens: float
    """Mean of exp(entropy) of a row's |weights|, made to sum to 1: over how many keys a query spreads. Rows that weigh
    nothing are left out; not a number where all do."""
    sink: float
    """Mean weight on the text's first token: the attention sink (Xiao et al., 2023)."""
    previous: float
    """Mean weight on the token before the query."""
    negative: float
    """Mean of the summed sizes of a row's negative weights; 0 where weights have no sign."""
    largest: float
    """The weight largest by size, among those queries."""
    largest_query: int
    largest_key: int
    """Where it stands, counted from 0; both are −1 without such queries."""


def summaries(weights_hqk: Tensor, layer: int) -> list[HeadSummary]:
    """Sum up the heads of a layer from their weights (head, query, key) over one text."""
    return [_summary(map_qk.detach().float(), layer, head) for head, map_qk in enumerate(weights_hqk)]


def _summary(map_qk: Tensor, layer: int, head: int) -> HeadSummary:
    rows = map_qk[1:]  # a first token has nothing to choose from
    if not len(rows):
        return HeadSummary(layer, head, math.nan, math.nan, math.nan, math.nan, math.nan, -1, -1)
    size = rows.abs()
    total = size.sum(-1)
    share = size / total[:, None]
    spread = torch.special.entr(share).sum(-1).exp()[total != 0]  # NaN stays
    place = int(size.argmax())
    query, key = divmod(place, rows.shape[1])
    return HeadSummary(
        layer,
        head,
        effective_tokens=float(spread.mean()) if len(spread) else math.nan,
        sink=float(rows[:, 0].mean()),
        previous=float(map_qk.diagonal(-1).mean()),
        negative=float(rows.clamp(max=0).sum(-1).abs().mean()),
        largest=float(rows[query, key]),
        largest_query=query + 1,
        largest_key=key,
    )
