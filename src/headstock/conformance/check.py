"""What a check is, and what it finds. Knows nothing of mixers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

if TYPE_CHECKING:
    from headstock.conformance.trial import Trial

Status = Literal["passed", "failed", "not applicable", "skipped"]

EXACT = 1e-10
"""Largest difference of what must be equal to rounding, in float64, as a share of the largest number, if above 1."""


@dataclass(frozen=True)
class Finding:
    """How a check ended, and what was seen: figures beside those allowed, or the reason why it says nothing."""

    status: Status
    found: str


class NotApplicableError(Exception):
    """The mixer does not claim what the check is about; the text says so."""


class SkippedError(Exception):
    """The check cannot be run here; the text says why."""


@dataclass(frozen=True)
class Check:
    """One law: a short name, how it is looked at, and what a failure usually comes from."""

    name: str
    look: Callable[["Trial"], Finding]
    usually: str
    dear: bool
    """Takes seconds, so it is run at one position alone unless every one is asked for."""
    slow: bool
    """Takes a minute, so it is run only where everything is asked for."""

    @property
    def law(self) -> str:
        """What must hold, as a sentence."""
        return " ".join((self.look.__doc__ or "").split())


def check(
    name: str, *, usually: str, dear: bool = False, slow: bool = False
) -> Callable[[Callable[["Trial"], Finding]], Check]:
    """Make a check of a function whose docstring says what must hold."""
    return lambda look: Check(name, look, usually, dear or slow, slow)


def passed(found: str) -> Finding:
    """Say that it holds."""
    return Finding("passed", found)


def failed(found: str) -> Finding:
    """Say that it does not hold."""
    return Finding("failed", found)


def apart(actual: Tensor, expected: Tensor) -> float:
    """Give the largest difference, as a share of the largest number expected where that is above 1; NaN for NaN."""
    if actual.shape != expected.shape:
        return math.inf
    if not expected.numel():
        return 0.0
    actual, expected = actual.detach().double(), expected.detach().double()
    difference = (actual - expected).abs().max() / expected.abs().max().clamp(min=1.0)
    return float(difference)


class Differences:
    """Gathers how far apart what must be equal is, and says where it is furthest."""

    def __init__(self, allowed: float = EXACT) -> None:
        self.allowed = allowed
        self.furthest = 0.0
        self.beyond: list[tuple[str, float]] = []

    def hold(self, where: str, actual: Tensor, expected: Tensor) -> None:
        """Hold one against the other."""
        difference = apart(actual, expected)
        if difference <= self.allowed:
            self.furthest = max(self.furthest, difference)
        else:
            self.beyond.append((where, difference))

    def finding(self) -> Finding:
        """Say how it stands: the furthest, or the first places where too much is between the two."""
        if not self.beyond:
            return passed(f"differ by {self.furthest:.1e} at most, {self.allowed:.0e} allowed")
        places = list(dict.fromkeys(where for where, _ in self.beyond))
        worst = max((difference for _, difference in self.beyond), key=lambda x: math.inf if math.isnan(x) else x)
        said = f"differ by {worst:.1e}" if math.isfinite(worst) else "one is not finite, or of another shape"
        return failed(f"{said}, {self.allowed:.0e} allowed ({listed(places)})")


def listed(names: list[str], most: int = 3) -> str:
    """Name the first few and count the rest."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def all_finite(*tensors: Tensor | None) -> bool:
    """Whether no number is NaN or infinite; what is not there does not count."""
    return all(bool(torch.isfinite(x).all()) for x in tensors if x is not None)
