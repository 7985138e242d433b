from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given

from headstock.errors import UserError
from headstock.programs import zoo
from tests.programs.zoo.modes import in_every_mode, letters


@given(letters)
def test_length_counts_what_is_seen(text: str) -> None:
    for answer, _, seen in in_every_mode(zoo.length, text):
        assert answer == len(seen)


@given(letters)
def test_hist_counts_a_token_among_what_is_seen(text: str) -> None:
    for answer, at, seen in in_every_mode(zoo.hist, text):
        assert answer == seen.count(text[at])


@given(letters)
def test_double_hist_counts_the_tokens_that_are_as_frequent(text: str) -> None:
    often = Counter(text)
    for answer, at, _ in in_every_mode(zoo.double_hist, text):
        assert answer == list(often.values()).count(often[text[at]])


@given(letters)
def test_count_counts_one_token_among_what_is_seen(text: str) -> None:
    for answer, _, seen in in_every_mode(zoo.count("b"), text):
        assert answer == seen.count("b")


@given(letters)
def test_fraction_of_previous_is_a_share_of_what_stands_up_to_here(text: str) -> None:
    for answer, at, _ in in_every_mode(zoo.fraction_of_previous("b"), text):
        assert answer == Fraction(text[: at + 1].count("b"), at + 1)


def test_a_token_that_is_counted_is_in_the_vocabulary() -> None:
    assert zoo.count("z").vocabulary == ("a", "b", "c", "d", "z")
    assert zoo.count("a").vocabulary == ("a", "b", "c", "d")


@pytest.mark.parametrize("token", ["", "ab"])
def test_what_is_no_single_token_cannot_be_counted(token: str) -> None:
    with pytest.raises(UserError, match="give one character"):
        zoo.count(token)
