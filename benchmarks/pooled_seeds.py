"""Simulate intervals of studies that pool their seeds, where a seed moves all rows alike: how often they miss.

    python benchmarks/pooled_seeds.py

Tables of rows by seeds, whose seeds move all rows alike and each by itself by known parts of a figure. Of one row's
mean, and of a difference of two, three intervals stand side by side: rows taken as independent; both parts told apart
and one Student's t with Satterthwaite's degrees of freedom (1946); and studies/scatter.py, where each part has a t of
its own (Banerjee, 1960). Each at 95 % and at what Bonferroni makes of it for fifteen claims.
"""

import argparse
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from headstock.studies.figures import figure
from headstock.studies.runs import RowResult, RowRun
from headstock.studies.scatter import MeanSquares, Slope, mean_squares, pooled_reach, slopes

NAME = "perplexity"
LEVELS = (0.95, 1 - 0.05 / 15)
KINDS = ("independent", "Satterthwaite", "scatter.py")


def main() -> None:
    """Print the share of draws that each kind of interval misses, a line a claim and a level."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--alike", type=float, default=0.010, help="what a seed does to all rows, of a figure")
    parser.add_argument("--apart", type=float, default=0.008, help="what it does to each, of a figure")
    asked = parser.parse_args()
    means = np.linspace(38.0, 62.0, asked.rows)
    claims = {
        "mean of one row": (figure("0", NAME), means[0]),
        "difference of two": (figure("1", NAME) - figure("0", NAME), means[1] - means[0]),
    }
    draws = np.random.default_rng(0)
    missed = {(claim, level): np.zeros(len(KINDS)) for claim in claims for level in LEVELS}
    for _ in range(asked.draws):
        alike = draws.normal(0.0, asked.alike, (1, asked.seeds))
        table = means[:, None] * np.exp(alike + draws.normal(0.0, asked.apart, (asked.rows, asked.seeds)))
        squares = mean_squares(map(_row, range(asked.rows), table), NAME)
        assert squares is not None
        for claim, (ours, truth) in claims.items():
            estimate = np.mean([ours.of(_figures(seed)) for seed in table.T])
            slope = slopes(ours, _figures(table.mean(1)), [NAME])[NAME]
            for level in LEVELS:
                missed[claim, level] += np.array(_reaches(slope, squares, level)) < abs(estimate - truth)
    print("missed by intervals of" + "".join(f"{kind:>16}" for kind in KINDS))
    for (claim, level), misses in missed.items():
        print(f"{level:>8.2%} {claim:<18}" + "".join(f"{100 * share:>14.2f} %" for share in misses / asked.draws))


def _row(index: int, values: NDArray[np.float64]) -> RowResult:
    runs = [RowRun(seed, "finished", figures={NAME: float(value)}) for seed, value in enumerate(values)]
    return RowResult(str(index), "", "softmax", "text", 0, {}, tuple(runs))


def _figures(values: NDArray[np.float64]) -> Mapping[str, Mapping[str, float]]:
    return {str(row): {NAME: float(value)} for row, value in enumerate(values)}


def _reaches(slope: Slope, squares: MeanSquares, level: float) -> list[float]:
    """Give how far each kind of interval reaches to either side."""
    n_seeds, within = squares.n_seeds, (squares.n_rows - 1) * (squares.n_seeds - 1)
    # Of all rows, the mean square within a row: seeds and the rest together.
    together = ((squares.n_seeds - 1) * squares.seeds + within * squares.rest) / (squares.n_rows * (n_seeds - 1))
    independent = slope.apart * math.sqrt(together / n_seeds) * _t(level, squares.n_rows * (n_seeds - 1))
    alike = slope.alike**2 / squares.n_rows
    parts = (alike * squares.seeds / n_seeds, (slope.apart**2 - alike) * squares.rest / n_seeds)
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (n_seeds - 1) + parts[1] ** 2 / within)
    satterthwaite = math.sqrt(sum(parts)) * _t(level, freedom)
    return [independent, satterthwaite, pooled_reach({NAME: slope}, {NAME: squares}, n_seeds, level)]


def _t(level: float, freedom: float) -> float:
    return float(t.ppf((1 + level) / 2, freedom))


if __name__ == "__main__":
    main()
