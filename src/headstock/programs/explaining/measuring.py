"""What a compiled model holds while it reads one sequence: the number for each expression, and each head's weights."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headstock.model.transformer import Transformer
from headstock.programs.explaining.anatomy import Anatomy, Traced
from headstock.programs.reading_out import Readout
from headstock.programs.values import Value

Weights = tuple[tuple[float, ...], ...]
"""[query][key]"""


@dataclass(frozen=True)
class Measured:
    """One sequence, as a model read it; the start token, if there is one, is left out of expressions."""

    tokens: tuple[Value, ...]
    labels: tuple[str, ...]
    """What each position of the model read, the start token included: queries and keys of the heads."""
    numbers: tuple[tuple[float, ...] | None, ...]
    """For each expression of the anatomy its code at every position; None where the model has none."""
    heads: tuple[Weights, ...]
    output: tuple[Value, ...]


def measured(model: Transformer, readout: Readout, anatomy: Anatomy, sequence: Sequence[Value]) -> Measured:
    """Read a sequence once and give all of it. Raises UserError for a sequence outside the domain."""
    (read,) = readout.read([sequence])
    ids_1q, _ = readout.ids_of([read])
    residuals, patterns, logits_qv = _pass(model, ids_1q, anatomy)
    skipped = int(readout.start is not None)
    numbers = tuple(_number(one, residuals, len(read), skipped) for one in anatomy.expressions)
    heads = tuple(_weights(patterns[head.layer][0, head.number]) for head in anatomy.heads)
    labels = tuple(readout.names[token] for token in ids_1q[0].tolist())
    return Measured(tuple(read), labels, numbers, heads, tuple(readout.understood(logits_qv[skipped:])))


def nearest(codes: Mapping[Value, float], numbers: Sequence[float]) -> list[Value]:
    """Give for each number the value whose code is the nearest."""
    in_order = sorted(codes.items(), key=lambda pair: pair[1])
    places = [code for _, code in in_order]
    found = []
    for number in numbers:
        place = bisect_left(places, number)
        among = in_order[max(0, place - 1) : place + 1]
        found.append(min(among, key=lambda pair: abs(pair[1] - number))[0])
    return found


def _pass(model: Transformer, ids_1q: Tensor, anatomy: Anatomy) -> tuple[dict[int, Tensor], list[Tensor], Tensor]:
    """Give the residual (position, column) at every half-layer, each layer's weights, and the logits."""
    ids_1q = ids_1q.to(model.embed.weight.device)
    known = set(model.hook_names())
    names: dict[int, str] = {0: "blocks.0.hook_resid_pre"} if anatomy.n_layers else {}
    for layer in range(anatomy.n_layers):
        between, after = f"blocks.{layer}.hook_resid_mid", f"blocks.{layer}.hook_resid_post"
        names[2 * layer + 1] = between if between in known else after
        names[2 * layer + 2] = after
    patterns = [f"blocks.{layer}.attn.hook_pattern" for layer in range(anatomy.n_layers)]
    embedded = [] if anatomy.n_layers else [name for name in ("hook_embed", "hook_pos_embed") if name in known]
    with torch.no_grad():
        logits_1qv, cache = model.run_with_cache(ids_1q, names=[*names.values(), *patterns, *embedded])
        residuals = {time: cache[name][0].double().cpu() for time, name in names.items()}
        if embedded:
            residuals[0] = torch.stack([cache[name][0].double().cpu() for name in embedded]).sum(0)
        return residuals, [cache[name].double().cpu() for name in patterns], logits_1qv[0].cpu()


def _number(one: Traced, residuals: dict[int, Tensor], length: int, skipped: int) -> tuple[float, ...] | None:
    if one.codes is None or one.time is None:
        return None
    total = torch.full((length,), one.constant, dtype=torch.float64)
    for term in one.terms:
        total += term.weight * residuals[one.time][skipped:, term.column]
    return tuple(total.tolist())


def _weights(pattern_qk: Tensor) -> Weights:
    return tuple(tuple(row) for row in pattern_qk.tolist())
