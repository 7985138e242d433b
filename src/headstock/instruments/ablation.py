"""What a head is worth: take away what it gives, exactly that, and see what becomes of the model."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.losses import token_losses
from headstock.instruments.passes import each, undisturbed
from headstock.instruments.replacing import (
    How,
    chosen_heads,
    gathered_outputs,
    head_count,
    refuse_how,
    refuse_without_heads,
    replacing,
)
from headstock.instruments.row_means import RowMeans, as_numbers
from headstock.instruments.tables import cells, head_labels, layer_labels
from headstock.model.transformer import Transformer
from headstock.pictures.grid import heat
from headstock.pictures.numbers import small
from headstock.pictures.picture import Picture
from headstock.training.batch import Batch

Metric: TypeAlias = Callable[[Tensor, Batch], Tensor | float]
"""(logits (batch, time, vocabulary), batch) → a number a row, (batch,), or one for the whole batch."""


@contextmanager
def ablated(
    model: Transformer,
    heads: Iterable[tuple[int, int]],
    how: How = "zero",
    *,
    reference: Tensor | None = None,
    real: Tensor | None = None,
    by_position: bool = False,
    seed: int = 0,
) -> Iterator[Transformer]:
    """Let the model run without what these heads, pairs (layer, head), give: exactly these, in any pass inside.

    A head's output is hook_z, which the output map reads; a pair of differential is one head. What replaces it:
    zero: nothing; a bias of the output map stays.
    mean: its mean over the reference, ids (batch, time) that are read once, with real (bool, False for padding) left
    out; one mean for all positions, or one for each with by_position, and then passes must be as long as the reference.
    resample: what it gave on another row of the reference, position by position, all heads on the same one; rows are
    drawn from the seed, and where pass and reference have as many rows none meets itself.

    Values of the reference are those of the model as it stands when the block is entered. Leaving the block restores
    every logit bit for bit. Raises UserError for a head that is not there, and for a reference that is missing or does
    not fit.
    """
    chosen = chosen_heads(model, heads)
    refuse_how(how)
    if how != "zero" and reference is None and chosen:
        raise UserError(f"{how} takes values of other text: give reference=ids, (batch, time).")
    _refuse_without_effect(how, reference, real, seed)
    if by_position and how != "mean":
        raise UserError(f"by_position says how a mean is taken, and {how} takes none: leave it out.")
    if how == "resample" and real is not None and not bool(real.all()):
        raise UserError("resample takes rows position by position, padding too: give a reference without padding.")
    gathered = {} if how == "zero" or reference is None else gathered_outputs(model, reference, real, set(chosen))
    real = None if real is None else real.to(model.embed.weight.device)
    with model.hooks(replacing(chosen, how, gathered, real, by_position, seed)):
        yield model


@dataclass(frozen=True)
class HeadAblations:
    """What each head's absence does to a metric, all other heads left as they are."""

    change: Tensor
    """float64 (layer, head): the metric without the head, less the metric of the whole model."""
    standard_error: Tensor
    """float64 (layer, head), of the change, rows (or batches, of a metric that gives one number for each) being
    independent; not a number with fewer than two."""
    whole: float
    """The metric of the whole model."""
    metric: str
    """ "loss", or the name of the function."""
    how: str
    """zero, mean or resample."""

    def most_needed(self) -> list[tuple[int, int]]:
        """Give (layer, head) of all heads, the largest change first."""
        order = self.change.flatten().argsort(descending=True, stable=True)
        return [divmod(int(place), self.change.shape[1]) for place in order]

    def draw(self) -> Picture:
        """Draw the changes, layers down and heads across."""
        place = int(self.change.abs().nan_to_num(0.0).argmax())
        layer, head = divmod(place, self.change.shape[1])
        return heat(
            cells(self.change),
            layer_labels(len(self.change)),
            head_labels(self.change.shape[1]),
            title=f"Without layer {layer}, head {head}, the {self.metric} changes most",
            rows="layer",
            columns="head",
            unit=f"change of the {self.metric}{', nats per token' if self.metric == 'loss' else ''}",
            signed=True,
            caption=f"One head at a time, replaced by {_SAID[self.how]}; the whole model has {small(self.whole)}.",
            name="head-ablations",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


_SAID = {"zero": "zero", "mean": "its mean", "resample": "what it gave on another row"}


def ablate_heads(
    model: Transformer,
    batches: Iterable[Batch],
    *,
    metric: Literal["loss"] | Metric = "loss",
    how: How = "zero",
    reference: Tensor | None = None,
    seed: int = 0,
) -> HeadAblations:
    """Give the change of a metric without each head in turn, by layer and head: see `ablated`.

    metric: "loss", nats over all targets that count, or a function of logits and batch that gives a number a row or
    one for all; the mean over rows is taken. reference: ids that mean and resample take values of; each batch's own
    inputs where not given. One pass for every head and batch, in evaluation mode.

    Raises UserError as `ablated` does, for a mixer without heads, and where nothing counts.
    """
    refuse_how(how)
    _refuse_without_effect(how, reference, None, seed)
    if not len(model.blocks):
        raise UserError(f"{model.described} has no blocks, so there are no heads to ablate.")
    refuse_without_heads(model)
    n_layers, n_heads = len(model.blocks), head_count(model)
    whole, changes = RowMeans(), [[RowMeans() for _ in range(n_heads)] for _ in range(n_layers)]
    with undisturbed(model):
        for batch in each(batches):
            sums_b, counts_b = _measured(model, batch, metric)
            whole.add(sums_b, counts_b)
            taken_from = batch.inputs if reference is None else reference
            gathered = {} if how == "zero" else gathered_outputs(model, taken_from, None, set(range(n_layers)))
            for layer in range(n_layers):
                for head in range(n_heads):
                    with model.hooks(replacing({layer: [head]}, how, gathered, seed=seed)):
                        without_b, _ = _measured(model, batch, metric)
                    changes[layer][head].add(without_b - sums_b, counts_b)
    if not whole.count:
        raise UserError("no target of these batches counts, so nothing can change: give batches whose mask has some.")
    change, error = (
        torch.tensor([[getattr(means, what) for means in row] for row in changes], dtype=torch.float64)
        for what in ("mean", "standard_error")
    )
    said = metric if isinstance(metric, str) else getattr(metric, "__name__", "metric").replace("_", " ")
    return HeadAblations(change, error, whole.mean, "metric" if said == "<lambda>" else said, how)


def _refuse_without_effect(how: How, reference: Tensor | None, real: Tensor | None, seed: int) -> None:
    if how == "zero" and (reference is not None or real is not None):
        raise UserError("zero takes no values of other text: leave out reference and real, or choose mean or resample.")
    if how != "resample" and seed:
        raise UserError(f"seed draws rows for resample, and {how} draws none: leave it out.")


def _measured(model: Transformer, batch: Batch, metric: Literal["loss"] | Metric) -> tuple[Tensor, Tensor]:
    """Give sums and counts, a row of the batch each, or one of both for all."""
    if metric == "loss":
        return token_losses(model, batch).sum(1), batch.mask.sum(1)
    if isinstance(metric, str):
        raise UserError(f"there is no metric {metric!r}: give 'loss' or a function of logits and batch.")
    rows = len(batch.inputs)
    given = as_numbers(metric(model(batch.inputs.to(model.embed.weight.device)), batch))
    if given.ndim == 0:
        return given[None] * rows, torch.tensor([rows])
    if given.shape != (rows,):
        raise UserError(
            f"the metric gave numbers of shape {tuple(given.shape)} for a batch of {rows} rows: give one a row, "
            f"({rows},), or one for all."
        )
    return given, torch.ones(rows)
