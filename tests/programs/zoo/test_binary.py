from hypothesis import given
from hypothesis import strategies as st

from headstock import programs as p
from headstock.programs import zoo
from tests.programs.zoo.modes import in_every_mode

bits = st.text("01", min_size=1, max_size=10)


@given(bits)
def test_parity_says_whether_the_ones_so_far_are_odd(text: str) -> None:
    for answer, at, _ in in_every_mode(zoo.parity, text):
        assert answer == text[: at + 1].count("1") % 2


@given(bits)
def test_increment_adds_one_or_says_that_there_is_no_room(text: str) -> None:
    right = f"{int(text, 2) + 1:0{len(text)}b}"
    assert p.interpret(zoo.increment, text) == (list(right) if len(right) == len(text) else [None] * len(text))
