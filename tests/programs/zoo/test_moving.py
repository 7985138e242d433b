import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs import zoo
from tests.programs.zoo.modes import in_every_mode, letters


@given(letters)
def test_copy_gives_the_tokens(text: str) -> None:
    for answer, at, _ in in_every_mode(zoo.copy, text):
        assert answer == text[at]


@given(letters)
def test_reverse_is_pythons(text: str) -> None:
    assert p.interpret(zoo.reverse, text) == list(reversed(text))


@given(letters, st.integers(-4, 4))
def test_shift_moves_each_token_and_leaves_none_behind(text: str, by: int) -> None:
    for answer, at, _ in in_every_mode(zoo.shift(by), text):
        assert answer == (text[at - by] if 0 <= at - by < len(text) else None)


def test_a_shift_to_the_left_looks_ahead() -> None:
    with pytest.raises(UserError, match="'shift,by=-1' is not causal"):
        p.interpret(zoo.shift(-1), "ab", causal=True)


@given(letters)
def test_last_occurrence_is_where_the_token_stood_before(text: str) -> None:
    for answer, at, _ in in_every_mode(zoo.last_occurrence, text):
        before = text.rfind(text[at], 0, at)
        assert answer == (None if before < 0 else before)


@given(letters)
def test_induction_gives_what_came_after_the_last_time(text: str) -> None:
    for answer, at, _ in in_every_mode(zoo.induction, text):
        before = text.rfind(text[at], 0, at)
        assert answer == (None if before < 0 else text[before + 1])


@given(letters, st.integers(0, 12))
def test_repeat_says_again_what_stands_before_the_bar(text: str, more: int) -> None:
    words = list(text + "|")
    while len(words) < len(text) + 1 + more:
        words.append(p.interpret(zoo.repeat, words)[-1])
    assert "".join(words) == ((text + "|") * 13)[: len(words)]


@given(letters)
def test_repeat_has_nothing_to_say_before_a_bar(text: str) -> None:
    assert p.interpret(zoo.repeat, text) == [None] * len(text)
