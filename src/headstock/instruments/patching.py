"""Where a model keeps what decides its answer: values of one text put into a run on another, place by place."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor

from headstock.errors import UserError, near_name
from headstock.instruments.answers import Metric, measuring
from headstock.instruments.passes import undisturbed
from headstock.instruments.tables import cells, head_labels, layer_labels, position_labels, shown_positions
from headstock.model.hook_functions import HookPoint
from headstock.model.transformer import Transformer, refuse_input
from headstock.pictures.grid import MOST, heat
from headstock.pictures.numbers import small
from headstock.pictures.picture import Picture

Direction = Literal["denoising", "noising"]
BY_POSITION = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out", "z", "q", "k", "v", "result")
"""Sites with a position as their second axis; the last five with a head as their third."""
BY_HEAD = ("z", "q", "k", "v", "result")
BY_MAP = ("pattern", "pattern_1", "pattern_2", "attn_scores", "attn_scores_1", "attn_scores_2")
"""Sites with a head as their second axis and a query as their third."""
_Place: TypeAlias = tuple[slice | int, ...]


@dataclass(frozen=True)
class Patching:
    """A metric with one value of another run put in at a time; 0 is the corrupt run's, 1 the clean one's."""

    effect: Tensor
    """float64 (layer, position), (layer, head) or (layer, head, position): (patched − corrupt) / (clean − corrupt).
    Denoising, 1 says that this value alone restores the clean answer; noising, 0 says that it alone destroys it."""
    axes: tuple[str, ...]
    """What the axes of effect are."""
    clean: float
    """The metric on the clean text."""
    corrupt: float
    """The metric on the corrupt text."""
    site: str
    """Which value: "resid_pre" for hook_resid_pre."""
    direction: Direction

    @property
    def patched(self) -> Tensor:
        """float64, as effect: the metric itself."""
        return self.corrupt + self.effect * (self.clean - self.corrupt)

    def draw(self, *, labels: Sequence[str] | None = None, first: int = 0) -> Picture:
        """Draw the effects, layers down; with heads and positions, the heads that matter most down.

        labels: what tokens are called, one a position. first: the position to begin with, for at most 128 fit.
        """
        away = 0.0 if self.direction == "denoising" else 1.0
        values, down, rows = self.effect, "layer", layer_labels(len(self.effect))
        if values.ndim == 3:
            heads = [f"{layer}.{head}" for layer in range(values.shape[0]) for head in range(values.shape[1])]
            values = values.flatten(0, 1)
            most = (values - away).abs().amax(1).argsort(descending=True, stable=True)[:MOST].sort().values
            values, down, rows = values[most], "layer.head", [heads[place] for place in most.tolist()]
        if self.axes[-1] == "position":
            places = shown_positions(values.shape[1], first)
            values, columns = values[:, places], position_labels(values.shape[1], labels)[places]
        else:
            columns = head_labels(values.shape[1])
        row, column = divmod(int((values - away).abs().nan_to_num(0.0).argmax()), values.shape[1])
        matters = "restores" if self.direction == "denoising" else "leaves"
        title = f"hook_{self.site} of {down} {rows[row].split()[-1]}, {self.axes[-1]} {columns[column]} matters most"
        kept, run = ("clean", "corrupt") if self.direction == "denoising" else ("corrupt", "clean")
        ends = f"1 is the clean run ({small(self.clean)}), 0 the corrupt one ({small(self.corrupt)})"
        return heat(
            cells(values),
            rows,
            columns,
            title=f"{title}: it {matters} {small(100 * float(values[row, column]), 3)} %",
            rows=down,
            columns=self.axes[-1],
            unit="share of the clean answer",
            caption=f"One at a time, {kept} values in the {run} run. {ends}.",
            name=f"patching-{self.site}",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


def patch_positions(
    model: Transformer,
    clean_ids: Tensor,
    corrupt_ids: Tensor,
    metric: Metric,
    *,
    site: str = "resid_pre",
    direction: Direction = "denoising",
    real: Tensor | None = None,
    documents: Tensor | None = None,
) -> Patching:
    """Give the effect of one value at a time, by layer and position, on a metric of the logits.

    clean_ids, corrupt_ids: (batch, time), alike in shape, row against row and position against position. site: a
    value of each block with positions, such as "resid_pre", "attn_out", "mlp_out", or "z" of all heads. metric: a
    function that makes one number of the logits (batch, time, vocabulary), or two answers (right, wrong) whose logits'
    difference at the last position is taken: see `logit_difference`. denoising puts a clean value into the corrupt
    run, noising a corrupt one into the clean run. real and documents hold for both. Layers · positions passes.

    Source: causal tracing, Meng et al., "Locating and Editing Factual Associations in GPT" (2022); Wang et al.,
    "Interpretability in the Wild" (2022). Raises UserError for texts of different shape, a value that the model never
    works out, and texts on which the metric is the same.
    """
    swap = _Swap.of(model, clean_ids, corrupt_ids, metric, site, BY_POSITION, direction, real, documents)
    time = clean_ids.shape[1]
    places: list[list[_Place]] = [[(slice(None), position) for position in range(time)] for _ in swap.names]
    return swap.patching(places, (time,), ("layer", "position"))


def patch_heads(
    model: Transformer,
    clean_ids: Tensor,
    corrupt_ids: Tensor,
    metric: Metric,
    *,
    site: str = "z",
    by_position: bool = False,
    direction: Direction = "denoising",
    real: Tensor | None = None,
    documents: Tensor | None = None,
) -> Patching:
    """Give the effect of one head's value at a time, by layer and head, at all positions or at each.

    site: "z" (what the head gives), "q", "k", "v", "result", "pattern", or another map with a head. Heads are those
    of the value: key heads of "k" and "v", pairs of a differential's "z" and "pattern". by_position: each position
    alone, a query's of a map: (layer, head, position). The rest is as in `patch_positions`.
    """
    swap = _Swap.of(model, clean_ids, corrupt_ids, metric, site, BY_HEAD + BY_MAP, direction, real, documents)
    mapped = site in BY_MAP
    n_heads, time = swap.shape[1 if mapped else 2], swap.shape[2 if mapped else 1]
    here = range(time) if by_position else [slice(None)]
    places: list[list[_Place]] = [
        [(slice(None), head, at) if mapped else (slice(None), at, head) for head in range(n_heads) for at in here]
        for _ in swap.names
    ]
    if by_position:
        return swap.patching(places, (n_heads, time), ("layer", "head", "position"))
    return swap.patching(places, (n_heads,), ("layer", "head"))


@dataclass(frozen=True)
class _Swap:
    """A run, and the values of another that are to be put into it one at a time."""

    model: Transformer
    ids: Tensor
    names: list[str]
    values: dict[str, Tensor]
    measure: Callable[[Tensor], float]
    clean: float
    corrupt: float
    site: str
    direction: Direction
    reading: dict[str, Any]

    @classmethod
    def of(
        cls,
        model: Transformer,
        clean_ids: Tensor,
        corrupt_ids: Tensor,
        metric: Metric,
        site: str,
        sites: Sequence[str],
        direction: Direction,
        real: Tensor | None,
        documents: Tensor | None,
    ) -> "_Swap":
        if direction not in get_args(Direction):
            raise UserError(f"patching goes no {direction!r} way: {near_name(str(direction), get_args(Direction))}")
        names = _names(model, site, sites)
        for ids in (clean_ids, corrupt_ids):
            refuse_input(ids, real, documents)
        if clean_ids.shape != corrupt_ids.shape:
            raise UserError(
                f"the clean text has shape {tuple(clean_ids.shape)} and the corrupt one {tuple(corrupt_ids.shape)}: "
                f"values are put in position by position, so give texts alike in rows and length."
            )
        if not clean_ids.numel():
            raise UserError("there is no token to patch: give texts of one token or more.")
        device = model.embed.weight.device
        asked = {"real": real, "documents": documents}
        reading: dict[str, Any] = {key: None if x is None else x.to(device) for key, x in asked.items()}
        clean_ids, corrupt_ids = clean_ids.to(device), corrupt_ids.to(device)
        measure = measuring(metric)
        kept_of, run_on = (clean_ids, corrupt_ids) if direction == "denoising" else (corrupt_ids, clean_ids)
        with undisturbed(model):
            logits, values = model.run_with_cache(kept_of, names, **reading)
            met, own = measure(logits), measure(model(run_on, **reading))
        clean, corrupt = (met, own) if direction == "denoising" else (own, met)
        if not abs(clean - corrupt) > 0:
            raise UserError(
                f"the metric is {clean:.6g} on both texts, so there is nothing to restore: choose texts on which the "
                f"model answers differently, or another metric."
            )
        found = {name: values[name] for name in names}
        return cls(model, run_on, names, found, measure, clean, corrupt, site, direction, reading)

    @property
    def shape(self) -> torch.Size:
        """Of the values."""
        return self.values[self.names[0]].shape

    def patching(self, places: list[list[_Place]], sizes: tuple[int, ...], axes: tuple[str, ...]) -> Patching:
        """Measure with each place of each layer's value replaced."""
        measured = []
        with undisturbed(self.model):
            for name, of_layer in zip(self.names, places, strict=True):
                for place in of_layer:
                    with self._put(name, place):
                        measured.append(self.measure(self.model(self.ids, **self.reading)))
        metrics = torch.tensor(measured, dtype=torch.float64).view(len(self.names), *sizes)
        effect = (metrics - self.corrupt) / (self.clean - self.corrupt)
        return Patching(effect, axes, self.clean, self.corrupt, self.site, self.direction)

    @contextmanager
    def _put(self, name: str, place: _Place) -> Iterator[None]:
        def put(value: Tensor, hook: HookPoint) -> None:
            value[place] = self.values[name][place]

        with self.model.hooks([(name, put)]):
            yield


def _names(model: Transformer, site: str, sites: Sequence[str]) -> list[str]:
    if site not in sites:
        raise UserError(f"{site!r} is nothing that can be patched here: {near_name(site, sites)}")
    if not len(model.blocks):
        raise UserError(f"{model.described} has no blocks, so there is nothing to patch.")
    inside = "" if site in BY_POSITION[:5] else "attn."
    names, known = [f"blocks.{layer}.{inside}hook_{site}" for layer in range(len(model.blocks))], model.hook_names()
    for name in names:
        if name not in known:
            raise UserError(f"{model.described} never works out {name}: {near_name(name, known)}")
    return names
