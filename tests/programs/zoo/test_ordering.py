from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headstock import programs as p
from headstock.programs import zoo
from tests.programs.zoo.modes import letters

numbers = st.lists(st.integers(-3, 12), min_size=1, max_size=10)


@given(letters)
def test_sort_is_pythons_for_letters(text: str) -> None:
    assert p.interpret(zoo.sort, text) == sorted(text)


@given(numbers)
def test_sort_is_pythons_for_numbers(row: list[int]) -> None:
    assert p.interpret(zoo.sort, row) == sorted(row)


@given(letters)
def test_sort_freq_is_pythons_stable_sort_by_count(text: str) -> None:
    assert p.interpret(zoo.sort_freq, text) == sorted(text, key=lambda token: -text.count(token))


@given(letters)
def test_most_frequent_is_the_counters_most_common(text: str) -> None:
    right = [token for token, _ in Counter(text).most_common()]
    assert p.interpret(zoo.most_frequent, text) == right + [None] * (len(text) - len(right))
