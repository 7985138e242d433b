"""What became of a study's rows: for each seed what was measured, or why it was not. Values in JSON's terms."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from headstock.pictures.spreads import Spread, spread_of

Status = Literal["finished", "failed", "missing"]
DIVERGED = {f"{split}{name}": math.inf for split in ("", "train_") for name in ("loss", "perplexity", "bits_per_byte")}
"""The figures of a run whose loss became no number, where that counts as an answer."""


TRAINED = frozenset(
    f"{split}{name}" for split in ("", "train_") for name in ("loss", "perplexity", "accuracy", "bits_per_byte")
) | {"parameters"}
"""The figures that a trained row may have by itself."""


@dataclass(frozen=True)
class RowRun:
    """One row with one seed."""

    seed: int
    status: Status
    """missing: not run yet."""
    reason: str | None = None
    """Why there are no figures."""
    diverged: bool = False
    """Whether it failed because its loss became no number, which is a result."""
    folder: str = ""
    """Of its training, relative to the study's."""
    figures: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    curve: tuple[Mapping[str, float], ...] = ()
    """One entry an evaluation: step, train_loss and the held-out metrics."""
    seconds_per_step: float | None = None


@dataclass(frozen=True)
class RowResult:
    """One row with every seed that was asked for or is there."""

    name: str
    says: str
    variant: str
    """Complete but for defaults; empty where nothing is trained."""
    task: str
    steps: int
    published: Mapping[str, str]
    runs: tuple[RowRun, ...]

    @property
    def finished(self) -> list[RowRun]:
        """The runs that have figures."""
        return [run for run in self.runs if run.status == "finished"]

    def values(self, figure: str) -> dict[int, float]:
        """Give a figure by seed, of the runs that have it."""
        return {run.seed: run.figures[figure] for run in self.runs if figure in run.figures}

    def spread(self, figure: str) -> Spread | None:
        """Give a figure's mean and standard deviation over seeds; None where no run has it."""
        return spread_of(self.values(figure).values())


def with_plain_numbers(value: Any) -> Any:
    """Give a value in JSON's terms with a name ("nan", "inf", "-inf") for each number that JSON has not."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {key: with_plain_numbers(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [with_plain_numbers(part) for part in value]
    return value


def without_odd_numbers(value: Any) -> Any:
    """Give a value in JSON's terms with None for each number that JSON has not, and lists for tuples."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): without_odd_numbers(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [without_odd_numbers(part) for part in value]
    return value


def reasons(runs: Iterable[RowRun]) -> dict[str, list[int]]:
    """Give the seeds of runs without figures by the reason for it."""
    found: dict[str, list[int]] = {}
    for run in runs:
        if run.status != "finished":
            found.setdefault((run.reason or "not run yet").strip().rstrip("."), []).append(run.seed)
    return found
