import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs import zoo
from tests.programs.zoo.modes import in_every_mode


@given(st.text("ab", min_size=1, max_size=10), st.text("ab", min_size=1, max_size=3))
def test_detect_finds_a_pattern_where_it_ends(text: str, pattern: str) -> None:
    for answer, at, _ in in_every_mode(zoo.detect(pattern), text):
        assert answer is (None if at + 1 < len(pattern) else text[: at + 1].endswith(pattern))


def test_an_empty_pattern_is_refused() -> None:
    with pytest.raises(UserError, match="pattern to detect is empty"):
        zoo.detect("")


@given(st.text("ab", min_size=1, max_size=10))
def test_aab_reads_no_more_than_the_last_two(text: str) -> None:
    for answer, at, _ in in_every_mode(zoo.aab, text):
        assert answer == ("b" if text[max(0, at - 1) : at + 1] in ("a", "aa") else "a")


@pytest.mark.parametrize(
    ("prompt", "right"),
    [
        ("a", "baabaabaab"),
        ("ba", "abaabaabaa"),
        ("abaab", "aabaabaaba"),
        ("ababa", "abaabaabaa"),
        ("bbbbb", "aabaabaaba"),
    ],
)
def test_aab_completes_as_the_model_made_by_hand_does(prompt: str, right: str) -> None:
    text = prompt
    while len(text) < len(prompt) + len(right):
        text += p.interpret(zoo.aab, text)[-1]
    assert text == prompt + right


def test_ab_goes_on_with_the_other_letter() -> None:
    assert p.interpret(zoo.ab, "abba") == list("baab")
