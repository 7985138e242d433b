"""Activations much larger than the rest: in the residual, in the logits, and in the scores of attention."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from headstock.errors import UserError, near_name
from headstock.instruments.passes import Look, lists, look, undisturbed, visible_to
from headstock.model.attention import wide
from headstock.model.transformer import Transformer
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture

RANKS = (1, 2, 3, 10, 100)
"""Which of the largest values are given, as in Ye et al. (2024), Table 5."""
LOGITS, HIDDEN = "attention logits", "hidden states"
"""What that table is of: scores before softmax, and what blocks give."""
_RESIDUAL = ("batch", "position", "dimension")
_SCORES = ("batch", "head", "query", "key")
_LOGITS = ("batch", "position", "token")


@dataclass(frozen=True)
class Extremes:
    """How large the largest |x| of one value of a model are, beside the rest of it."""

    name: str
    """The hook's name, or "logits"; of all layers together, what they are."""
    top: Tensor
    """(5,): the largest |x|, the second, third, 10th and 100th; not a number where there are fewer values."""
    median: float
    """Of |x|."""
    rms: float
    """Root mean square of x."""
    kurtosis: float
    """Fourth moment about the mean over the squared variance: 3 for a Gaussian, more with outliers."""
    where: dict[str, int]
    """Where the largest stands: batch, position and dimension of a residual; batch, head, query and key of a score; of
    all layers together, the layer too."""

    @property
    def over_median(self) -> float:
        """The largest |x| in units of the median."""
        return _ratio(float(self.top[0]), self.median)

    @property
    def over_rms(self) -> float:
        """The largest |x| in units of the root mean square."""
        return _ratio(float(self.top[0]), self.rms)


