"""Values written to a file come back as they were, each in its own type."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock.errors import UserError
from headstock.programs.saving.written import read, read_all, read_number, written, written_all, written_numbers
from headstock.programs.values import canonical

WHOLE = st.integers(-(10**20), 10**20)
NUMBERS = WHOLE | st.fractions().map(lambda value: canonical(value, "a test"))
PLAIN = st.none() | st.booleans() | st.text(max_size=5) | NUMBERS
VALUES = st.recursive(PLAIN, lambda parts: st.lists(parts, max_size=3).map(tuple), max_leaves=6)


def _kinds(value):
    return [_kinds(part) for part in value] if isinstance(value, (tuple, list)) else (type(value), value)


def _through_a_file(held):
    return json.loads(json.dumps(held))


@given(VALUES)
def test_a_value_comes_back_in_its_own_type(value) -> None:
    assert _kinds(read(_through_a_file(written(value)))) == _kinds(value)


@given(st.lists(VALUES, max_size=8) | st.lists(NUMBERS, max_size=20) | st.lists(st.booleans(), max_size=3))
def test_many_values_come_back_in_order_and_type(values) -> None:
    assert _kinds(read_all(_through_a_file(written_all(values)))) == _kinds(tuple(values))


def test_many_numbers_take_little_room() -> None:
    assert written_all(range(2000)) == {"from": 0, "to": 1999}
    fractions = sorted({Fraction(a, b) for b in range(1, 60) for a in range(b)})
    assert len(json.dumps(written_all(fractions))) < 6 * len(fractions)


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(UserError, match="cannot be written to a file"):
        written(frozenset({1}))
    for held in ({"fraction": "1/3", "more": 1}, {"tuple": 3}, [1], 1.5):
        with pytest.raises(ValueError, match=r"."):
            read(held)


def test_infinity_is_a_word() -> None:
    held = _through_a_file(written_numbers([1.5, float("inf")]))
    assert [read_number(number) for number in held] == [1.5, float("inf")]
    for odd in ("wide", True, None):
        with pytest.raises(ValueError, match="is no number"):
            read_number(odd)
