from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock.errors import UserError
from headstock.programs.values import applied, canonical, in_order, is_number, shown

values = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2) | st.fractions(-3, 3)


@given(st.integers(), st.integers(1, 20))
def test_a_fraction_that_is_whole_is_an_int(number: int, by: int) -> None:
    whole = canonical(Fraction(number * by, by), "x")
    assert type(whole) is int
    assert whole == number


@given(values)
def test_the_one_form_of_a_value_is_its_own_and_equal_to_it(value: Any) -> None:
    once = canonical(value, "x")
    assert once == value
    assert canonical(once, "x") is once or canonical(once, "x") == once
    assert isinstance(once, bool) == isinstance(value, bool)


def test_numpys_whole_numbers_become_pythons() -> None:
    assert type(canonical(np.int64(3), "x")) is int


@pytest.mark.parametrize("value", [0.5, 1.0, np.float32(2), 1j])
def test_a_float_is_no_value(value: Any) -> None:
    with pytest.raises(UserError, match=r"^my line gives .*a program is exact: give a fraction"):
        canonical(value, "my line")


def test_what_cannot_be_looked_up_is_no_value() -> None:
    with pytest.raises(UserError, match=r"gives \[1\], which cannot be looked up"):
        canonical([1], "my line")
    assert canonical((1, "a"), "x") == (1, "a")


def test_truths_are_numbers_and_words_and_none_are_not() -> None:
    assert [is_number(value) for value in (True, 0, Fraction(1, 2), "1", None, (1,))] == [True] * 3 + [False] * 3


@given(st.lists(values), st.randoms())
def test_the_order_of_values_does_not_depend_on_how_they_came(row: list[Any], random: Any) -> None:
    shuffled = list(row)
    random.shuffle(shuffled)
    assert in_order(shuffled) == in_order(row)
    assert len(in_order(row)) == len(set(row))


def test_none_stands_first_then_numbers_by_size_then_words() -> None:
    assert in_order(["b", 2, None, Fraction(1, 2), "a", -1]) == [None, -1, Fraction(1, 2), 2, "a", "b"]


def test_a_table_shows_truths_by_a_letter() -> None:
    assert [shown(value) for value in (True, False, None, Fraction(1, 3), "a", 1)] == [
        "T",
        "F",
        "None",
        "1/3",
        "a",
        "1",
    ]


@pytest.mark.parametrize(
    ("function", "arguments", "advice"),
    [
        (lambda a: a + 1, (None,), "where nothing is selected an aggregate gives None"),
        (lambda a: 1 // a, (0,), "give it a divisor that is never 0"),
        (lambda a: {"x": 1}[a], ("y",), "let it take every value that can reach it"),
    ],
)
def test_what_python_refuses_becomes_advice(function: Any, arguments: Any, advice: str) -> None:
    with pytest.raises(UserError, match=f"^f \\(a.py:3\\) fails on {arguments[0]!r} .*: {advice}"):
        applied(function, arguments, "f (a.py:3)")


def test_a_refusal_inside_a_function_is_passed_on_as_it_is() -> None:
    def refuse(_: Any) -> Any:
        raise UserError("no.")

    with pytest.raises(UserError, match=r"^no\.$"):
        applied(refuse, (1,), "f")
