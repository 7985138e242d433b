from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.interpreter import Reading

rows = st.lists(st.integers(-3, 3), min_size=1, max_size=7)
LARGER = p.select(p.tokens, p.tokens, ">")
modes = pytest.mark.parametrize("causal", [False, True], ids=["bidirectional", "causal"])


def selected_of(row: list[int], causal: bool) -> list[list[int]]:
    """Give, for each query, the keys with a larger token, by hand."""
    seen = [row[: at + 1] if causal else row for at in range(len(row))]
    return [[key for key, token in enumerate(seen[at]) if token > row[at]] for at in range(len(row))]


@modes
@given(row=rows)
def test_numbers_are_put_together_exactly(causal: bool, row: list[int]) -> None:
    reading = Reading(row, causal=causal)
    for by, of in {"sum": sum, "max": max, "min": min, "mean": lambda n: Fraction(sum(n), len(n))}.items():
        got = reading[p.aggregate(LARGER, p.indices, by=by, default=-9)]  # type: ignore[arg-type]
        assert got == [of(keys) if keys else -9 for keys in selected_of(row, causal)]


@modes
@given(row=rows, score=st.lists(st.integers(0, 2), min_size=7, max_size=7))
def test_best_takes_the_value_of_one_key_by_score_and_then_by_position(
    causal: bool, row: list[int], score: list[int]
) -> None:
    reading = Reading(row, causal=causal)
    scored = p.map(lambda at: score[at], p.indices)
    word = p.map(lambda at: f"at {at}", p.indices)
    first = reading[p.aggregate(LARGER, word, by="best", score=scored)]
    last = reading[p.aggregate(LARGER, word, by="best", score=scored, ties="last")]
    for at, keys in enumerate(selected_of(row, causal)):
        assert first[at] == (f"at {max(keys, key=lambda k: (score[k], -k))}" if keys else None)
        assert last[at] == (f"at {max(keys, key=lambda k: (score[k], k))}" if keys else None)


def test_without_a_key_there_is_none_and_a_sum_is_zero() -> None:
    nothing = p.select(p.tokens, "no such token")
    assert p.interpret(p.aggregate(nothing, p.indices), "ab") == [None, None]
    assert p.interpret(p.aggregate(nothing, p.indices, by="sum"), "ab") == [0, 0]
    assert p.interpret(p.aggregate(nothing, p.indices, by="max", default="none"), "ab") == ["none", "none"]


def test_a_mean_of_equal_words_is_the_word_and_of_different_ones_is_refused() -> None:
    same = p.select(p.tokens, p.tokens)
    assert p.interpret(p.aggregate(same, p.tokens), "aba") == ["a", "b", "a"]
    mixed = p.aggregate(p.everything, p.tokens)
    with pytest.raises(UserError, match=r"mixed \(test_interpreter.py:\d+\) has no mean of 'a' among others"):
        p.interpret(mixed, "ab")


@pytest.mark.parametrize("by", ["sum", "max", "min"])
def test_words_have_no_sum_and_no_extremes(by: Any) -> None:
    with pytest.raises(UserError, match=f"has no {by} of 'a' among others"):
        p.interpret(p.aggregate(p.everything, p.tokens, by=by), "a")


def test_a_word_is_no_score_and_none_is_none() -> None:
    for score, said in ((p.tokens, "'a'"), (p.aggregate(p.before, p.indices), "None")):
        with pytest.raises(UserError, match=f"has no score of {said} among others"):
            p.interpret(p.aggregate(p.everything, p.tokens, by="best", score=score), "a")


def test_none_is_a_value_like_any_other_where_python_says_so() -> None:
    previous = p.aggregate(p.offset(-1), p.tokens, by="best")
    assert p.interpret(previous == None, "ab") == [True, False]  # noqa: E711
    assert p.interpret(p.where(previous, 1, 0), "ab") == [0, 1]


def test_none_that_reaches_arithmetic_is_refused_at_the_line_that_adds() -> None:
    where_from = p.aggregate(p.before, p.indices)
    added = where_from + 1
    with pytest.raises(
        UserError, match=rf"added \(test_interpreter.py:{added.place.line}\) fails on None, 1 .*default"
    ):
        p.interpret(added, "ab")


def test_none_that_a_predicate_cannot_compare_is_refused() -> None:
    compared = p.select(p.aggregate(p.before, p.indices), p.indices, "<")
    with pytest.raises(UserError, match=r"compared \(test_interpreter.py:\d+\) fails on None, 0"):
        p.interpret(p.width(compared), "ab")


def test_a_float_that_a_function_makes_is_refused() -> None:
    half = p.indices.map(lambda at: (at + 1) / 2)
    with pytest.raises(UserError, match=r"half \(test_interpreter.py:\d+\) gives 0.5, and a program is exact"):
        p.interpret(half, "a")


def test_a_program_reads_a_length_only_where_it_may_look_ahead() -> None:
    assert p.interpret(p.length, "abc") == [3, 3, 3]
    with pytest.raises(UserError, match=r"looks ahead: it uses p.length, and a causal program cannot know"):
        p.interpret(p.length, "abc", causal=True)


@given(rows)
def test_in_causal_mode_a_selector_of_its_negation_reaches_no_later_key_either(row: list[int]) -> None:
    reading = Reading(row, causal=True)
    for selector in (LARGER, ~LARGER, LARGER | ~LARGER):
        for query, keys in enumerate(reading.selected(selector)):
            assert not any(keys[query + 1 :])
    assert reading[p.width(~LARGER)] == [at + 1 - wide for at, wide in enumerate(reading[p.width(LARGER)])]


def test_a_shared_expression_is_worked_out_once() -> None:
    asked = []

    def ask(value: int) -> int:
        asked.append(value)
        return value

    shared = p.indices.map(ask)
    p.interpret(shared + shared * shared, "abc")
    assert asked == [0, 1, 2]


def test_an_empty_sequence_has_no_values() -> None:
    assert p.interpret(p.width(p.everything), "") == []


def test_a_float_in_the_input_is_refused() -> None:
    with pytest.raises(UserError, match=r"the input gives 0\.5"):
        p.interpret(p.tokens, [0.5])


@pytest.mark.parametrize("by", ["max", "min", "sum"])
def test_truths_that_are_put_together_become_numbers(by: Any) -> None:
    (answer,) = p.interpret(p.aggregate(p.everything, p.tokens == "a", by=by), "a")
    assert type(answer) is int
    assert answer == 1
