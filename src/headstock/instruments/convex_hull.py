"""Whether a head gives what no average of its values could be: outputs outside their convex hull."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from headstock.errors import UserError, near_name
from headstock.instruments.nearest_average import distance_to_averages, part_beyond_combinations
from headstock.instruments.passes import refuse_overflow, visible_to
from headstock.instruments.tables import cells, head_labels, layer_labels
from headstock.instruments.weights_and_values import look_at_averages
from headstock.model.attention import wide
from headstock.model.transformer import Transformer
from headstock.pictures.grid import heat
from headstock.pictures.picture import Picture

TOLERANCE = 1e-4
"""In units of the values' radius; float32 leaves a hundredth of it."""
ROUNDING = 1e-6
"""Of the largest visible value: nearer values are the same, and no output is outside by less."""
AT_ONCE = 2**22
"""Numbers compared at once in the test by coordinates."""
_SAID = {
    "outside": "part of outputs outside their values' convex hull",
    "certain": "part of outputs beyond every value in some coordinate",
    "distance": "distance to the hull, in radii of the values",
    "beyond_scaling": "part of outputs that no weights ≥ 0 of any sum give",
}


@dataclass(frozen=True)
class Hull:
    """Whether Σ w v of each head is an average of the values that its query sees; float64 (layer, head).

    Of Σ w v as it is, before a head's norm. Queries that see two keys or more count.
    """

    certain: Tensor
    """Part of all counted queries whose output lies, in some coordinate, beyond the largest or smallest visible value:
    surely outside, and a lower bound."""
    outside: Tensor
    """Part of the tested queries whose output is outside the convex hull of the visible values: no weights ≥ 0 that sum
    to 1 give it."""
    distance: Tensor
    """From the nearest point of the hull, in radii (the largest distance of a visible value from their mean; where all
    are the same, as those of a token that comes twice, their length); mean of the tested queries, 0 where inside."""
    beyond_scaling: Tensor
    """Part of the tested queries whose output is no Σ u v with u ≥ 0 of any sum. Such are not outside for their row's
    sum alone: a norm that follows cannot bring them back."""
    few_keys: float
    """Part of the tested queries that see no more keys than a value has coordinates, and one. There weights follow from
    the output where values are in general position, so that any weight below zero puts it outside."""
    queries: int
    """Counted."""
    tested: int
    """Of them tested exactly, the same for every head."""
    tolerance: float
    """In radii: what is nearer counts as inside, as does what is nearer than rounding leaves."""

    def draw(self, what: str = "outside") -> Picture:
        """Draw outside, certain, distance or beyond_scaling, layers down and heads across.

        Raises UserError for anything else, and where no query counts.
        """
        if what not in _SAID:
            raise UserError(f"a hull has no {what!r}: {near_name(what, _SAID)}")
        if not self.queries:
            raise UserError("no query sees two keys or more, so there is nothing to draw: give a longer text.")
        values: Tensor = getattr(self, what)
        low, high = float(values.min()), float(values.max())
        ends = f"{low:.3g} to {high:.3g}" if high > low else f"{low:.3g}"
        measured = "All" if what == "certain" else f"{self.tested:,} of"
        return heat(
            cells(values),
            layer_labels(len(values)),
            head_labels(values.shape[1]),
            title=f"{_SAID[what].capitalize()}: {ends}",
            rows="layer",
            columns="head",
            unit=_SAID[what],
            caption=f"{measured} {self.queries:,} queries that see two keys or more.",
            name=f"hull-{what.replace('_', '-')}",
        )

    def _repr_html_(self) -> str | None:
        """Give the picture; None, with which a notebook shows the values as text, where no query counts."""
        return self.draw()._repr_html_() if self.queries else None


def hull(
    model: Transformer,
    ids: Tensor,
    *,
    most: int = 64,
    tolerance: float = TOLERANCE,
    real: Tensor | None = None,
    documents: Tensor | None = None,
) -> Hull:
    """Give whether what heads give leaves the convex hull of the values that they average.

    ids: (batch, time). most: of how many queries a head the exact test is made, chosen evenly among those that count;
    it takes a millisecond or so each, more with many keys, and is passed over where the weights themselves are ≥ 0 and
    sum to 1. The test by coordinates is made of all. real and documents: as `Transformer.forward` takes them. A mixer
    whose rows sum to 1 and hold no weight below zero stays inside; whether a difference of two maps (Ye et al.,
    "Differential Transformer", 2024) leaves it, its readers asked.

    Raises UserError where the mixer has no weights or shows no values, where averages are NaN or infinite, and for
    fewer than one query.
    """
    if most < 1:
        raise UserError(f"most={most} tests nothing: choose 1 query or more.")
    visible = visible_to(model, ids, real, documents).expand(len(ids), -1, -1, -1)[:, 0].cpu()
    counted = (visible.sum(-1) >= 2).nonzero()
    place = torch.linspace(0, max(0, len(counted) - 1), min(most, len(counted))).round().long()
    measured = _Measured(visible, counted, counted[place], tolerance)
    look_at_averages(model, ids, measured.average, real=real, documents=documents)
    return Hull(
        **{name: torch.stack(layers) for name, layers in measured.found.items()},
        few_keys=measured.few_keys,
        queries=len(counted),
        tested=len(place),
        tolerance=tolerance,
    )


