"""Writing a model weight by weight: every call checks at once that what it writes fits, and a refusal names the call.

    m = by_hand(["a", "b", "share of a"], vocabulary="ab", context=8)
    m.token("a", "a").token("b", "b")
    m.head(0, "share of a", looks_for=[], offers=[], carries="a", writes="share of a")
    m.logit("a", "share of a").logit("b", Reading({"share of a": -1}, constant=1))
    model = m.build()

Where one number is meant, {"a": 1, "b": -1}, the bare name "a" for {"a": 1}, and Reading({...}, constant) will do;
where several are, a list of them, and one alone is a list of one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import torch

from headstock.errors import UserError, near_name
from headstock.model.transformer import Transformer
from headstock.programs.blueprint import Blueprint, Columns, Head, Layer, Reading, Unit
from headstock.programs.blueprint.fitting import is_whole

Written = Mapping[str, float] | str
"""Columns and how much of each."""
Number = Written | Reading
"""A number read off the residual."""


def by_hand(
    columns: Sequence[str],
    *,
    vocabulary: Sequence[str],
    context: int,
    causal: bool = True,
    d_head: int | None = None,
    divide_scores: bool = False,
    tied: bool = False,
    biases: Literal["always"] | None = None,
) -> "Builder":
    """Give a builder whose model has these columns and tokens, and no weights yet: see `Blueprint` for the choices.

    Raises UserError where they do not fit together.
    """
    nothing: tuple[Columns, ...] = ({},) * len(vocabulary)
    logits = () if tied else tuple(Reading(holds) for holds in nothing)
    return Builder(
        Blueprint(
            tuple(columns),
            tuple(vocabulary),
            context,
            tokens=nothing,
            places=None,
            layers=(),
            logits=logits,
            causal=causal,
            d_head=d_head,
            divide_scores=divide_scores,
            tied=tied,
            biases=biases,
        ),
        unsaid=[f"{what}({name!r}, ...)" for what in ("token", *(() if tied else ("logit",))) for name in vocabulary],
    )


class Builder:
    """A model in the making, from nothing by `by_hand`, or from any blueprint, a compiled model's too.

    `blueprint` and `build` give what is written so far; writing can go on after.
    """

    def __init__(self, blueprint: Blueprint, *, unsaid: Sequence[str] = ()) -> None:
        names = blueprint.vocabulary
        twice = [name for index, name in enumerate(names) if name in names[:index]]
        if twice:
            raise UserError(f"token {twice[0]!r} is named twice: give each token a name of its own.")
        self._blueprint = blueprint
        self._unsaid = dict.fromkeys(unsaid)
        """The calls that the model still waits for, in order."""

    def column(self, *names: str) -> Self:
        """Add columns to the residual."""
        return self._write("column", columns=(*self._blueprint.columns, *names))

    def token(self, name: str, holds: Written) -> Self:
        """Say what a token's embedding holds, in place of what was said before."""
        call = f"token({name!r}, ...)"
        tokens = _with(self._blueprint.tokens, self._id(name, call), _written(holds, call))
        return self._write(call, tokens=tokens)

    def place(self, position: int, holds: Written) -> Self:
        """Say what a position's embedding holds, in place of what was said before; then all positions need it said."""
        call, context = f"place({position!r}, ...)", self._blueprint.context
        if not is_whole(position) or not 0 <= position < context:
            raise UserError(f"{call}: the context is {context}: choose a position from 0 to {context - 1}.")
        places, holds = self._blueprint.places, _written(holds, call)
        if places is not None:
            return self._write(call, places=_with(places, position, holds))
        self._write(call, places=_with(({},) * context, position, holds))
        self._unsaid |= {f"place({index}, ...)": None for index in range(context) if index != position}
        return self

    def head(
        self,
        layer: int,
        name: str,
        *,
        looks_for: Number | Sequence[Number],
        offers: Number | Sequence[Number],
        carries: Number | Sequence[Number],
        writes: Written | Sequence[Written],
    ) -> Self:
        """Add a head to a layer, or to a new one on top: see `Head` for what the four are."""
        call = f"head({layer!r}, {name!r}, ...)"
        head = Head(
            name,
            looks_for=tuple(_reading(one, call) for one in _listed(looks_for)),
            offers=tuple(_reading(one, call) for one in _listed(offers)),
            carries=tuple(_reading(one, call) for one in _listed(carries)),
            writes=tuple(_written(one, call) for one in _listed(writes)),
        )
        old = self._layer(layer, call)
        return self._put(call, layer, replace(old, heads=(*old.heads, head)))

    def unit(self, layer: int, reads: Number, writes: Written, *, name: str = "") -> Self:
        """Add a ReLU unit to a layer, or to a new one on top."""
        call = f"unit({layer!r}, ...)"
        unit = Unit(_reading(reads, call), _written(writes, call), name)
        old = self._layer(layer, call)
        return self._put(call, layer, replace(old, units=(*old.units, unit)))

    def adds(self, layer: int, constants: Written, *, by: Literal["feed-forward", "heads"] = "feed-forward") -> Self:
        """Say what constants a layer adds at every position, by the output bias of its feed-forward or of its heads."""
        call = f"adds({layer!r}, ...)"
        if by not in ("feed-forward", "heads"):
            raise UserError(f"{call}: by is {by!r}: choose 'feed-forward' or 'heads'.")
        old, added = self._layer(layer, call), _written(constants, call)
        new = replace(old, adds=added) if by == "feed-forward" else replace(old, attention_adds=added)
        return self._put(call, layer, new)

    def logit(self, name: str, reads: Number) -> Self:
        """Say what a token's logit reads, in place of what was said before."""
        call = f"logit({name!r}, ...)"
        if self._blueprint.tied:
            raise UserError(f"{call}: a tied unembedding reads what token({name!r}, ...) holds: leave the call out.")
        logits = _with(self._blueprint.logits, self._id(name, call), _reading(reads, call))
        return self._write(call, logits=logits)

    def blueprint(self) -> Blueprint:
        """Give the model on paper. Raises UserError where a token, a position or a logit has not been written."""
        if self._unsaid:
            call = next(iter(self._unsaid))
            raise UserError(f"{call} is still to be called: with {{}} it says that there is nothing.")
        return self._blueprint

    def build(self, dtype: torch.dtype = torch.float32) -> Transformer:
        """Give the model, as `Blueprint.build` does."""
        return self.blueprint().build(dtype)

    def _write(self, call: str, **changes: Any) -> Self:
        try:
            self._blueprint = replace(self._blueprint, **changes)
        except UserError as error:
            raise UserError(f"{call}: {error}") from None
        self._unsaid.pop(call, None)
        return self

    def _put(self, call: str, index: int, layer: Layer) -> Self:
        layers = self._blueprint.layers
        return self._write(call, layers=(*layers[:index], layer, *layers[index + 1 :]))

    def _layer(self, index: int, call: str) -> Layer:
        layers = self._blueprint.layers
        if not is_whole(index) or not 0 <= index <= len(layers):
            there = "is 1 layer" if len(layers) == 1 else f"are {len(layers)} layers"
            known = "" if not layers else "0, or " if len(layers) == 1 else f"0 to {len(layers) - 1}, or "
            raise UserError(f"{call}: there {there} yet: choose {known}{len(layers)} for a new one.")
        return layers[index] if index < len(layers) else Layer()

    def _id(self, name: str, call: str) -> int:
        vocabulary = self._blueprint.vocabulary
        if name not in vocabulary:
            raise UserError(f"{call}: there is no token {name!r}: {near_name(str(name), vocabulary)}")
        return vocabulary.index(name)


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _reading(given: object, call: str) -> Reading:
    if isinstance(given, Reading):
        return Reading(_written(given.columns, call), given.constant)
    return Reading(_written(given, call))


def _written(given: object, call: str) -> Columns:
    if isinstance(given, str):
        return {given: 1.0}
    if isinstance(given, Mapping):
        return dict(given)
    raise UserError(f"{call}: {given!r} is no weights: write {{column: weight}}, or a column's name for a weight of 1.")


def _with(old: tuple[Any, ...], index: int, new: Any) -> tuple[Any, ...]:
    return (*old[:index], new, *old[index + 1 :])
