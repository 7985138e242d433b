import operator
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.interpreter import Reading
from headstock.programs.language import PREDICATES

rows = st.lists(st.integers(0, 4), min_size=1, max_size=6)


@pytest.mark.parametrize("written", PREDICATES)
@given(row=rows)
def test_a_predicate_asks_the_key_before_the_query(written: str, row: list[int]) -> None:
    selected = Reading(row).selected(p.select(p.tokens, p.indices, written))
    assert selected == [[eval(f"{key} {written} {query}") for key in row] for query in range(len(row))]


@given(rows)
def test_any_function_of_two_values_is_a_predicate(row: list[int]) -> None:
    selected = Reading(row).selected(p.select(p.tokens, p.tokens, lambda key, query: (key + query) % 3))
    assert selected == [[(key + query) % 3 != 0 for key in row] for query in row]


@given(rows, st.integers(-3, 3))
def test_an_offset_selects_one_place_or_none(row: list[int], by: int) -> None:
    selected = Reading(row).selected(p.offset(by))
    assert selected == [[key == query + by for key in range(len(row))] for query in range(len(row))]


def test_before_leaves_out_the_querys_own_place_and_up_to_here_does_not() -> None:
    assert p.interpret(p.width(p.before), "abc") == [0, 1, 2]
    assert p.interpret(p.width(p.up_to_here), "abc") == [1, 2, 3]
    assert p.interpret(p.width(p.everything), "abc") == [3, 3, 3]


@given(rows)
def test_selectors_are_put_together_pair_by_pair(row: list[int]) -> None:
    same, reading = p.select(p.tokens, p.tokens), Reading(row)
    for query, token in enumerate(row):
        for key, other in enumerate(row):
            assert reading.selected(same & p.before)[query][key] is (other == token and key < query)
            assert reading.selected(same | p.before)[query][key] is (other == token or key < query)
            assert reading.selected(~same)[query][key] is (other != token)


def test_map_takes_as_many_sequences_as_its_function() -> None:
    assert p.interpret(p.map(lambda a, b, c: (a, b, c), p.tokens, p.indices, "z"), "ab") == [
        ("a", 0, "z"),
        ("b", 1, "z"),
    ]


def test_where_chooses_at_each_position() -> None:
    assert p.interpret(p.where(p.tokens == "a", p.indices, "no"), "aba") == [0, "no", 2]


def test_a_table_without_a_default_refuses_what_is_not_in_it() -> None:
    assert p.interpret(p.lookup({"a": 1}, p.tokens, default=None), "ab") == [1, None]
    with pytest.raises(UserError, match=r"test_language.py:\d+\) fails on 'b' .*not in the table"):
        p.interpret(p.lookup({"a": 1}, p.tokens), "ab")


def test_a_table_is_not_changed_by_what_happens_to_its_dictionary() -> None:
    table = {"a": 1}
    looked_up = p.lookup(table, p.tokens)
    table["a"] = 2
    assert p.interpret(looked_up, "a") == [1]


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda: p.map(operator.neg), "map() has a function and no sequence"),
        (lambda: p.map(p.tokens, p.indices), "map() needs a function first"),
        (lambda: p.select(p.tokens, p.tokens, "=<"), "unknown predicate '=<'"),
        (lambda: p.select(p.tokens, p.tokens, 3), "3 is no predicate"),  # type: ignore[arg-type]
        (lambda: p.aggregate(p.tokens, p.tokens), "aggregate() needs a selector first"),  # type: ignore[arg-type]
        (lambda: p.aggregate(p.before, p.tokens, by="men"), "did you mean 'mean'"),  # type: ignore[arg-type]
        (lambda: p.aggregate(p.before, p.tokens, by="best", ties="any"), "ties is 'any'"),  # type: ignore[arg-type]
        (lambda: p.aggregate(p.before, p.indices, score=p.indices), "a score is given, but by='mean' asks for none"),
        (lambda: p.aggregate(p.before, p.indices, default=0.5), "the default of an aggregate"),
        (lambda: p.width(p.tokens), "width() needs a selector"),  # type: ignore[arg-type]
        (lambda: p.constant(0.5), "a constant"),
    ],
)
def test_a_word_that_is_used_wrongly_is_refused_where_it_is_written(write: Callable[[], Any], said: str) -> None:
    with pytest.raises(UserError, match=re.escape(said)) as refused:
        write()
    assert re.search(r"\(test_language\.py:\d+\)", str(refused.value))