@dataclass
class _Measured:
    visible_bqk: Tensor
    counted: Tensor
    """(query, 2): row and position."""
    tested: Tensor
    tolerance: float
    few_keys: float = float("nan")
    found: dict[str, list[Tensor]] = field(default_factory=dict)

    def average(self, w_bhqk: Tensor, v_bhkd: Tensor, layer: int) -> None:
        w, v = wide(w_bhqk).double().cpu(), wide(v_bhkd).double().cpu()
        z = w @ v
        refuse_overflow(z, f"the averages of layer {layer}")
        seen = self.visible_bqk[self.tested[:, 0], self.tested[:, 1]].sum(-1)
        self.few_keys = float((seen <= v.shape[-1] + 1).double().mean())
        exact = torch.tensor([self._tested(w[:, head], v[:, head], z[:, head]) for head in range(w.shape[1])])
        outside, distance, beyond = exact.double().view(w.shape[1], -1, 3).mean(1).unbind(1)
        certain = torch.stack([self._certain(v[:, head], z[:, head]) for head in range(w.shape[1])])
        for name, value in (
            ("certain", certain),
            ("outside", outside),
            ("distance", distance),
            ("beyond_scaling", beyond),
        ):
            self.found.setdefault(name, []).append(value)

    def _certain(self, v_bkd: Tensor, z_bqd: Tensor) -> Tensor:
        """Give the part of all counted queries that lie beyond their values in some coordinate."""
        beyond = 0
        for rows in torch.split(self.counted, max(1, AT_ONCE // v_bkd[0].numel())):
            row, query = rows.unbind(1)
            hidden_nk1, v_nkd, z_nd = ~self.visible_bqk[row, query][..., None], v_bkd[row], z_bqd[row, query]
            low = v_nkd.masked_fill(hidden_nk1, torch.inf).amin(1)
            high = v_nkd.masked_fill(hidden_nk1, -torch.inf).amax(1)
            mean_nd = v_nkd.masked_fill(hidden_nk1, 0.0).sum(1) / (~hidden_nk1).sum(1)
            radius_n = (v_nkd - mean_nd[:, None]).norm(dim=-1).masked_fill(hidden_nk1[..., 0], 0.0).amax(1)
            length_n = v_nkd.norm(dim=-1).masked_fill(hidden_nk1[..., 0], 0.0).amax(1)
            unit_n = radius_n.where(radius_n > ROUNDING * length_n, length_n)
            allowed_n1 = torch.maximum(self.tolerance * unit_n, ROUNDING * length_n)[:, None]
            beyond += int(((z_nd < low - allowed_n1) | (z_nd > high + allowed_n1)).any(-1).sum())
        return torch.tensor(beyond / len(self.counted) if len(self.counted) else torch.nan, dtype=torch.float64)

    def _tested(self, w_bqk: Tensor, v_bkd: Tensor, z_bqd: Tensor) -> list[tuple[float, float, float]]:
        """Give of each tested query whether it is outside, how far in radii, and whether no scaling helps."""
        found = []
        for row, query in self.tested.tolist():
            seen = self.visible_bqk[row, query]
            weights, values, point = w_bqk[row, query, seen], v_bkd[row, seen].numpy(), z_bqd[row, query].numpy()
            if bool((weights >= 0).all()) and abs(float(weights.sum()) - 1) < self.tolerance / 100:
                found.append((0.0, 0.0, 0.0))  # the weights are its proof
                continue
            radius = float(np.linalg.norm(values - values.mean(0), axis=1).max())
            length = float(np.linalg.norm(values, axis=1).max())
            unit = (radius if radius > ROUNDING * length else length) or 1.0
            distance = distance_to_averages(point, values) / unit
            inside = distance * unit <= max(self.tolerance * unit, ROUNDING * length)
            found.append(
                (
                    float(not inside),
                    0.0 if inside else distance,
                    float(bool((weights < 0).any()) and part_beyond_combinations(point, values) > self.tolerance),
                )
            )
        return found
