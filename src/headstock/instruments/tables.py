"""Labels and cells of the tables that instruments draw: layers down, heads or positions across."""

from collections.abc import Sequence

from torch import Tensor

from headstock.errors import UserError
from headstock.pictures.grid import MOST


def layer_labels(n_layers: int) -> list[str]:
    """Give "layer 0", "layer 1", …"""
    return [f"layer {layer}" for layer in range(n_layers)]


def head_labels(n_heads: int) -> list[str]:
    """Give "0", "1", …"""
    return [str(head) for head in range(n_heads)]


def cells(values: Tensor) -> list[list[float]]:
    """Give two axes of numbers as lists."""
    return values.double().tolist()


def position_labels(length: int, labels: Sequence[str] | None) -> list[str]:
    """Give each position's number, and after it its label where labels are given.

    Raises UserError where there is not one label a position.
    """
    if labels is None:
        return [str(position) for position in range(length)]
    if len(labels) != length:
        raise UserError(f"{len(labels)} labels were given for {length} positions: give one a position.")
    spelt = (label.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥") or "∅" for label in labels)
    return [f"{position} {label}" for position, label in enumerate(spelt)]


def shown_positions(length: int, first: int) -> slice:
    """Give the positions from `first` on that one picture has room for. Raises UserError where there are none."""
    if not 0 <= first < length:
        raise UserError(f"there is no position {first}: choose from 0 to {length - 1}.")
    return slice(first, min(length, first + MOST))
