"""What a head's output is replaced by while others are left as they are: zero, a mean, or another row's."""

import operator
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from headstock.errors import UserError, near_name
from headstock.instruments.passes import lists, look
from headstock.model.hook_functions import Hook, HookFunction, HookPoint
from headstock.model.transformer import Transformer

How: TypeAlias = Literal["zero", "mean", "resample"]
HEAD_OUTPUT = "attn.hook_z"


def head_count(model: Transformer) -> int:
    """Give the heads a layer whose outputs the output map reads; one pass over one token says so."""
    counts: list[int] = []
    ids = torch.zeros(1, 1, dtype=torch.int64, device=model.embed.weight.device)
    with model.hook_stack.asleep():  # functions that wait there wait for the caller's own tokens
        look(model, ids, {HEAD_OUTPUT: lambda z_bqhd, _: counts.append(z_bqhd.shape[2])})
    return counts[0]


def chosen_heads(model: Transformer, heads: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    """Give the heads by layer. Raises UserError for those that are not there."""
    chosen: dict[int, list[int]] = {}
    pairs = list(heads)
    if not pairs:
        return chosen
    n_layers = len(model.blocks)
    refuse_without_heads(model)
    n_heads = head_count(model) if n_layers else 0
    for pair in pairs:
        if not (isinstance(pair, Sequence) and len(pair) == 2):
            raise UserError(f"{pair!r} names no head: give pairs (layer, head), such as [(0, 3)].")
        try:
            layer, head = (operator.index(number) for number in pair)
        except TypeError:
            raise UserError(f"{pair!r} names no head: give two whole numbers, layer and head.") from None
        if not (0 <= layer < n_layers and 0 <= head < n_heads):
            raise UserError(
                f"there is no head {head} in layer {layer}: {model.described} has {n_layers} layers of {n_heads} "
                f"heads, both counted from 0."
            )
        chosen.setdefault(layer, []).append(head)
    return chosen


def refuse_without_heads(model: Transformer) -> None:
    """Raise UserError where the mixer does not show what its heads give."""
    if not lists(model, HEAD_OUTPUT):
        raise UserError(
            f"{model.config.mixer} does not show what its heads give (attn.hook_z), so none can be ablated."
        )


def gathered_outputs(model: Transformer, reference: Tensor, real: Tensor | None, layers: set[int]) -> dict[int, Tensor]:
    """Give hook_z of the layers on the reference, by layer."""
    found: dict[int, Tensor] = {}

    def gather(z_bqhd: Tensor, layer: int) -> None:
        if layer in layers:
            found[layer] = z_bqhd.clone()

    device = model.embed.weight.device
    look(model, reference.to(device), {HEAD_OUTPUT: gather}, real=None if real is None else real.to(device))
    return found


def replacing(
    chosen: dict[int, list[int]],
    how: How,
    gathered: dict[int, Tensor],
    real: Tensor | None = None,
    by_position: bool = False,
    seed: int = 0,
) -> list[Hook]:
    """Give the hooks that replace what heads give."""
    hooks: list[Hook] = []
    for layer, heads in chosen.items():
        put = _zero(heads)
        if how == "mean":
            put = _mean(heads, gathered[layer], real, by_position)
        elif how == "resample":
            put = _resample(heads, gathered[layer], seed)
        hooks.append((f"blocks.{layer}.{HEAD_OUTPUT}", put))
    return hooks


def refuse_how(how: str) -> None:
    """Raise UserError for a way of replacing that there is not."""
    if how not in get_args(How):
        raise UserError(f"heads cannot be ablated by {how!r}: {near_name(str(how), get_args(How))}")


def _zero(heads: list[int]) -> HookFunction:
    def put(z_bqhd: Tensor, hook: HookPoint) -> None:
        z_bqhd[:, :, heads] = 0

    return put


def _mean(heads: list[int], reference_bqhd: Tensor, real: Tensor | None, by_position: bool) -> HookFunction:
    reference_bqhd = reference_bqhd.double()
    counted_bq = torch.ones_like(reference_bqhd[:, :, 0, 0]) if real is None else real.double()
    axes = (0,) if by_position else (0, 1)
    count = counted_bq.sum(axes)
    if not bool((count > 0).all()):
        raise UserError("a position of the reference is padding in every row, so it has no mean: give more rows.")
    total = (reference_bqhd * counted_bq[:, :, None, None]).sum(axes)
    mean = (total / count[..., None, None])[..., heads, :]  # (head, d), or (position, head, d)

    def put(z_bqhd: Tensor, hook: HookPoint) -> None:
        if by_position and z_bqhd.shape[1] != len(mean):
            raise UserError(
                f"the pass reads {z_bqhd.shape[1]} tokens but the means are of {len(mean)} positions: give as many, or "
                f"leave by_position out."
            )
        z_bqhd[:, :, heads] = mean.to(z_bqhd)

    return put


def _resample(heads: list[int], reference_bqhd: Tensor, seed: int) -> HookFunction:
    def put(z_bqhd: Tensor, hook: HookPoint) -> None:
        if z_bqhd.shape[1] != reference_bqhd.shape[1]:
            raise UserError(
                f"the pass reads {z_bqhd.shape[1]} tokens but the reference has {reference_bqhd.shape[1]}: resample "
                f"takes position by position, so give a reference as long."
            )
        rows = other_rows(len(z_bqhd), len(reference_bqhd), seed).to(z_bqhd.device)
        z_bqhd[:, :, heads] = reference_bqhd[rows][:, :, heads]

    return put


def other_rows(rows: int, of: int, seed: int) -> Tensor:
    """Draw for each of the rows one of the reference's; with as many of both each is drawn once and none by itself.

    Raises UserError where a single row has no other.
    """
    generator = torch.Generator().manual_seed(seed)
    if rows != of:
        return torch.randint(of, (rows,), generator=generator)
    if rows == 1:
        raise UserError("a single row has no other to take values from: give a reference of more rows.")
    order = torch.randperm(rows, generator=generator)
    drawn = torch.empty_like(order)
    drawn[order] = order.roll(-1)  # one round through all rows
    return drawn
