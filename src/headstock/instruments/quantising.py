"""A model run in fewer bits: its attention logits, its weights or its activations rounded inside a `with` block."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor, nn

from headstock.errors import UserError, near_name
from headstock.instruments.passes import lists, undisturbed
from headstock.instruments.rounding import Per, refuse_rounding, rounded
from headstock.model.transformer import Transformer

Quantised: TypeAlias = Literal["attention logits", "weights", "activations"]
SCORES = "attn.hook_attn_scores"


@contextmanager
def quantised(
    model: Transformer,
    bits: int,
    of: Quantised | Sequence[Quantised] = "attention logits",
    *,
    per: Per = "tensor",
) -> Iterator[Transformer]:
    """Let the model run with its attention logits, weights or activations rounded to so many bits, in any pass inside.

    Rounded are, by absmax (see `rounding.rounded`) and at once put back into floating point:
    attention logits: scores as `hook_attn_scores` shows them, with a position's penalty and after a cap; hidden ones
    stay hidden and do not count. Each of the two maps of a differential mixer is a tensor of its own.
    weights: every parameter of the blocks with two axes or more. Embeddings, the unembedding, norms and biases stay.
    activations: what every linear map of the blocks reads.

    per: whether one scale serves a whole tensor, or each "row": a query's logits, an output's weights, a token's
    activations. Scales of logits and activations are taken anew in every pass, of the whole batch. Attention
    logits alone, by absmax: Ye et al., "Differential Transformer" (2024).

    Leaving the block, by an exception too, puts back every weight bit for bit; what was changed of them inside is lost.
    Raises UserError for a mixer that shows no scores, for a model without blocks, where there is nothing to round,
    and where a linear map of a block is used past what can be rounded, as an LSTM's recurrence is.
    """
    refuse_rounding(bits, per)
    kinds = kinds_of(of)
    if not len(model.blocks):
        raise UserError("the model has no blocks, so there is nothing to quantise: give one with n_layers ≥ 1.")
    with ExitStack() as leaving:
        if "attention logits" in kinds:
            names = score_names(model)
            leaving.enter_context(model.hooks([(names, lambda scores_bhqk, _: rounded(scores_bhqk, bits, per))]))
        if "activations" in kinds:
            leaving.enter_context(_inputs_rounded(model, bits, per))
        if "weights" in kinds:
            leaving.enter_context(_parameters_rounded(model, bits, per))
        yield model


def kinds_of(of: Quantised | Sequence[Quantised]) -> tuple[Quantised, ...]:
    """Give what is to be rounded as a tuple. Raises UserError for what cannot be, and for nothing."""
    kinds: Sequence[Any] = (of,) if isinstance(of, str) or not isinstance(of, Iterable) else tuple(of)
    if not kinds:
        raise UserError(f"nothing is to be quantised: choose of {', '.join(get_args(Quantised))}.")
    for kind in kinds:
        if kind not in get_args(Quantised):
            raise UserError(f"{kind!r} cannot be quantised: {near_name(str(kind), get_args(Quantised))}")
    return tuple(kinds)


def score_names(model: Transformer) -> list[str]:
    """Give the names of all scores that the model's mixers show. Raises UserError where they show none."""
    shown = [which for which in ("", "_1", "_2") if lists(model, SCORES + which)]
    if shown not in ([""], ["_1", "_2"]):
        raise UserError(
            f"{model.config.mixer} shows no attention logits (attn.hook_attn_scores), so none can be quantised: choose "
            f"weights or activations, or another mixer."
        )
    return [f"blocks.{layer}.{SCORES}{which}" for layer in range(len(model.blocks)) for which in shown]


@contextmanager
def _parameters_rounded(model: Transformer, bits: int, per: Per) -> Iterator[None]:
    matrices = [parameter for parameter in model.blocks.parameters() if parameter.ndim >= 2]  # a shared one once
    _refuse_none(len(matrices), "weight matrices")
    before = [parameter.data for parameter in matrices]
    try:
        for parameter in matrices:
            parameter.data = rounded(parameter.data, bits, per)
        yield
    finally:
        for parameter, whole in zip(matrices, before, strict=True):
            parameter.data = whole


@contextmanager
def _inputs_rounded(model: Transformer, bits: int, per: Per) -> Iterator[None]:
    maps = {name: part for name, part in model.blocks.named_modules() if isinstance(part, nn.Linear)}
    _refuse_none(len(maps), "linear maps, whose inputs are the activations")
    reads = dict.fromkeys(maps, 0)

    def read(name: str, _: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        reads[name] += 1
        return (rounded(given[0], bits, per), *given[1:])

    with ExitStack() as leaving:
        for name, part in maps.items():
            leaving.callback(part.register_forward_pre_hook(partial(read, name)).remove)
        with undisturbed(model), model.hook_stack.asleep():
            model.hidden(torch.zeros(1, 1, dtype=torch.int64, device=model.embed.weight.device))
        _refuse_passed_over(model, reads)
        yield
        _refuse_passed_over(model, reads)  # as the output map is where hook_result is asked for


def _refuse_none(number: int, what: str) -> None:
    if not number:
        raise UserError(f"the blocks of this model have no {what}, so there is nothing to quantise.")


def _refuse_passed_over(model: Transformer, reads: dict[str, int]) -> None:
    """Raise UserError where some linear map was used without its input being rounded."""
    passed_over = [name for name, times in reads.items() if times < max(reads.values())]
    if passed_over:
        raise UserError(
            f"what blocks.{passed_over[0]} reads was not rounded in every pass, for {model.config.mixer} uses its "
            f"weight elsewhere: quantise weights alone, or read no hook_result inside."
        )
