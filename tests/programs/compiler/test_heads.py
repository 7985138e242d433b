import random
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.heads import Dimension, score_error
from headstock.programs.compiler.quantities import Affine, Quantity

FLOAT32 = Domain.of("ab", 10, False, "float32")
sizes = st.integers(0, 14).map(lambda power: 2**power)


def whole(largest: int) -> Affine:
    return Affine.of(Quantity("whole", 0, Fraction(-largest), Fraction(largest), grid=Fraction(1)))


def noisy(largest: int, error: float) -> Affine:
    return Affine.of(Quantity("noisy", 0, Fraction(-largest), Fraction(largest), error=error))


@given(sides=st.lists(st.tuples(sizes, sizes), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_a_score_that_is_said_to_be_exact_is_exact_in_float32_in_any_order(
    sides: list[tuple[int, int]], seed: int
) -> None:
    draws = random.Random(seed)
    dimensions = tuple(Dimension(whole(a), whole(b)) for a, b in sides)
    numbers = [(draws.randint(-a, a), draws.randint(-b, b)) for a, b in sides]
    products = [np.float32(a) * np.float32(b) for a, b in numbers]
    draws.shuffle(products)
    got = np.float32(0)
    for product in products:
        got = np.float32(got + product)
    assert abs(float(got) - sum(a * b for a, b in numbers)) <= score_error(dimensions, FLOAT32)


def test_scores_beyond_what_a_dtype_holds_are_not_called_exact() -> None:
    assert score_error((Dimension(whole(2**10), whole(2**10)),), FLOAT32) == 0
    assert score_error((Dimension(whole(2**13), whole(2**13)),), FLOAT32) > 0


@given(errors=st.lists(st.sampled_from([0.0, 1e-6, 1e-3]), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_noise_of_queries_and_keys_moves_a_score_by_no_more_than_its_bound(errors: list[float], seed: int) -> None:
    draws = random.Random(seed)
    dimensions = tuple(Dimension(noisy(50, error), noisy(30, error)) for error in errors)
    right, got = 0.0, np.float32(0)
    for error in errors:
        numbers = draws.uniform(-50, 50), draws.uniform(-30, 30)
        right += numbers[0] * numbers[1]
        held = [np.float32(number + draws.choice([-1, 1]) * error) for number in numbers]
        got = np.float32(got + held[0] * held[1])
    rounding = sum(80 * 2.0**-23 * 60 for _ in errors)  # that of the numbers themselves, which the errors do not count
    assert abs(float(got) - right) <= score_error(dimensions, FLOAT32) + rounding
