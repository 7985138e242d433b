"""Training a compiled model further: parts of it held still by the lines of its program, noise on the others.

The compiled model stays as it is; what is trained is a copy.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.transformer import Transformer, build_from
from headstock.programs.belonging import Masks, frozen
from headstock.programs.explaining.changes import moved_parts
from headstock.programs.explaining.explanation import Moved
from headstock.programs.saving.record import Record
from headstock.training.batch import BatchSource
from headstock.training.config import TrainingConfig
from headstock.training.loop import Watcher, train
from headstock.training.optimiser import adamw


class Tunable(Protocol):
    """A compiled model as it was compiled, or as it was opened from a folder."""

    @property
    def record(self) -> Record:
        """What its parts are for."""
        ...

    model: Transformer


def fine_tune(
    compiled: Tunable,
    source: BatchSource,
    training: TrainingConfig,
    *,
    freeze: str | Sequence[str] = (),
    noise: float = 0.0,
    after_step: Watcher | None = None,
) -> Transformer:
    """Give a copy of a compiled model, trained on a source of batches such as the task `program`.

    freeze: expressions and lines whose weights are not trained, or "all but ..." those; see `belonging.frozen`. Their
    entries stay what they are bit for bit, decay and clipping or not, and clipping does not count their gradients.
    noise: before the first step every entry that is not frozen gets Gaussian noise of so many times the root of the
    mean square of its matrix, decided by the training's seed. after_step: called as `train` calls it.

    Raises UserError for a name or a line that is none, for noise that is no share, and for a model that the source
    does not fit.
    """
    _refuse_misfit(compiled.model, source)
    if not 0 <= noise < math.inf:
        raise UserError(f"noise is {noise}: give 0 or more, a share of each matrix's own size.")
    model = copy_of(compiled.model)
    held = frozen(compiled.record.anatomy, model, freeze)
    add_noise(model, noise, training.seed, held)
    optimiser = adamw(model, training)
    with held_still(model, optimiser, held):
        train(model, source, training, optimiser=optimiser, after_step=after_step)
    return model


def moved(compiled: Tunable, model: Transformer) -> tuple[Moved, ...]:
    """Give the parts in which a model differs from the compiled one it was made of, each with the line it belongs to
    and the largest change of one of its weights; the most changed first."""
    if model.config != compiled.model.config:
        raise UserError(
            "the two models have another shape, so no part of one is the other's: give a model that was made of this "
            "compiled one, by fine_tune."
        )
    return moved_parts(compiled.record.anatomy, model, compiled.model.state_dict())


def copy_of(model: Transformer) -> Transformer:
    """Give a model with the same weights that shares none of them."""
    weight = model.embed.weight
    copy = build_from(model.config).to(weight.device, weight.dtype)
    copy.load_state_dict(model.state_dict())
    return copy.eval()


@torch.no_grad()
def add_noise(model: Transformer, noise: float, seed: int, held: Masks) -> None:
    """Add Gaussian noise to every entry that is not held, relative to the root of the mean square of its matrix."""
    if not noise:
        return
    draws = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        drawn = torch.randn(weight.shape, generator=draws, dtype=torch.float64)
        size = weight.double().square().mean().sqrt()
        added = (noise * size * drawn.to(weight.device)).to(weight.dtype)
        weight.add_(added.masked_fill(held[name], 0.0))


@contextmanager
def held_still(model: Transformer, optimiser: torch.optim.Optimizer, held: Masks) -> Iterator[None]:
    """Keep entries of a model's weights as they are through every step of an optimiser inside."""
    kept = [
        (weight, held[name], weight.detach().clone())
        for name, weight in model.named_parameters()
        if bool(held[name].any())
    ]

    @torch.no_grad()
    def put_back(*_: Any) -> None:
        for weight, mask, before in kept:
            weight.copy_(torch.where(mask, before, weight))

    def without(mask: Tensor) -> Callable[[Tensor], Tensor]:
        return lambda gradient: gradient.masked_fill(mask, 0.0)

    handles = [weight.register_hook(without(mask)) for weight, mask, _ in kept]  # type: ignore[no-untyped-call]
    handles.append(optimiser.register_step_post_hook(put_back))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _refuse_misfit(model: Transformer, source: BatchSource) -> None:
    config = model.config
    if source.vocab_size != config.vocab_size or source.context > config.context:
        raise UserError(
            f"the model has {config.vocab_size} tokens and reads {config.context} at most, and what it would be "
            f"trained on has {source.vocab_size} in rows of {source.context}: make the task program of the same "
            f"program, vocabulary and length."
        )
