import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs import zoo
from tests.programs.zoo.modes import in_every_mode


@given(st.text(string.ascii_lowercase, min_size=1, max_size=10), st.integers(-30, 30))
def test_caesar_moves_each_letter_round_the_alphabet(text: str, by: int) -> None:
    for answer, at, _ in in_every_mode(zoo.caesar(by), text):
        assert answer == chr((ord(text[at]) - ord("a") + by) % 26 + ord("a"))


def test_caesar_refuses_what_is_no_letter_and_names_its_line() -> None:
    with pytest.raises(UserError, match=r"ciphers.py:\d+\) fails on '!'"):
        p.interpret(zoo.caesar, "a!")
