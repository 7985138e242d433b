"""A model on paper: named residual columns, and every weight as "this column counts so much".

What a compiler ends in and a person writes. It holds numbers and names, knows nothing of programs, and refuses what
does not fit together, naming the layer, the head and the column. `build` turns it into a Transformer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import torch

from headstock.errors import UserError
from headstock.model.config import ModelConfig
from headstock.model.transformer import Transformer
from headstock.programs.blueprint import assembling, fitting

Columns = Mapping[str, float]
"""Residual columns by name, and how much of each; a column that is not named counts nothing."""


@dataclass(frozen=True)
class Reading:
    """A number read off the residual at one position: Σ weight · column + constant."""

    columns: Columns
    constant: float = 0.0


@dataclass(frozen=True)
class Head:
    """One attention head; its score is Σ looks_for · offers, the query's numbers times the key's.

    The score is not divided by anything, unless the blueprint's `divide_scores` says so.
    """

    name: str
    """What it is for."""
    looks_for: tuple[Reading, ...]
    """The query's numbers."""
    offers: tuple[Reading, ...]
    """The key's numbers, as many."""
    carries: tuple[Reading, ...]
    """The value's numbers, which the head averages."""
    writes: tuple[Columns, ...]
    """For each carried number, the columns its average is added to, and how much of it."""

    @property
    def numbers(self) -> int:
        """The size of a head that holds this one."""
        return max(len(self.looks_for), len(self.offers), len(self.carries))


@dataclass(frozen=True)
class Unit:
    """One ReLU unit of a feed-forward: max(0, reads), added to columns."""

    reads: Reading
    writes: Columns
    name: str = ""


@dataclass(frozen=True)
class Layer:
    """Heads side by side, then units side by side; the units read what the heads have written."""

    heads: tuple[Head, ...] = ()
    units: tuple[Unit, ...] = ()
    adds: Columns = field(default_factory=dict)
    """Constants that the feed-forward adds at every position: its output bias."""
    attention_adds: Columns = field(default_factory=dict)
    """Constants that the heads' output map adds at every position: its bias."""


@dataclass(frozen=True)
class Blueprint:
    """A whole model by its weights.

    Raises UserError where a column is unknown or named twice, a weight is not a finite number, or counts do not match.
    """

    columns: tuple[str, ...]
    """The residual's columns, by name."""
    vocabulary: tuple[str, ...]
    """What each token id is shown as, from 0."""
    context: int
    tokens: tuple[Columns, ...]
    """What each token id's embedding holds."""
    places: tuple[Columns, ...] | None
    """What each position's embedding holds, 0 to context − 1; None for a model without positions."""
    layers: tuple[Layer, ...]
    logits: tuple[Reading, ...]
    """What each token id's logit reads; may be left empty if tied."""
    causal: bool
    d_head: int | None = None
    """Size of a head; None takes what the largest head needs."""
    divide_scores: bool = False
    """Let the model divide scores by √d_head, as it does where nothing else is said."""
    tied: bool = False
    """The logits read what the tokens' embeddings hold: a logit is the residual times the token's embedding."""
    biases: Literal["always"] | None = None
    """None gives a map a bias where some constant asks for one; "always" gives one to every map that can have it."""

    def __post_init__(self) -> None:
        fitting.refuse_misfits(self)

    @property
    def head_size(self) -> int:
        """d_head, chosen if it was not given."""
        if self.d_head is not None:
            return self.d_head
        most = max((head.numbers for layer in self.layers for head in layer.heads), default=1)
        return max(most, 1)

    @property
    def readings_of_logits(self) -> tuple[Reading, ...]:
        """What each token id's logit reads, tied or not."""
        return self.logits or tuple(Reading(holds) for holds in self.tokens)

    def config(self) -> ModelConfig:
        """Give the config of the model that `build` makes: softmax, no norm, ReLU units or none."""
        return assembling.config_of_blueprint(self)

    def build(self, dtype: torch.dtype = torch.float32) -> Transformer:
        """Give the model with these weights, in evaluation mode, on the CPU.

        Raises UserError where the dtype cannot hold a weight: one too large, or too small to keep its digits.
        """
        return assembling.assembled(self, dtype)

    def size(self) -> "assembling.Size":
        """Count the weights that the model has, and those that are not 0."""
        return assembling.size_of(self)

    def with_columns(self, *names: str) -> "Blueprint":
        """Give this model with more columns, which nothing reads or writes yet."""
        return replace(self, columns=(*self.columns, *names))

    def with_layer(self, layer: Layer | None = None) -> "Blueprint":
        """Give this model with one more layer on top, an empty one if none is given."""
        return replace(self, layers=(*self.layers, Layer() if layer is None else layer))

    def with_head(self, layer: int, head: Head) -> "Blueprint":
        """Give this model with one more head in a layer."""
        old = self.layer(layer)
        return self._with(layer, replace(old, heads=(*old.heads, head)))

    def with_unit(self, layer: int, unit: Unit) -> "Blueprint":
        """Give this model with one more unit in a layer."""
        old = self.layer(layer)
        return self._with(layer, replace(old, units=(*old.units, unit)))

    def layer(self, index: int) -> Layer:
        """Give one layer. Raises UserError where there is none of that number."""
        if not fitting.is_whole(index) or not 0 <= index < len(self.layers):
            there = f"layers 0 to {len(self.layers) - 1}" if self.layers else "no layers"
            raise UserError(f"there is no layer {index!r}: the model has {there}; add one by with_layer().")
        return self.layers[index]

    def _with(self, index: int, layer: Layer) -> "Blueprint":
        return replace(self, layers=(*self.layers[:index], layer, *self.layers[index + 1 :]))
