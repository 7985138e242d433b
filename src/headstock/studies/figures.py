"""Expressions over a study's figures, and numbers: `figure("block", "perplexity") - figure("wide", "perplexity")`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias

Figures: TypeAlias = Mapping[str, Mapping[str, float]]
"""By row and name, of one seed."""


class Ours(ABC):
    """A number that is made of one seed's figures."""

    @abstractmethod
    def of(self, figures: Figures) -> float:
        """Work it out; raises KeyError where a figure is not there."""

    @abstractmethod
    def reads(self) -> frozenset[tuple[str, str]]:
        """Give which figures it is made of, as (row, name)."""

    def __sub__(self, other: "Ours | float") -> "Ours":
        return NotImplemented if (one := _ours(other)) is None else _Less(self, one)

    def __truediv__(self, other: "Ours | float") -> "Ours":
        return NotImplemented if (one := _ours(other)) is None else _Over(self, one)


@dataclass(frozen=True)
class _Figure(Ours):
    row: str
    name: str

    def of(self, figures: Figures) -> float:
        return figures[self.row][self.name]

    def reads(self) -> frozenset[tuple[str, str]]:
        return frozenset({(self.row, self.name)})


@dataclass(frozen=True)
class _Number(Ours):
    value: float

    def of(self, figures: Figures) -> float:
        return self.value

    def reads(self) -> frozenset[tuple[str, str]]:
        return frozenset()


@dataclass(frozen=True)
class _Pair(Ours):
    one: Ours
    other: Ours

    def reads(self) -> frozenset[tuple[str, str]]:
        return self.one.reads() | self.other.reads()


class _Less(_Pair):
    def of(self, figures: Figures) -> float:
        return self.one.of(figures) - self.other.of(figures)


class _Over(_Pair):
    def of(self, figures: Figures) -> float:
        return self.one.of(figures) / self.other.of(figures)


def _ours(value: object) -> Ours | None:
    if isinstance(value, Ours):
        return value
    return _Number(float(value)) if isinstance(value, Real) else None


def figure(row: str, name: str) -> Ours:
    """Give one figure of one row."""
    return _Figure(row, name)


def perplexity(row: str) -> Ours:
    """Give a row's held-out perplexity."""
    return _Figure(row, "perplexity")