@dataclass(frozen=True)
class Outliers:
    """Extremes by depth."""

    residual: tuple[Extremes, ...]
    """One a depth: what enters each block, and last what leaves the last one."""
    scores: tuple[Extremes, ...]
    """One a layer, of visible scores; two a layer, the first maps' and the second's, of a differential mixer. Empty
    where a mixer has no scores."""
    logits: Extremes
    over_all: tuple[Extremes, ...]
    """Of all layers together: the visible scores, both maps' alike, as "attention logits", where there are any; and
    what leaves each block as "hidden states"."""

    @property
    def everything(self) -> tuple[Extremes, ...]:
        """All of them, in the order of the pass within each kind."""
        return (*self.residual, *self.scores, self.logits)

    def __repr__(self) -> str:
        head = ["name", *(f"top-{rank}" for rank in RANKS), "median", "kurtosis", "where"]
        rows = [
            [one.name, *(f"{float(value):.4g}" for value in (*one.top, one.median, one.kurtosis)), str(one.where)]
            for one in (*self.everything, *self.over_all)
        ]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in [head, *rows]
        )

    def draw(self, what: str = "over_median") -> Picture:
        """Draw the largest |x| in units of the median, or the kurtosis, by depth, on a logarithmic axis.

        Raises UserError for anything else.
        """
        if what not in _SAID:
            raise UserError(f"outliers have no {what!r} by depth: {near_name(what, _SAID)}")
        series = {"residual": _by_depth(self.residual, what)}
        for which, said in (("", "scores"), ("_1", "first scores"), ("_2", "second scores")):
            some = [one for one in self.scores if one.name.endswith(f"scores{which}")]
            if any(math.isfinite(getattr(one, what)) for one in some):
                series[said] = _by_depth(some, what)
        known = [one for one in self.everything if math.isfinite(getattr(one, what))]
        worst = max(known, key=lambda one: float(getattr(one, what)))
        title, y = _SAID[what]
        return lines(
            series,
            x="blocks before",
            y=y,
            title=title.format(f"{getattr(worst, what):.3g}", worst.name),
            levels={"a Gaussian": 3.0} if what == "kurtosis" else None,
            log_y=True,
            name="outliers" if what == "over_median" else "kurtosis",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


_SAID = {
    "over_median": ("The largest |x| is {} times the median: {}", "largest |x| over median |x|"),
    "kurtosis": ("Kurtosis up to {}: {}", "kurtosis"),
}


def activation_outliers(
    model: Transformer, ids: Tensor, *, real: Tensor | None = None, documents: Tensor | None = None
) -> Outliers:
    """Give how far the largest activations stand out, in the residual, the scores and the logits.

    ids: (batch, time). Of the residual at every depth, of the attention logits (scores as `hook_attn_scores` shows
    them, visible ones alone) and of the logits. Padding is left out. Top activation values beside the median: Ye et
    al., "Differential Transformer" (2024), Table 5; outliers that hinder quantisation: Bondarenko et al., "Quantizable
    Transformers" (2023). A mixer without scores has none measured: `scores` is empty then. For the table of all layers
    together scores and what leaves each block are kept until the end, 4 bytes each.
    """
    visible = visible_to(model, ids, real, documents).cpu()
    tokens = torch.ones(ids.shape, dtype=torch.bool) if real is None else real.cpu()
    if not bool(tokens.any()):
        raise UserError("there is no real token to read, so nothing stands out: give ids of which some are real.")
    residual: list[Extremes] = []
    scores: dict[str, list[Extremes]] = {"": [], "_1": [], "_2": []}
    pools = {LOGITS: _Pool(_SCORES), HIDDEN: _Pool(_RESIDUAL)}
    last = len(model.blocks) - 1

    def entering(x_bqm: Tensor, layer: int) -> None:
        residual.append(_extremes(f"blocks.{layer}.hook_resid_pre", x_bqm, tokens[..., None], _RESIDUAL))

    def leaving(x_bqm: Tensor, layer: int) -> None:
        pools[HIDDEN].add(x_bqm, tokens[..., None], layer)
        if layer == last:
            residual.append(_extremes(f"blocks.{layer}.hook_resid_post", x_bqm, tokens[..., None], _RESIDUAL))

    def of(which: str) -> Look:
        def seen(scores_bhqk: Tensor, layer: int) -> None:
            name = f"blocks.{layer}.attn.hook_attn_scores{which}"
            scores[which].append(_extremes(name, scores_bhqk, visible, _SCORES))
            pools[LOGITS].add(scores_bhqk, visible, layer)

        return seen

    at = {f"attn.hook_attn_scores{which}": of(which) for which in scores}
    at = {short: function for short, function in at.items() if lists(model, short)}
    x_bqm = look(
        model, ids, {"hook_resid_pre": entering, **at, "hook_resid_post": leaving}, real=real, documents=documents
    )
    with undisturbed(model):
        logits = _extremes("logits", model.logits(x_bqm), tokens[..., None], _LOGITS)
    over_all = tuple(pool.extremes(name) for name, pool in pools.items() if pool.values)
    return Outliers(tuple(residual), tuple(one for several in scores.values() for one in several), logits, over_all)


def _extremes(name: str, x: Tensor, chosen: Tensor, axes: tuple[str, ...]) -> Extremes:
    """Measure the chosen values of x; chosen has its axes, or 1."""
    x = wide(x.detach()).cpu()
    chosen = chosen.expand_as(x)
    return _measured(name, x[chosen], _largest_at(x, chosen, axes))


def _measured(name: str, values: Tensor, where: dict[str, int]) -> Extremes:
    """Measure values, (number,)."""
    size = values.abs()
    top = size.topk(min(RANKS[-1], len(size))).values
    given = [float(top[rank - 1]) if rank <= len(top) else math.nan for rank in RANKS]
    mean, square = (float(moment.mean(dtype=torch.float64)) for moment in (values, values.square()))
    apart = values - mean
    deviation = math.sqrt(float(apart.square().mean(dtype=torch.float64)))
    return Extremes(
        name=name,
        top=torch.tensor(given, dtype=values.dtype),
        median=_median(size),
        rms=math.sqrt(square),
        kurtosis=float((apart / deviation).square().square().mean(dtype=torch.float64)) if deviation else math.nan,
        where=where,
    )


def _largest_at(x: Tensor, chosen: Tensor, axes: tuple[str, ...]) -> dict[str, int]:
    place = int(x.abs().masked_fill(~chosen, -1.0).argmax())
    return dict(zip(axes, map(int, torch.unravel_index(torch.tensor(place), x.shape)), strict=True))


@dataclass
class _Pool:
    """The chosen values of all layers."""

    axes: tuple[str, ...]
    values: list[Tensor] = field(default_factory=list)
    where: dict[str, int] = field(default_factory=dict)
    largest: float = -1.0

    def add(self, x: Tensor, chosen: Tensor, layer: int) -> None:
        """Add one layer's."""
        x = wide(x.detach()).cpu()
        chosen = chosen.expand_as(x)
        values = x[chosen]
        self.values.append(values)
        largest = float(values.abs().amax())
        if largest > self.largest:
            self.largest, self.where = largest, {"layer": layer, **_largest_at(x, chosen, self.axes)}

    def extremes(self, name: str) -> Extremes:
        """Measure them together."""
        return _measured(name, torch.cat(self.values), self.where)


def _ratio(a: float, b: float) -> float:
    return a / b if b else math.inf if a else math.nan


def _median(values: Tensor) -> float:
    """Give the middle value, or the mean of the two in the middle."""
    low, high = (values.kthvalue(k).values for k in ((len(values) + 1) // 2, len(values) // 2 + 1))
    return float((low + high) / 2)


def _by_depth(some: Sequence[Extremes], what: str) -> tuple[list[float], list[float]]:
    return list(map(float, range(len(some)))), [getattr(one, what) for one in some]
