"""Distances to averages agree with geometry by hand and with linear programming."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from headstock.instruments.nearest_average import Numbers, distance_to_averages, part_beyond_combinations

TRIANGLE = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])


@pytest.mark.parametrize(
    ("point", "distance"),
    [((0.5, 0.5), 0.0), ((1.0, 1.0), 0.0), ((2.0, 2.0), math.sqrt(2)), ((-3.0, -4.0), 5.0), ((1.0, -0.25), 0.25)],
)
def test_the_distance_to_a_triangle_by_hand(point: tuple[float, float], distance: float) -> None:
    assert distance_to_averages(np.array(point), TRIANGLE) == pytest.approx(distance, abs=1e-9)
    assert distance_to_averages(1e6 * np.array(point), 1e6 * TRIANGLE) == pytest.approx(1e6 * distance, abs=1e-3)


def test_one_value_is_its_own_hull_and_values_that_are_one_are_too() -> None:
    one = np.array([[3.0, 4.0]])
    assert distance_to_averages(np.array([3.0, 4.0]), one) == 0.0
    assert distance_to_averages(np.zeros(2), np.repeat(one, 4, axis=0)) == pytest.approx(5.0)


def test_what_no_combination_of_positive_sum_gives_by_hand() -> None:
    corner = np.array([[1.0, 0.0], [1.0, 1.0]])
    assert part_beyond_combinations(np.array([30.0, 10.0]), corner) == pytest.approx(0.0, abs=1e-9)
    assert part_beyond_combinations(np.array([-2.0, 0.0]), corner) == pytest.approx(1.0)
    assert part_beyond_combinations(np.array([3.0, -4.0]), corner) == pytest.approx(0.8)  # nearest is (3, 0), of 5
    assert part_beyond_combinations(np.zeros(2), corner) == 0.0
    assert part_beyond_combinations(np.ones(2), np.zeros((2, 2))) == 1.0


def feasible(point: Numbers, values: Numbers, *, sum_to_one: bool) -> bool:
    columns, wanted = values.T, point
    if sum_to_one:
        columns, wanted = np.vstack([columns, np.ones(len(values))]), np.append(point, 1.0)
    return linprog(np.zeros(len(values)), A_eq=columns, b_eq=wanted, method="highs").status == 0


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_inside_and_outside_are_what_linear_programming_says(width: int, n: int, seed: int) -> None:
    draws = np.random.default_rng(seed)
    values = draws.normal(size=(n, width))
    weights = draws.dirichlet(np.ones(n))
    weights -= draws.integers(0, 2) * draws.uniform(0, 1.5) / n  # signed half of the time
    point = weights @ values
    distance, beyond = distance_to_averages(point, values), part_beyond_combinations(point, values)
    if distance == 0 or distance > 1e-6:
        assert (distance == 0) <= feasible(point, values, sum_to_one=True)
        assert (distance > 1e-6) == (not feasible(point, values, sum_to_one=True))
    if beyond > 1e-6:
        assert not feasible(point, values, sum_to_one=False)
    elif beyond < 1e-9:
        assert feasible(point * (1 + 1e-9), values, sum_to_one=False)
