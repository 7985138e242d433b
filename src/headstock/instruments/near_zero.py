"""Whether weights are really near zero, and how much of them lies below it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.passes import PATTERN, Look, lists, look_at_weights, visible_to
from headstock.instruments.tables import cells, head_labels, layer_labels
from headstock.model.attention import wide
from headstock.model.transformer import Transformer
from headstock.pictures.grid import heat
from headstock.pictures.lines import lines
from headstock.pictures.numbers import small
from headstock.pictures.picture import Picture

EPSILONS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
JUST = 1 - 1e-6
"""A weight of just ε of its row's sum is not below it, whichever way rounding took it."""


@dataclass(frozen=True)
class MapSizes:
    """How small the weights of one map a head are, float64, over the rows counted.

    Counted are queries that see two keys or more and weigh anything. Parts are of all their visible weights.
    """

    near_zero: Tensor
    """(ε, layer, head): part of the weights with |w| < ε Σ|w|, the sum being over the query's row."""
    zero: Tensor
    """(layer, head): part of the weights that are exactly 0."""
    below_zero: Tensor
    """(layer, head): part of the weights that are negative."""
    negative_mass: Tensor
    """(layer, head): Σ|w| of negative weights over Σ|w|, mean of the rows."""


@dataclass(frozen=True)
class NearZero(MapSizes):
    """How small the weights of each head are, with those of both maps of a differential pair beside them."""

    epsilons: tuple[float, ...]
    first: MapSizes | None
    """Of the first map of each differential pair; None for every other mixer."""
    second: MapSizes | None
    """Of the map that is subtracted."""
    uniform: Tensor
    """(ε,): what near_zero would be of a uniform average over the same keys: those of rows of more than 1/ε keys."""
    rows: int
    """Queries that see two keys or more."""

    def __repr__(self) -> str:
        layers, heads = self.zero.shape
        return f"NearZero({layers} layers × {heads} heads, {self.rows} rows, ε {', '.join(map(str, self.epsilons))})"

    def draw(self, epsilon: float | None = None) -> Picture:
        """Draw the part of weights near zero against ε, all layers and heads together; of one ε, every head.

        Raises UserError for an ε that was not measured.
        """
        if epsilon is not None:
            return self._drawn_heads(epsilon)
        order = sorted(range(len(self.epsilons)), key=lambda place: self.epsilons[place])
        xs = [self.epsilons[place] for place in order]
        maps = {"weights": self, "first maps": self.first, "second maps": self.second}
        series = {said: (xs, one.near_zero[order].nanmean((1, 2)).tolist()) for said, one in maps.items() if one}
        series["a uniform average"] = (xs, self.uniform[order].tolist())
        middle = len(xs) // 2
        return lines(
            series,
            x="ε",
            y="part of weights with |w| < ε Σ|w|",
            title=f"{series['weights'][1][middle]:.3g} of weights are below {small(xs[middle])} of their row's sum",
            log_x=True,
            caption=f"Over {self.rows} queries that see two keys or more; mean of layers and heads.",
            name="near-zero",
        )

    def _drawn_heads(self, epsilon: float) -> Picture:
        if epsilon not in self.epsilons:
            raise UserError(f"ε={epsilon} was not measured: choose of {', '.join(map(str, self.epsilons))}.")
        place = self.epsilons.index(epsilon)
        return heat(
            cells(self.near_zero[place]),
            layer_labels(self.zero.shape[0]),
            head_labels(self.zero.shape[1]),
            title=f"Part of weights below {small(epsilon)} of their row's sum, {float(self.uniform[place]):.2g} in a "
            f"uniform average",
            rows="layer",
            columns="head",
            unit="part of weights",
            name=f"near-zero-{epsilon}",
        )

    def _repr_html_(self) -> str | None:
        """Give the picture; None, with which a notebook shows the values as text, where no row counts."""
        return self.draw()._repr_html_() if bool(self.near_zero.isfinite().any()) else None


def near_zero_weights(
    model: Transformer,
    ids: Tensor,
    epsilons: float | Sequence[float] = EPSILONS,
    *,
    real: Tensor | None = None,
    documents: Tensor | None = None,
) -> NearZero:
    """Give which part of each head's weights is near zero, for several ε, and which part is negative.

    ids: (batch, time). real and documents: as `Transformer.forward` takes them. Hidden keys do not count. That the
    difference of two maps is sparse is said of Ye et al., "Differential Transformer" (2024); a softmax is beside it in
    `first`, and a uniform average, most of whose weights are small too where rows are long, in `uniform`.

    Raises UserError where the mixer has no weights, for ids without a token, and for ε that are not between 0 and 1.
    """
    asked: tuple[Any, ...] = tuple(epsilons) if isinstance(epsilons, Iterable) else (epsilons,)
    if not asked or not all(isinstance(epsilon, Real) and 0 < float(epsilon) < 1 for epsilon in asked):
        raise UserError(f"ε of {asked} is no part of a row's sum: give numbers between 0 and 1, such as {EPSILONS}.")
    visible = visible_to(model, ids, real, documents)
    found: dict[str, list[dict[str, Tensor]]] = {which: [] for which in ("", "_1", "_2")}

    def of(which: str) -> Look:
        def seen(w_bhqk: Tensor, _: int) -> None:
            found[which].append(_sizes(w_bhqk, visible.expand(len(ids), -1, -1, -1), asked))

        return seen

    at = {PATTERN + which: of(which) for which in ("_1", "_2") if lists(model, PATTERN + which)}
    look_at_weights(model, ids, of(""), at, real=real, documents=documents)
    stacked = {
        which: {name: torch.stack([layer[name] for layer in layers], dim=-2) for name in layers[0]}
        for which, layers in found.items()
        if layers
    }
    first, second = (MapSizes(**stacked[which]) if which in stacked else None for which in ("_1", "_2"))
    seen_n = visible.expand(len(ids), -1, -1, -1).sum(-1)
    seen_n = seen_n[seen_n >= 2].double().cpu()
    small_n = torch.stack([(seen_n * (1 / seen_n < epsilon * JUST)).sum() for epsilon in asked])
    return NearZero(
        **stacked[""],
        epsilons=asked,
        first=first,
        second=second,
        uniform=small_n / seen_n.sum() if len(seen_n) else torch.full_like(small_n, math.nan),
        rows=len(seen_n),
    )


def _sizes(w_bhqk: Tensor, visible_b1qk: Tensor, epsilons: Sequence[float]) -> dict[str, Tensor]:
    """Give each part, (ε, head) or (head,), of one layer."""
    w = wide(w_bhqk)
    size = w.abs()
    total_bhq1 = size.sum(-1, keepdim=True)
    counted_bhq = (visible_b1qk.sum(-1) >= 2) & (total_bhq1[..., 0] > 0)
    counted_bhqk = visible_b1qk & counted_bhq[..., None]
    weights_h = counted_bhqk.sum((0, 2, 3)).double()

    def part(such_bhqk: Tensor) -> Tensor:
        return ((such_bhqk & counted_bhqk).sum((0, 2, 3)) / weights_h).cpu()

    negative_bhq = -w.clamp(max=0).sum(-1) / total_bhq1[..., 0].where(counted_bhq, 1.0)
    mass_h = negative_bhq.double().masked_fill(~counted_bhq, 0.0).sum((0, 2)) / counted_bhq.sum((0, 2))
    return {
        "near_zero": torch.stack([part(size < epsilon * JUST * total_bhq1) for epsilon in epsilons]),
        "zero": part(w == 0),
        "below_zero": part(w < 0),
        "negative_mass": mass_h.cpu(),
    }
