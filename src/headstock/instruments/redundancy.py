"""How alike the heads of a layer are: where they look, and what they give."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.passes import PATTERN, Look, lists, look, look_at_weights, visible_to, weights_are
from headstock.instruments.tables import cells, head_labels
from headstock.model.transformer import Transformer
from headstock.pictures.grid import heat
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture

_MAPS = ("attn.hook_pattern_1", "attn.hook_pattern_2")
_Z = "attn.hook_z"
ROUNDING = 1e-5
"""What varies by less than this part of itself, a map or what a head gives, is the same throughout but for rounding."""


@dataclass(frozen=True)
class Redundancy:
    """Likeness of the heads of each layer to each other, 1 for the same; means over queries that see several keys."""

    cosine: Tensor | None
    """float64 (layer, head, head): cosine of the weights of a query; below 0 only where weights are signed. None for
    a mixer without weights."""
    overlap: Tensor | None
    """float64 (layer, head, head): 1 less the Jensen-Shannon distance (the root of the divergence in bits) of the
    weights of a query, 0 for heads that look at different keys. None where weights are no shares that sum to 1."""
    outputs: Tensor
    """float64 (layer, head, head): linear CKA of what heads give (Kornblith et al., 2019), 0 to 1: whether they tell
    the same tokens apart. Over few tokens, not many times as many as a head is wide, unlike heads look alike. Not a
    number for a head that gives all tokens the same but for rounding."""
    map_cosine: Tensor | None
    """float64 (layer, pair): cosine of the two maps that a differential head subtracts; None for other mixers."""
    map_overlap: Tensor | None
    """float64 (layer, pair): 1 less the Jensen-Shannon distance of these maps."""
    map_correlation: Tensor | None
    """float64 (layer, pair): Pearson's correlation of these maps over the keys that a query sees, mean of the queries
    that see three or more and where neither map is uniform. All maps are positive, so that those which have nothing in
    common have a cosine above 0, but no correlation."""
    tokens: int
    """How many tokens outputs are compared over."""

    def of(self, what: str) -> Tensor:
        """Give cosine, overlap or outputs. Raises UserError for what this mixer does not have."""
        if what not in ("cosine", "overlap", "outputs"):
            raise UserError(f"heads are not compared by {what!r}: choose cosine, overlap or outputs.")
        found = getattr(self, what)
        if found is None:
            raise UserError(f"the mixer's weights are no shares that have an {what}: choose cosine or outputs.")
        return found  # type: ignore[no-any-return]

    def by_layer(self, what: str = "outputs") -> Tensor:
        """float64 (layer,): the mean over all pairs of different heads that vary; not a number without any."""
        found = self.of(what)
        n_heads = found.shape[1]
        different = ~torch.eye(n_heads, dtype=torch.bool)
        return found[:, different].nanmean(1)

    def draw(self, layer: int | None = None, what: str | None = None) -> Picture:
        """Draw the mean likeness by layer, or every two heads of one layer, by outputs or as said.

        Raises UserError for a layer or a likeness that there is not.
        """
        if layer is not None:
            return self._drawn_layer(layer, what or ("outputs" if self.cosine is None else "cosine"))
        shown = self._by_depth(what)
        if not shown:
            raise UserError("a layer has one head, which is like no other: there is nothing to draw.")
        return lines(
            shown,
            x="layer",
            y="likeness",
            title="How alike the heads of a layer are",
            caption="Mean over all pairs of different heads; 1 is the same.",
            name="head-redundancy",
        )

    def _by_depth(self, what: str | None = None) -> dict[str, tuple[list[int], list[float]]]:
        """Give the means that there are, by what is compared, or of what is asked for alone."""
        whole = {"cosine of weights": self.cosine, "overlap of weights": self.overlap, "outputs (CKA)": self.outputs}
        alike = {name: self.by_layer(_SHORT[name]) for name, found in whole.items() if found is not None}
        pairs = {
            "two maps: cosine": self.map_cosine,
            "two maps: overlap": self.map_overlap,
            "two maps: correlation": self.map_correlation,
        }
        alike |= {name: found.nanmean(1) for name, found in pairs.items() if found is not None}
        if what is not None:
            alike = {what: self.by_layer(what)}
        depths = list(range(len(self.outputs)))
        return {name: (depths, means.tolist()) for name, means in alike.items() if bool(means.isfinite().any())}

    def _drawn_layer(self, layer: int, what: str) -> Picture:
        found = self.of(what)
        if not -len(found) <= layer < len(found):
            raise UserError(f"there is no layer {layer}: choose from 0 to {len(found) - 1}.")
        layer %= len(found)
        labels = head_labels(found.shape[1])
        return heat(
            cells(found[layer]),
            labels,
            labels,
            title=f"How alike the heads of layer {layer} are",
            rows="head",
            columns="head",
            unit=f"{what}, 1 for the same",
            name=f"head-redundancy-{layer}",
        )

    def _repr_html_(self) -> str | None:
        """Give the picture; None, with which a notebook shows the values as text, where there is nothing to draw."""
        return self.draw()._repr_html_() if self._by_depth() else None


_SHORT = {"cosine of weights": "cosine", "overlap of weights": "overlap", "outputs (CKA)": "outputs"}


def head_redundancy(
    model: Transformer, ids: Tensor, *, real: Tensor | None = None, documents: Tensor | None = None
) -> Redundancy:
    """Give how alike the heads of each layer are while reading ids, (batch, time): by weights and by outputs.

    Queries that see a single key are left out of the means over weights: there all heads agree. Of a differential
    mixer the two maps of each head are compared too: a head whose maps have learnt the same subtracts all it has.
    Likeness of weights as in Clark et al., "What Does BERT Look At?" (2019), who use the Jensen-Shannon divergence.
    real and documents as `Transformer.forward` takes them. Nothing but sums is kept.

    Raises UserError for a mixer that shows neither weights nor outputs of heads.
    """
    device = model.embed.weight.device
    ids = ids.to(device)
    real, documents = (None if x is None else x.to(device) for x in (real, documents))
    visible = visible_to(model, ids, real, documents).expand(len(ids), -1, -1, -1)[:, 0]
    if not lists(model, _Z):
        raise UserError(f"{model.config.mixer} does not show its heads' outputs, attn.hook_z, so none are compared.")
    compared = _Compared(visible, visible.sum(-1) > 1, visible.any(-1), shares=weights_are(model) == "normalised")
    at: dict[str, Look] = {_Z: compared.outputs_of}
    if lists(model, PATTERN):
        at[PATTERN] = compared.weights_of
    if all(lists(model, name) for name in _MAPS):
        at |= {_MAPS[0]: compared.first_map, _MAPS[1]: compared.second_map}
    look(model, ids, at, real=real, documents=documents)
    if PATTERN not in at and weights_are(model) != "none":
        look_at_weights(model, ids, compared.weights_of, real=real, documents=documents)
    return compared.redundancy()


@dataclass
class _Compared:
    """Sums of the layers seen so far."""

    visible_bqk: Tensor
    queries_bq: Tensor
    """Those that see several keys."""
    tokens_bq: Tensor
    """Those that are no padding."""
    shares: bool
    found: dict[str, list[Tensor]] = field(default_factory=dict)
    first: Tensor | None = None

    def weights_of(self, weights_bhqk: Tensor, layer: int) -> None:
        rows_hnk = self._rows(weights_bhqk)
        unit_hnk = _unit(rows_hnk)
        self._keep("cosine", torch.einsum("hnk,gnk->hg", unit_hnk, unit_hnk) / rows_hnk.shape[1])
        if self.shares:
            self._keep("overlap", torch.stack([_overlap(one_nk, rows_hnk) for one_nk in rows_hnk]))

    def first_map(self, weights_bhqk: Tensor, layer: int) -> None:
        self.first = self._rows(weights_bhqk)

    def second_map(self, weights_bhqk: Tensor, layer: int) -> None:
        assert self.first is not None
        one_hnk, other_hnk = self.first, self._rows(weights_bhqk)
        self._keep("map_cosine", (_unit(one_hnk) * _unit(other_hnk)).sum(-1).mean(-1))
        self._keep("map_overlap", _overlap(one_hnk, other_hnk))
        self._keep("map_correlation", _correlation(one_hnk, other_hnk, self.visible_bqk[self.queries_bq]))
        self.first = None

    def outputs_of(self, z_bqhd: Tensor, layer: int) -> None:
        whole_nhd = z_bqhd[self.tokens_bq].double()
        z_nhd = whole_nhd - whole_nhd.mean(0)
        met_hgde = torch.einsum("nhd,nge->hgde", z_nhd, z_nhd)
        square_hg = met_hgde.square().sum((2, 3))
        own_h = square_hg.diagonal().sqrt()
        size_hg = own_h[:, None] * own_h
        varies_h = z_nhd.norm(dim=(0, 2)) > ROUNDING * whole_nhd.norm(dim=(0, 2))
        self._keep("outputs", torch.where(varies_h[:, None] & varies_h, square_hg / size_hg, torch.nan))

    def redundancy(self) -> Redundancy:
        stacked = {what: torch.stack(layers) for what, layers in self.found.items()}
        optional = ("cosine", "overlap", "map_cosine", "map_overlap", "map_correlation")
        return Redundancy(
            outputs=stacked["outputs"],
            tokens=int(self.tokens_bq.sum()),
            **{what: stacked.get(what) for what in optional},
        )

    def _rows(self, weights_bhqk: Tensor) -> Tensor:
        """(head, query that counts, key), float64"""
        return weights_bhqk.transpose(0, 1)[:, self.queries_bq].double()

    def _keep(self, what: str, value: Tensor) -> None:
        self.found.setdefault(what, []).append(value.cpu())


def _unit(rows_hnk: Tensor) -> Tensor:
    """Rows of length 1; a row of nothing but zeros stays so, and is like no other."""
    size = rows_hnk.norm(dim=-1, keepdim=True)
    return torch.where(size > 0, rows_hnk / size, 0.0)


def _overlap(one_nk: Tensor, others_hnk: Tensor) -> Tensor:
    """1 less the Jensen-Shannon distance, mean over rows: (head,)"""
    middle_hnk = (one_nk + others_hnk) / 2
    halves = [torch.xlogy(x, x) - torch.xlogy(x, middle_hnk) for x in (one_nk, others_hnk)]
    bits_hn = sum(half.sum(-1) for half in halves) / 2 / torch.log(torch.tensor(2.0, dtype=torch.float64))
    return 1 - bits_hn.clamp(min=0, max=1).sqrt().mean(-1)


def _correlation(one_hnk: Tensor, other_hnk: Tensor, visible_nk: Tensor) -> Tensor:
    """Pearson's, over visible keys, mean of the rows that see three or more and vary: (head,)"""
    count_n1 = visible_nk.sum(-1, keepdim=True)
    apart = [(x - x.sum(-1, keepdim=True) / count_n1) * visible_nk for x in (one_hnk, other_hnk)]
    varies = [
        around.norm(dim=-1) > ROUNDING * x.norm(dim=-1) for around, x in zip(apart, (one_hnk, other_hnk), strict=True)
    ]
    found_hn = (_unit(apart[0]) * _unit(apart[1])).sum(-1)
    return found_hn.masked_fill(~(varies[0] & varies[1] & (count_n1[:, 0] >= 3)), torch.nan).nanmean(-1)
