"""Activations much larger than the rest: in the residual, in the logits, and in the scores of attention."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.passes import Look, lists, look, undisturbed, visible_to
from headstock.model.attention import wide
from headstock.model.transformer import Transformer
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture

RANKS = (1, 2, 3, 10, 100)
"""Which of the largest values are given, as in Ye et al. (2024), Table 5."""
_RESIDUAL = ("batch", "position", "dimension")
_SCORES = ("batch", "head", "query", "key")
_LOGITS = ("batch", "position", "token")


@dataclass(frozen=True)
class Extremes:
    """How large the largest |x| of one value of a model are, beside the rest of it."""

    name: str
    """The hook's name, or "logits"."""
    top: Tensor
    """(5,): the largest |x|, the second, third, 10th and 100th; not a number where there are fewer values."""
    median: float
    """Of |x|."""
    rms: float
    """Root mean square of x."""
    kurtosis: float
    """Fourth moment about the mean over the squared variance: 3 for a Gaussian, more with outliers."""
    where: dict[str, int]
    """Where the largest stands: batch, position and dimension of a residual; batch, head, query and key of a score."""

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

    @property
    def everything(self) -> tuple[Extremes, ...]:
        """All of them, in the order of the pass within each kind."""
        return (*self.residual, *self.scores, self.logits)

    def __repr__(self) -> str:
        head = ["name", *(f"top-{rank}" for rank in RANKS), "median", "kurtosis", "where"]
        rows = [
            [one.name, *(f"{float(value):.4g}" for value in (*one.top, one.median, one.kurtosis)), str(one.where)]
            for one in self.everything
        ]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in [head, *rows]
        )

    def draw(self) -> Picture:
        """Draw the largest |x| in units of the median by depth, on a logarithmic axis."""
        series = {"residual": _over_medians(self.residual)}
        for which, said in (("", "scores"), ("_1", "first scores"), ("_2", "second scores")):
            some = [one for one in self.scores if one.name.endswith(f"scores{which}")]
            if any(math.isfinite(one.over_median) for one in some):
                series[said] = _over_medians(some)
        known = [one for one in self.everything if math.isfinite(one.over_median)]
        worst = max(known, key=lambda one: one.over_median)
        return lines(
            series,
            x="blocks before",
            y="largest |x| over median |x|",
            title=f"The largest |x| is {worst.over_median:.3g} times the median: {worst.name}",
            log_y=True,
            name="outliers",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


def activation_outliers(
    model: Transformer, ids: Tensor, *, real: Tensor | None = None, documents: Tensor | None = None
) -> Outliers:
    """Give how far the largest activations stand out, in the residual, the scores and the logits.

    ids: (batch, time). Of the residual at every depth, of the attention logits (scores as `hook_attn_scores` shows
    them, visible ones alone) and of the logits. Padding is left out. Top activation values beside the median: Ye et
    al., "Differential Transformer" (2024), Table 5; outliers that hinder quantisation: Bondarenko et al., "Quantizable
    Transformers" (2023). A mixer without scores has none measured: `scores` is empty then.
    """
    visible = visible_to(model, ids, real, documents).cpu()
    tokens = torch.ones(ids.shape, dtype=torch.bool) if real is None else real.cpu()
    if not bool(tokens.any()):
        raise UserError("there is no real token to read, so nothing stands out: give ids of which some are real.")
    residual: list[Extremes] = []
    scores: dict[str, list[Extremes]] = {"": [], "_1": [], "_2": []}
    last = len(model.blocks) - 1

    def entering(x_bqm: Tensor, layer: int) -> None:
        residual.append(_extremes(f"blocks.{layer}.hook_resid_pre", x_bqm, tokens[..., None], _RESIDUAL))

    def leaving(x_bqm: Tensor, layer: int) -> None:
        if layer == last:
            residual.append(_extremes(f"blocks.{layer}.hook_resid_post", x_bqm, tokens[..., None], _RESIDUAL))

    def of(which: str) -> Look:
        def seen(scores_bhqk: Tensor, layer: int) -> None:
            name = f"blocks.{layer}.attn.hook_attn_scores{which}"
            scores[which].append(_extremes(name, scores_bhqk, visible, _SCORES))

        return seen

    at = {f"attn.hook_attn_scores{which}": of(which) for which in scores}
    at = {short: function for short, function in at.items() if lists(model, short)}
    x_bqm = look(
        model, ids, {"hook_resid_pre": entering, **at, "hook_resid_post": leaving}, real=real, documents=documents
    )
    with undisturbed(model):
        logits = _extremes("logits", model.logits(x_bqm), tokens[..., None], _LOGITS)
    return Outliers(tuple(residual), tuple(one for several in scores.values() for one in several), logits)


def _extremes(name: str, x: Tensor, chosen: Tensor, axes: tuple[str, ...]) -> Extremes:
    """Measure the chosen values of x; chosen has its axes, or 1."""
    x = wide(x.detach()).cpu()
    chosen = chosen.expand_as(x)
    values = x[chosen]
    size = values.abs()
    top = size.topk(min(RANKS[-1], len(size))).values
    given = [float(top[rank - 1]) if rank <= len(top) else math.nan for rank in RANKS]
    mean, square = (float(moment.mean(dtype=torch.float64)) for moment in (values, values.square()))
    apart = values - mean
    deviation = math.sqrt(float(apart.square().mean(dtype=torch.float64)))
    place = int(x.abs().masked_fill(~chosen, -1.0).argmax())
    return Extremes(
        name=name,
        top=torch.tensor(given, dtype=x.dtype),
        median=_median(size),
        rms=math.sqrt(square),
        kurtosis=float((apart / deviation).square().square().mean(dtype=torch.float64)) if deviation else math.nan,
        where=dict(zip(axes, map(int, torch.unravel_index(torch.tensor(place), x.shape)), strict=True)),
    )


def _ratio(a: float, b: float) -> float:
    return a / b if b else math.inf if a else math.nan


def _median(values: Tensor) -> float:
    """Give the middle value, or the mean of the two in the middle."""
    low, high = (values.kthvalue(k).values for k in ((len(values) + 1) // 2, len(values) // 2 + 1))
    return float((low + high) / 2)


def _over_medians(some: Sequence[Extremes]) -> tuple[list[float], list[float]]:
    return list(map(float, range(len(some)))), [one.over_median for one in some]
