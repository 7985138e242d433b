"""How figures scatter from seed to seed: what a seed does to all rows alike, and what it does to each by itself.

A seed draws the order of the batches for every row, so rows do not scatter independently: a seed that is hard for one
is hard for all. In logarithms, that is in shares of itself, a figure of one name is taken to be its row's own value,
plus what its seed does to every row alike, plus what is left: a two-way table with seeds drawn at random (Scheffé,
"The Analysis of Variance", 1959). Each part has one size for all rows.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from headstock.studies.figures import Ours
from headstock.studies.runs import RowResult

Figures = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Slope:
    """How a claim's value changes with the figures of one name, per unit of their logarithm."""

    alike: float
    """Where all that it reads of that name rise together."""
    apart: float
    """The root of the sum of squares where each rises by itself."""


def slopes(ours: Ours, figures: Figures, names: Iterable[str], step: float = 0.01) -> dict[str, Slope]:
    """Give the slope of each name, from a step up and one down; infinite where that leaves the numbers there are."""
    found = {}
    for name in names:
        read = [row for row, of in ours.reads() if of == name]
        each = [_slope(ours, figures, [row], name, step) for row in read]
        found[name] = Slope(_slope(ours, figures, read, name, step), math.hypot(*each))
    return found


def _slope(ours: Ours, figures: Figures, rows: Iterable[str], name: str, step: float) -> float:
    up, down = (
        _value(ours, {**figures, **{row: {**figures[row], name: figures[row][name] * factor} for row in rows}})
        for factor in (math.exp(step), math.exp(-step))
    )
    return (up - down) / (2 * step) if math.isfinite(up) and math.isfinite(down) else math.inf


def _value(ours: Ours, figures: Figures) -> float:
    try:
        return float(ours.of(figures))
    except (ArithmeticError, ValueError):
        return math.inf


def assumed_deviation(slope: Iterable[Slope], apart: float, alike: float) -> float:
    """Give the standard deviation of a claim's value with one seed, from the relative ones that are assumed."""
    return math.hypot(*(part for one in slope for part in (one.apart * apart, one.alike * alike if alike else 0.0)))


@dataclass(frozen=True)
class MeanSquares:
    """The analysis of variance of one figure's logarithms, rows by seeds."""

    n_rows: int
    n_seeds: int
    seeds: float
    """Between seeds: n_rows times the variance of what a seed does alike, and once that of the rest."""
    rest: float
    rest_of_rows: tuple[float, ...] = ()
    """The rest of each row by itself, of which `rest` is the mean: how far it is true that rows scatter alike."""

    @property
    def alike(self) -> float:
        """The relative standard deviation of what a seed does to all rows alike."""
        return math.sqrt(max(0.0, (self.seeds - self.rest) / self.n_rows))

    @property
    def apart(self) -> float:
        """The relative standard deviation of what it does to each by itself."""
        return math.sqrt(self.rest)


def mean_squares(rows: Iterable[RowResult], name: str) -> MeanSquares | None:
    """Analyse a figure of the rows that have several seeds, over the seeds that all of them have.

    None where fewer than two rows or two seeds are left; a row with a figure that has no logarithm is left out.
    """
    logarithms: list[dict[int, float]] = []
    for row in rows:
        values = {run.seed: run.figures[name] for run in row.runs if run.status == "finished" and name in run.figures}
        if len(values) > 1 and all(math.isfinite(value) and value > 0 for value in values.values()):
            logarithms.append({seed: math.log(value) for seed, value in values.items()})
    shared = sorted(set.intersection(*map(set, logarithms))) if logarithms else []
    if len(logarithms) < 2 or len(shared) < 2:
        return None
    table = np.array([[row[seed] for seed in shared] for row in logarithms])
    n_rows, n_seeds = table.shape
    of_seed = table.mean(0) - table.mean()
    rest = table - table.mean(1, keepdims=True) - of_seed
    freedom_of_row = (n_rows - 1) * (n_seeds - 1) / n_rows
    return MeanSquares(
        n_rows,
        n_seeds,
        seeds=float(n_rows * (of_seed**2).sum() / (n_seeds - 1)),
        rest=float((rest**2).sum() / ((n_rows - 1) * (n_seeds - 1))),
        rest_of_rows=tuple((rest**2).sum(1) / freedom_of_row),
    )


def pooled_reach(slope: Mapping[str, Slope], squares: Mapping[str, MeanSquares], n_seeds: int, level: float) -> float:
    """Give how far an interval of a claim's mean over seeds reaches to either side: √Σ t²v over the parts of its error.

    Each part, what seeds do alike and the rest, has a variance v and Student's t of its own degrees of freedom. Such an
    interval never holds less often than it says (Banerjee, "Approximate confidence interval for linear functions of
    means of k populations when the population variances are not equal", Sankhyā 22, 1960), whereas one t with pooled
    degrees of freedom (Satterthwaite, 1946) misses several times too often at 99.7 % (benchmarks/pooled_seeds.py).
    """
    from scipy.stats import t

    squared = 0.0
    for name, one in slope.items():
        of = squares[name]
        alike = one.alike**2 / of.n_rows
        for variance, freedom in (
            (alike * of.seeds / n_seeds, of.n_seeds - 1),
            (max(0.0, one.apart**2 - alike) * of.rest / n_seeds, (of.n_rows - 1) * (of.n_seeds - 1)),
        ):
            squared += float(t.ppf((1 + level) / 2, freedom)) ** 2 * variance
    return math.sqrt(squared)
