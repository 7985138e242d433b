"""What instruments share: a pass that shows a model's inner values as they come, keeps none, and leaves no trace."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TypeAlias

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.hooks import HookPoint
from headstock.model.mixers import mixer_class
from headstock.model.transformer import Transformer, refuse_input
from headstock.model.visibility import Visible
from headstock.training.batch import Batch

Look: TypeAlias = Callable[[Tensor, int], None]
"""(value, layer), called while the value is there; it changes nothing, and what it wants of it later it copies."""
PATTERN = "attn.hook_pattern"


@contextmanager
def undisturbed(model: Transformer, *, gradients: bool = False) -> Iterator[None]:
    """Put a model in evaluation mode inside, with or without gradients, and leave every part of it as it was.

    Raises UserError for weights that are no numbers.
    """
    refuse_no_numbers(model)
    training = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.set_grad_enabled(gradients):
            yield
    finally:
        for module, was in training:
            module.training = was


def refuse_no_numbers(model: Transformer) -> None:
    """Raise UserError for a model with NaN or infinity among its weights, of which any figure would be nonsense."""
    # One sum of each is the quickest look at all of it; one that overflows is looked at again below.
    if bool(torch.stack([parameter.detach().sum().double() for parameter in model.parameters()]).isfinite().all()):
        return
    for name, parameter in model.named_parameters():
        if odd := int((~parameter.isfinite()).sum()):
            raise UserError(
                f"{name} holds {odd:,} NaN or infinite of {parameter.numel():,} numbers, so there is nothing to "
                f"measure: open a model from before its training diverged."
            )


def refuse_overflow(value: Tensor, what: str) -> None:
    """Raise UserError where a pass has left the numbers that there are: `what` is the value's name in the message."""
    if odd := int((~value.isfinite()).sum()):
        raise UserError(
            f"{what}: {odd:,} of {value.numel():,} numbers are NaN or infinite, so there is nothing to measure: the "
            f"model's weights are too large for {str(value.dtype).removeprefix('torch.')}, or a hook put them there."
        )


def each(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Go through batches. Raises UserError for what is none, such as the task itself or its rows' ids."""
    if isinstance(batches, str | Mapping | Tensor | Batch) or not isinstance(batches, Iterable):
        raise UserError(f"batches are wanted, such as task.evaluation() or a list of Batch, not {_kind(batches)}.")
    for batch in batches:
        if not isinstance(batch, Batch):
            raise UserError(f"batches are wanted, such as those of task.evaluation(); {_kind(batch)} is among them.")
        yield batch


def _kind(value: object) -> str:
    return type(value).__name__


def look(
    model: Transformer,
    ids_bq: Tensor,
    at: Mapping[str, Look],
    *,
    real: Tensor | None = None,
    documents: Tensor | None = None,
) -> Tensor:
    """Run one pass and show the values of every block that are named as in "hook_resid_pre" or "attn.hook_z".

    Gives the residual after the last norm, (batch, time, model). A value is as the functions that wait in the model
    already leave it. Raises UserError for a name that a block does not have, for a model without blocks, and where
    there is nothing to read.
    """
    refuse_nothing(ids_bq, real, documents)
    if not len(model.blocks):
        raise UserError("the model has no blocks, so there is nothing inside to measure: give one with n_layers ≥ 1.")
    with undisturbed(model), ExitStack() as leaving:
        for short, function in at.items():
            names = [f"blocks.{layer}.{short}" for layer in range(len(model.blocks))]
            handle = model.add_hook(names, _shown_to(function))
            handle.copies = False
            leaving.callback(handle.remove)
        return model.hidden(ids_bq, real=real, documents=documents)


def look_at_weights(
    model: Transformer,
    ids_bq: Tensor,
    function: Look,
    at: Mapping[str, Look] | None = None,
    *,
    real: Tensor | None = None,
    documents: Tensor | None = None,
) -> None:
    """Show each block's weights (batch, head, query, key), layer by layer, and the values named in `at`.

    The weights of a mixer that does not show them on the way are asked of it, all layers at once. Raises UserError
    where the mixer has none, and as `look` does.
    """
    refuse_without_weights(model)
    refuse_nothing(ids_bq, real, documents)
    if lists(model, PATTERN) or at or not len(model.blocks):
        look(model, ids_bq, {**(at or {}), PATTERN: function}, real=real, documents=documents)
        return
    with undisturbed(model):
        for layer, weights_bhqk in enumerate(model.weights(ids_bq, real=real, documents=documents)):
            function(weights_bhqk, layer)


def lists(model: Transformer, short: str) -> bool:
    """Say whether every block has a value of a name such as "attn.hook_attn_scores"."""
    return {f"blocks.{layer}.{short}" for layer in range(len(model.blocks))} <= set(model.hook_names())


def refuse_without_weights(model: Transformer) -> None:
    """Raise UserError where the mixer is no average of values, so that there are no weights to measure."""
    if weights_are(model) == "none":
        raise UserError(
            f"{model.config.mixer} has no weights to measure: what it gives is no average of values; "
            f"hook_z and the residual can be read of it."
        )


def refuse_nothing(ids_bq: Tensor, real: Tensor | None = None, documents: Tensor | None = None) -> None:
    """Raise UserError for ids without a token, of which nothing is measured, and for what no model reads."""
    refuse_input(ids_bq, real, documents)
    if not ids_bq.numel():
        raise UserError(
            f"ids of shape {tuple(ids_bq.shape)} hold no token, so there is nothing to measure: give one row of one "
            f"token or more."
        )


def refuse_inference() -> None:
    """Raise UserError in torch.inference_mode(), where there are no gradients to measure."""
    if torch.is_inference_mode_enabled():
        raise UserError("there are no gradients in torch.inference_mode(): measure them outside it.")


def weights_are(model: Transformer) -> str:
    """Say what the mixer declares its weights to be: normalised, signed, unnormalised or none."""
    return str(mixer_class(model.config.mixer).weights_under(model.config))


def visible_to(
    model: Transformer, ids_bq: Tensor, real: Tensor | None = None, documents: Tensor | None = None
) -> Tensor:
    """Say what each query may attend to, bool (batch or 1, 1, query, key). Raises UserError as `look` does."""
    refuse_nothing(ids_bq, real, documents)
    length, config = ids_bq.shape[1], model.config
    return Visible(
        length,
        length,
        ids_bq.device,
        causal=config.causal,
        real_bk=real,
        document_bk=documents,
        window=config.window,
    ).dense


def kept(value: Tensor) -> Tensor:
    """Give a copy that outlives the pass: on the host, without its graph, float32 or wider."""
    value = value.detach().to("cpu", torch.float64 if value.dtype == torch.float64 else torch.float32)
    return value.clone()


def _shown_to(function: Look) -> Callable[[Tensor, HookPoint], None]:
    def hook(value: Tensor, where: HookPoint) -> None:
        layer = where.layer()
        assert layer is not None
        function(value, layer)

    return hook
