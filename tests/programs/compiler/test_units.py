import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.units import Fitted, Source, drawn, jumps, kinks, steps

FLOAT32 = Domain.of("ab", 10, False, "float32")
Points = list[tuple[Fraction, Fraction]]

whole = st.integers(-40, 40).map(Fraction)
broken = st.fractions(-20, 20, max_denominator=12)


@st.composite
def functions(draw: st.DrawFn, numbers: st.SearchStrategy[Fraction]) -> Points:
    where = sorted(draw(st.sets(numbers, min_size=1, max_size=12)))
    return [(z, draw(numbers)) for z in where]


def as_float32_gives_it(fitted: Fitted, parts: list[float], draws: random.Random) -> float:
    """Evaluate units in float32, every sum in a random order; z is given in parts, each a column that is read."""
    total = [np.float32(fitted.constant)] if fitted.constant else []
    for ramp in fitted.ramps:
        terms = [np.float32(ramp.slope) * np.float32(part) for part in parts] + [np.float32(ramp.bias)]
        total.append(np.float32(ramp.weight) * max(np.float32(0), added(terms, draws)))
    return float(added(total, draws))


def added(terms: list[np.float32], draws: random.Random) -> np.float32:
    terms = list(terms)
    draws.shuffle(terms)
    total = np.float32(0)
    for term in terms:
        total = np.float32(total + term)
    return total


def source(points: Points, noise: float = 0.0, relative: float = 0.0, single: bool = True, more: int = 0) -> Source:
    size = max(abs(z) for z, _ in points) * (1 if single else 2) + more
    return Source(noise, relative, Fraction(size), single, Fraction(0))


@settings(max_examples=20)
@given(points=functions(broken))
def test_a_function_drawn_through_points_goes_through_each(points: Points) -> None:
    fitted = drawn(points, source(points), FLOAT32)
    assert [fitted.at(z) for z, _ in points] == [value for _, value in points]


@settings(max_examples=20)
@given(points=functions(whole), seed=st.integers(0, 99))
def test_what_is_said_to_be_exact_is_exact_in_float32_in_any_order(points: Points, seed: int) -> None:
    draws = random.Random(seed)
    fitted = drawn(points, source(points, single=False, more=50), FLOAT32)
    assert fitted.exact == (fitted.error == 0.0)
    assume(fitted.exact)
    for z, value in points:
        part = draws.randint(-20, 20)
        assert as_float32_gives_it(fitted, [float(z) - part, part], draws) == value


@settings(max_examples=20)
@given(points=functions(whole))
def test_a_function_of_whole_numbers_with_whole_values_is_exact(points: Points) -> None:
    assert drawn(points, source(points), FLOAT32).exact


@settings(max_examples=20)
@given(points=functions(broken), seed=st.integers(0, 99), single=st.booleans())
def test_a_drawn_function_stays_within_its_bound_in_float32(points: Points, seed: int, single: bool) -> None:
    draws = random.Random(seed)
    noise = draws.choice([0.0, 1e-6, 1e-3])
    held = Source(noise + (0 if single else 1e-5), 2**-24, source(points, single=single).size + 40, single, Fraction(0))
    fitted = drawn(points, held, FLOAT32)
    for z, value in points:
        off = draws.uniform(-noise, noise)
        part = 0.0 if single else float(np.float32(draws.uniform(-10, 10)))
        parts = [float(np.float32(float(z) + off))] if single else [float(np.float32(float(z) + off - part)), part]
        assert abs(as_float32_gives_it(fitted, parts, draws) - float(value)) <= fitted.error


@settings(max_examples=20)
@given(points=functions(broken), seed=st.integers(0, 99), share=st.sampled_from([0.0, 0.05, 0.2, 0.4]))
def test_steps_stay_within_their_bound_whatever_the_noise_that_they_were_told_of(
    points: Points, seed: int, share: float
) -> None:
    assume(len(points) > 1)
    draws = random.Random(seed)
    noise = share * float(min(b[0] - a[0] for a, b in itertools.pairwise(points)))
    fitted = steps(points, source(points, noise, 2**-24), FLOAT32)
    assume(fitted is not None)
    assert fitted is not None
    assert len(fitted.ramps) == 2 * jumps(points)
    for z, value in points:
        read = float(np.float32(float(z) + draws.choice([-1, 1, 0.5]) * noise))
        assert abs(as_float32_gives_it(fitted, [read], draws) - float(value)) <= fitted.error


@pytest.mark.parametrize("middle", [1, 3, -2])
def test_a_step_away_from_the_middle_stays_within_its_bound_far_out(middle: int) -> None:
    points = [(Fraction(z), Fraction(middle - 1 if z else middle)) for z in range(-50, 51)]
    fitted = steps(points, source(points, 1e-6), FLOAT32)
    assert fitted is not None
    draws = random.Random(0)
    for z, value in points * 20:
        read = float(np.float32(float(z) + draws.uniform(-1e-6, 1e-6)))
        assert abs(as_float32_gives_it(fitted, [read], draws) - float(value)) <= fitted.error


def test_noise_that_leaves_no_room_between_two_points_has_no_steps() -> None:
    points = [(Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))]
    assert steps(points, source(points, 0.1), FLOAT32) is not None
    assert steps(points, source(points, 0.49), FLOAT32) is None
    same = [(Fraction(0), Fraction(3)), (Fraction(1), Fraction(3))]
    assert steps(same, source(same, 0.49), FLOAT32) is not None


@settings(max_examples=20)
@given(points=functions(whole))
def test_the_units_of_a_function_are_counted_before_it_is_made(points: Points) -> None:
    assert len(drawn(points, source(points), FLOAT32).ramps) <= kinks(points) + len(points) + 1


def test_a_line_takes_one_unit_and_a_constant_none() -> None:
    line = [(Fraction(z), Fraction(3 * z)) for z in range(8)]
    assert kinks(line) == len(drawn(line, source(line), FLOAT32).ramps) == 1
    flat = [(Fraction(z), Fraction(2)) for z in range(8)]
    assert kinks(flat) == len(drawn(flat, source(flat), FLOAT32).ramps) == 0


@pytest.mark.parametrize("gap", [3, 5, 11])
def test_a_flag_over_a_gap_that_is_no_power_of_two_is_exact(gap: int) -> None:
    points = [(Fraction(0), Fraction(0)), (Fraction(gap), Fraction(1)), (Fraction(2 * gap), Fraction(0))]
    assert drawn(points, source(points), FLOAT32).exact
