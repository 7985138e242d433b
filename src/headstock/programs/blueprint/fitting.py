"""Whether a blueprint fits together: every refusal says which layer, head, unit, token or position it is about."""

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING

from headstock.errors import UserError, near_name

if TYPE_CHECKING:
    from headstock.programs.blueprint import Blueprint, Columns, Head, Reading

MOST_NAMED = 20
"""Columns that a sentence lists at most."""


def refuse_misfits(blueprint: "Blueprint") -> None:
    """Raise UserError for the first thing that does not fit."""
    _refuse_sizes(blueprint)
    known = frozenset(blueprint.columns)
    for token, holds in zip(blueprint.vocabulary, blueprint.tokens, strict=True):
        _refuse_columns(holds, known, f"token {token!r} holds")
    for position, holds in enumerate(blueprint.places or ()):
        _refuse_columns(holds, known, f"position {position} holds")
    for index, layer in enumerate(blueprint.layers):
        for head in layer.heads:
            refuse_head(head, known, f"head {head.name!r} of layer {index}", blueprint.d_head)
        for number, unit in enumerate(layer.units):
            what = f"unit {number}{f' ({unit.name})' if unit.name else ''} of layer {index}"
            _refuse_reading(unit.reads, known, f"{what} reads")
            _refuse_columns(unit.writes, known, f"{what} writes")
        _refuse_columns(layer.adds, known, f"the feed-forward of layer {index} adds")
        _refuse_columns(layer.attention_adds, known, f"the attention of layer {index} adds")
    for token, reading in zip(blueprint.vocabulary, blueprint.readings_of_logits, strict=True):
        _refuse_reading(reading, known, f"the logit of {token!r} reads")


def is_whole(number: object) -> bool:
    """Whether something is a whole number, and not True or False."""
    return isinstance(number, int) and not isinstance(number, bool)


def refuse_head(head: "Head", known: frozenset[str], what: str, d_head: int | None = None) -> None:
    """Raise UserError where a head's numbers do not match each other, or it names an unknown column."""
    if len(head.looks_for) != len(head.offers):
        raise UserError(
            f"{what} looks for {_counted(head.looks_for)} and offers {len(head.offers)}: its score multiplies them "
            f"one by one, so give as many of one as of the other."
        )
    if len(head.carries) != len(head.writes):
        raise UserError(
            f"{what} carries {_counted(head.carries)} and writes {len(head.writes)}: say for each carried number "
            f"which columns it is written to."
        )
    if d_head is not None and head.numbers > d_head:
        raise UserError(f"{what} needs {head.numbers} numbers but d_head is {d_head}: choose d_head of at least that.")
    for readings, verb in ((head.looks_for, "looks for"), (head.offers, "offers"), (head.carries, "carries")):
        for reading in readings:
            _refuse_reading(reading, known, f"{what} {verb}")
    for writes in head.writes:
        _refuse_columns(writes, known, f"{what} writes")


def _refuse_sizes(blueprint: "Blueprint") -> None:
    for names, what in ((blueprint.columns, "column"), (blueprint.vocabulary, "token")):
        if not names:
            raise UserError(f"the model has no {what}s: name at least one {what}.")
    twice = [name for name, count in _counts(blueprint.columns) if count > 1]
    if twice:
        raise UserError(f"column {twice[0]!r} is named twice: give each column a name of its own.")
    if not is_whole(blueprint.context) or blueprint.context < 1:
        raise UserError(f"the context is {blueprint.context!r}: give a whole number of positions, at least 1.")
    d_head = blueprint.d_head
    if d_head is not None and (not is_whole(d_head) or d_head < 1):
        raise UserError(f"d_head is {d_head!r}: give a whole number, at least 1.")
    vocabulary = len(blueprint.vocabulary)
    if len(blueprint.tokens) != vocabulary:
        raise UserError(
            f"{vocabulary} tokens are named and {len(blueprint.tokens)} embeddings given: give one a token."
        )
    if blueprint.places is not None and len(blueprint.places) != blueprint.context:
        raise UserError(
            f"the context is {blueprint.context} and {len(blueprint.places)} positions are given: give one a position, "
            f"or places=None for a model without positions."
        )
    if blueprint.biases not in (None, "always"):
        raise UserError(f"biases is {blueprint.biases!r}: choose 'always', or None for those that a constant asks for.")
    _refuse_logits(blueprint)


def _refuse_logits(blueprint: "Blueprint") -> None:
    vocabulary = len(blueprint.vocabulary)
    if len(blueprint.logits) != vocabulary and not (blueprint.tied and not blueprint.logits):
        raise UserError(f"{vocabulary} tokens are named and {len(blueprint.logits)} logits given: give one a token.")
    if not blueprint.tied:
        return
    for token, reading, holds in zip(blueprint.vocabulary, blueprint.readings_of_logits, blueprint.tokens, strict=True):
        if reading.constant or _nonzero(reading.columns) != _nonzero(holds):
            raise UserError(
                f"the logit of {token!r} reads something else than its embedding holds, but the unembedding is tied "
                f"to the embedding: leave logits empty, or set tied=False."
            )


def _refuse_reading(reading: "Reading", known: frozenset[str], what: str) -> None:
    _refuse_columns(reading.columns, known, what)
    _refuse_number(reading.constant, f"{what} the constant")


def _refuse_columns(columns: "Columns", known: frozenset[str], what: str) -> None:
    if not isinstance(columns, Mapping):
        raise UserError(f"{what} {columns!r}, which is no weights: write {{column: weight}}.")
    for name, weight in columns.items():
        if name not in known:
            raise UserError(f"{what} column {name!r}, which is not there: {_hint(name, known)}")
        _refuse_number(weight, f"{what} column {name!r} times")


def _refuse_number(weight: object, what: str) -> None:
    if not isinstance(weight, Real):
        raise UserError(f"{what} {weight!r}, which is no number: give one.")
    try:
        finite = math.isfinite(float(weight))
    except OverflowError:
        finite = False
    if not finite:
        raise UserError(f"{what} {weight}, which no weight can be: give a finite number.")


def _hint(name: object, known: frozenset[str]) -> str:
    hint = near_name(str(name), known)
    if hint.startswith("did you mean") or len(known) <= MOST_NAMED:
        return hint
    return f"name one of the model's {len(known)} columns, or add it to them."


def _nonzero(columns: "Columns") -> dict[str, float]:
    return {name: weight for name, weight in columns.items() if weight}


def _counts(names: Iterable[str]) -> Iterable[tuple[str, int]]:
    counted: dict[str, int] = {}
    for name in names:
        counted[name] = counted.get(name, 0) + 1
    return counted.items()


def _counted(numbers: Sequence[object]) -> str:
    return "1 number" if len(numbers) == 1 else f"{len(numbers)} numbers"
