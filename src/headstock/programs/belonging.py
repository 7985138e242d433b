"""Which entries of which weights belong to a line of a program: what can be frozen by it.

To a line belong its heads (their rows of query, key and value, and their columns of the output map), its units (their
rows into the feed-forward and their columns out of it), and the columns of the embedding that hold what it computes
there. A head that several lines share belongs to each of them. To no line belong the unembedding, constants that are
added, units that clear a column to be used again, and heads and units that are empty.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from headstock.errors import UserError, near_name
from headstock.model.transformer import Transformer
from headstock.programs.explaining.anatomy import Anatomy, HeadPart, UnitPart

Masks = dict[str, Tensor]
"""For each weight by its name in `state_dict`, bool and of its shape: True where an entry is meant."""
ALL_BUT = "all but "
EMBEDDING, UNEMBEDDING = "embedding", "unembedding"


def frozen(anatomy: Anatomy, model: Transformer, freeze: str | Sequence[str]) -> Masks:
    """Give the entries that are not to be trained.

    freeze: names of expressions and lines such as `sorting.py:12`, of which all that belongs to them is meant, and
    `embedding` and `unembedding`, which are the whole of either; or "all but carry, digit", everything but what
    belongs to these. Raises UserError for what is none of them, or has no weights of its own.
    """
    asked = [freeze] if isinstance(freeze, str) else list(freeze)
    but = [one for one in asked if one.startswith(ALL_BUT)]
    if but and len(asked) > 1:
        raise UserError(f"{but[0]!r} says all that is frozen: leave the other names out.")
    if but:
        kept = _of_all(anatomy, model, [name.strip() for name in but[0].removeprefix(ALL_BUT).split(",")])
        return {name: ~mask for name, mask in kept.items()}
    return _of_all(anatomy, model, asked)


def _of_all(anatomy: Anatomy, model: Transformer, names: Iterable[str]) -> Masks:
    masks = {name: torch.zeros_like(weight, dtype=torch.bool) for name, weight in model.state_dict().items()}
    for name in names:
        own = {at: torch.zeros_like(mask) for at, mask in masks.items()}
        _mark(own, anatomy, model.config.d_head, name)
        if not any(bool(mask.any()) for mask in own.values()):
            raise UserError(
                f"no weight belongs to {name!r}: it is folded into what reads it; name an expression that has heads, "
                f"units or columns of the embedding, as explain tells."
            )
        for at, mask in own.items():
            masks[at] |= mask
    return masks


def _mark(masks: Masks, anatomy: Anatomy, d_head: int, name: str) -> None:
    """Set True what belongs to a name or a line."""
    whole: Mapping[str, tuple[str, ...]] = {
        EMBEDDING: ("embed.weight", "position.weight"),
        UNEMBEDDING: ("unembed.weight", "unembed.bias"),
    }
    if name in whole:
        for at in whole[name]:
            _set(masks, at, ...)
        return
    line = _line_of(anatomy, name)
    for head in anatomy.heads:
        if line and line in head.lines:
            _mark_head(masks, head, d_head)
    for part in anatomy.units:
        if line and part.line == line:
            _mark_units(masks, part)
    for column in _columns(anatomy, name, line):
        for at in whole[EMBEDDING]:
            _set(masks, at, (slice(None), column))


def _line_of(anatomy: Anatomy, name: str) -> str:
    """Give the line that is meant; empty for a word of the language, which stands on none."""
    by_name = {one.name: one.line for one in anatomy.expressions}
    if name in by_name:
        return by_name[name]
    lines = {one.line for one in anatomy.expressions} | {part.line for part in anatomy.units}
    lines |= {line for head in anatomy.heads for line in head.lines}
    lines |= {held.line for column in anatomy.columns for held in column.holds}
    if name and name in lines:
        return name
    known = [*by_name, *lines - {""}, EMBEDDING, UNEMBEDDING]
    raise UserError(f"the program has no expression and no line {name!r}: {near_name(name, known)}")


def _columns(anatomy: Anatomy, name: str, line: str) -> list[int]:
    """Give the columns that the embedding fills with what a name or a line computes."""
    of_line = [
        column.number
        for column in anatomy.columns
        for held in column.holds
        if not held.since and line and held.line == line
    ]
    of_name = [
        term.column
        for one in anatomy.expressions
        if one.time == 0 and (one.name == name or (line and one.line == line))
        for term in one.terms
    ]
    return sorted({*of_line, *of_name})


def _mark_head(masks: Masks, head: HeadPart, d_head: int) -> None:
    at = f"blocks.{head.layer}.mixer."
    own = slice(head.number * d_head, (head.number + 1) * d_head)
    for map_name in ("query", "key", "value"):
        _set(masks, f"{at}{map_name}.weight", own)
        _set(masks, f"{at}{map_name}.bias", own)
    _set(masks, f"{at}output.weight", (slice(None), own))


def _mark_units(masks: Masks, part: UnitPart) -> None:
    at = f"blocks.{part.layer}.feedforward."
    own = slice(part.first, part.last + 1)
    _set(masks, f"{at}into.weight", own)
    _set(masks, f"{at}into.bias", own)
    _set(masks, f"{at}out.weight", (slice(None), own))


def _set(masks: Masks, name: str, where: Any) -> None:
    if name in masks:  # a model without biases, or without positions, has none
        masks[name][where] = True
