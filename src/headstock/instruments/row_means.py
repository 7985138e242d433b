"""Means over tokens, with errors that do not take the tokens of one row for independent."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from headstock.errors import UserError


def as_numbers(given: Tensor | float) -> Tensor:
    """Give what a metric gave as float64 on the host."""
    try:
        numbers = torch.as_tensor(given, dtype=None if isinstance(given, Tensor) else torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise UserError(f"the metric gave {type(given).__name__}: let it give a number, or a tensor of them.") from None
    return numbers.detach().double().cpu()


@dataclass
class RowMeans:
    """A mean over tokens, with the standard error that follows from rows drawn independently.

    Tokens of one row belong together: the error is that of the ratio Σ sums / Σ counts, row by row.
    """

    sums: list[Tensor] = field(default_factory=list)
    counts: list[Tensor] = field(default_factory=list)

    def add(self, sums_b: Tensor, counts_b: Tensor) -> None:
        """Add rows: what their tokens sum up to, and how many they are."""
        self.sums.append(sums_b.detach().double().cpu())
        self.counts.append(counts_b.detach().double().cpu())

    @property
    def count(self) -> int:
        """Tokens."""
        return int(sum(counts.sum().item() for counts in self.counts))

    @property
    def mean(self) -> float:
        """Not a number where there are no tokens."""
        return sum(sums.sum().item() for sums in self.sums) / self.count if self.count else math.nan

    @property
    def standard_error(self) -> float:
        """Not a number where fewer than two rows have tokens."""
        if not self.count:
            return math.nan
        sums, counts = torch.cat(self.sums), torch.cat(self.counts)
        sums, counts = sums[counts > 0], counts[counts > 0]
        rows = len(counts)
        if rows < 2:
            return math.nan
        apart = (sums - self.mean * counts).square().sum().item()
        return math.sqrt(apart * rows / (rows - 1)) / self.count
