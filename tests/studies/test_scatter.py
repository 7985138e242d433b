"""What a seed does to all rows alike is told from what it does to each, and intervals made of both hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from headstock.studies.base import Claim
from headstock.studies.figures import Ours, figure
from headstock.studies.judging import judge
from headstock.studies.scatter import MeanSquares, Slope, assumed_deviation, mean_squares, pooled_reach, slopes
from tests.studies.test_judging import claim, row, study

MEANS = np.array([40.0, 44.0, 60.0, 250.0, 39.0, 55.0, 61.0, 53.0])
NAMES = "abcdefgh"
ALIKE, APART = 0.013, 0.006


def drawn(draws: np.random.Generator, seeds: int, alike: float = ALIKE, apart: float = APART) -> np.ndarray:
    """Draw a table, rows by seeds."""
    shifts = draws.normal(0.0, alike, (1, seeds)) + draws.normal(0.0, apart, (len(MEANS), seeds))
    return np.asarray(MEANS[:, None] * np.exp(shifts))


def rows_of(table: np.ndarray) -> list:
    return [row(name, values.tolist()) for name, values in zip(NAMES, table, strict=False)]


@pytest.mark.parametrize("seeds", [2, 3, 6])
def test_both_parts_are_found_again_on_average(seeds: int) -> None:
    draws = np.random.default_rng(0)
    found = [mean_squares(rows_of(drawn(draws, seeds)), "f") for _ in range(2000)]
    assert all(one is not None and (one.n_rows, one.n_seeds) == (len(MEANS), seeds) for one in found)
    rest = np.mean([one.rest for one in found if one is not None])
    alike = np.mean([(one.seeds - one.rest) / one.n_rows for one in found if one is not None])
    assert rest == pytest.approx(APART**2, rel=0.05)
    assert alike == pytest.approx(ALIKE**2, rel=0.1)


@given(st.lists(st.lists(st.floats(-3, 3), min_size=3, max_size=3), min_size=2, max_size=6))
def test_the_squares_of_rows_seeds_and_the_rest_are_all_there_are(logarithms: list[list[float]]) -> None:
    table = np.array(logarithms)
    found = mean_squares([row(str(place), np.exp(values).tolist()) for place, values in enumerate(table)], "f")
    assert found is not None
    n_rows, n_seeds = table.shape
    between_rows = n_seeds * ((table.mean(1) - table.mean()) ** 2).sum()
    rest = found.rest * (n_rows - 1) * (n_seeds - 1)
    assert between_rows + found.seeds * (n_seeds - 1) + rest == pytest.approx(
        ((table - table.mean()) ** 2).sum(), abs=1e-9
    )
    assert np.mean(found.rest_of_rows) == pytest.approx(found.rest, abs=1e-9)


def test_a_seed_that_moves_all_rows_alike_leaves_nothing_to_each() -> None:
    found = mean_squares(rows_of(np.outer(MEANS, [1.0, 1.02, 0.97])), "f")
    assert found is not None
    assert found.apart == pytest.approx(0.0, abs=1e-9)
    assert found.alike == pytest.approx(np.std(np.log([1.0, 1.02, 0.97]), ddof=1))


def test_seeds_that_some_rows_lack_and_rows_with_one_seed_are_left_out() -> None:
    table = drawn(np.random.default_rng(3), 3)
    whole = mean_squares(rows_of(table), "f")
    more = [*rows_of(table), row("single", [7.0]), row("lost", [5.0, None, math.inf])]
    assert mean_squares(more, "f") == whole
    short = [*rows_of(table)[:-1], row("h", table[-1, :2].tolist())]
    assert mean_squares(short, "f") == mean_squares(rows_of(table[:, :2]), "f")
    assert mean_squares([row("a", [1.0, 2.0])], "f") is None
    assert mean_squares(rows_of(table[:, :1]), "f") is None
    assert mean_squares(rows_of(table), "another") is None


@pytest.mark.parametrize(
    ("ours", "truth"),
    [
        (figure("a", "f"), 40.0),
        (figure("b", "f") - figure("a", "f"), 4.0),
        (figure("d", "f") / figure("c", "f"), 250 / 60),
    ],
    ids=["of one row", "difference", "ratio"],
)
def test_pooled_intervals_cover_what_seeds_that_move_all_rows_leave_uncertain(ours: Ours, truth: float) -> None:
    draws = np.random.default_rng(1)
    one = Claim("So.", ours, "1", "made up", at_least=-1e9)
    asked = study(one, pooled=True)
    missed = 0
    for _ in range(1000):
        (found,) = judge(asked, rows_of(drawn(draws, 3)), as_published=True)
        assert found.basis == "pooled seeds"
        assert found.low is not None
        assert found.high is not None
        missed += not found.low <= truth <= found.high
    assert 15 < missed < 1000 * (0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000))


def test_the_assumed_spread_of_a_difference_is_what_draws_of_both_parts_give() -> None:
    both = figure("b", "f") - figure("a", "f")
    figures = {"a": {"f": 40.0}, "b": {"f": 44.0}}
    off = assumed_deviation(slopes(both, figures, ["f"]).values(), APART, ALIKE)
    table = drawn(np.random.default_rng(2), 40_000)
    assert off == pytest.approx((table[1] - table[0]).std(), rel=0.03)
    (found,) = judge(
        study(claim(0.0, ours=both), spread=APART, spread_alike=ALIKE),
        [row("a", [40.0]), row("b", [44.0])],
        as_published=True,
    )
    assert found.high is not None
    assert found.high - 4 == pytest.approx(1.96 * off, rel=1e-3)


@pytest.mark.parametrize("level", [0.95, 1 - 0.05 / 15], ids=["one claim", "one of fifteen"])
@pytest.mark.parametrize("n_seeds", [2, 3, 8])
@pytest.mark.parametrize(("alike", "apart"), [(0.013, 0.006), (0.01, 0.008), (0.0, 0.008)])
def test_pooled_intervals_miss_no_more_often_than_they_say_at_any_level(
    alike: float, apart: float, n_seeds: int, level: float
) -> None:
    draws, n_rows, times = np.random.default_rng(3), len(MEANS), 3000
    within = (n_rows - 1) * (n_seeds - 1)
    of_seed = draws.normal(0.0, alike, (times, n_seeds)) + draws.normal(0.0, apart, (times, n_rows, n_seeds)).mean(1)
    between = n_rows * of_seed.var(1, ddof=1)
    rest = apart**2 * draws.chisquare(within, times) / within
    off = of_seed.mean(1) + draws.normal(0.0, apart * math.sqrt((1 - 1 / n_rows) / n_seeds), times)
    slope = {"f": Slope(alike=1.0, apart=1.0)}
    reach = [
        pooled_reach(slope, {"f": MeanSquares(n_rows, n_seeds, float(one), float(other))}, n_seeds, level)
        for one, other in zip(between, rest, strict=True)
    ]
    missed = float((abs(off) > np.array(reach)).mean())
    assert missed <= 1 - level + 3 * math.sqrt(level * (1 - level) / times)


def test_more_seeds_of_a_claim_narrow_its_interval_by_their_root() -> None:
    squares = mean_squares(rows_of(drawn(np.random.default_rng(4), 3)), "f")
    assert squares is not None
    slope = slopes(figure("a", "f"), {"a": {"f": 40.0}}, ["f"])
    three, twelve = (pooled_reach(slope, {"f": squares}, n, 0.95) for n in (3, 12))
    assert three == pytest.approx(2 * twelve)


def test_a_claim_with_two_seeds_more_than_all_rows_have_stands_on_its_own() -> None:
    table = drawn(np.random.default_rng(5), 5)
    some_more = [row("a", table[0, :4].tolist()), *rows_of(table[:, :3])[1:]]
    (pooled,) = judge(study(Claim("So.", figure("a", "f"), "1", "made up"), pooled=True), some_more, as_published=True)
    assert pooled.basis == "pooled seeds"
    rows = [row("a", table[0].tolist()), *rows_of(table[:, :3])[1:]]
    alone, both = Claim("So.", figure("a", "f"), "1", "made up"), figure("b", "f") - figure("a", "f")
    asked = study(alone, Claim("And so.", both, "1", "made up"), pooled=True)
    of_a, of_both = judge(asked, rows, as_published=True)
    assert (of_a.basis, of_both.basis) == ("seeds", "pooled seeds")
    assert of_a.low is not None
    expected = t.ppf(1 - 0.05 / 4, 4) * table[0].std(ddof=1) / math.sqrt(5)
    assert table[0].mean() - of_a.low == pytest.approx(expected)
