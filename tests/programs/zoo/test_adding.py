import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs import zoo

numerals = st.text("0123456789", min_size=1, max_size=4)
handing_on = st.builds(lambda a, b: a + b, st.text("9", max_size=3), st.sampled_from("0123456789"))
"""Nines, that hand a carry on: at random they are rare."""
operands = numerals | handing_on


def is_sum(text: str) -> bool:
    """Whether it is two numbers with one plus between."""
    left, _, right = text.partition("+")
    return left.isdecimal() and right.isdecimal()


@settings(max_examples=25)
@given(operands, operands)
@example("999", "1")
@example("4567", "5433")
def test_long_addition_writes_the_sum_right_aligned(left: str, right: str) -> None:
    text = f"{left}+{right}"
    answer = f"{int(left) + int(right):0{len(text)}d}"
    assert p.interpret(zoo.long_addition, text) == [int(digit) for digit in answer]


@settings(max_examples=25)
@given(operands, operands)
def test_carries_are_those_of_the_columns_to_the_right(left: str, right: str) -> None:
    text = f"{left}+{right}"
    for position, carry in enumerate(p.interpret(zoo.carries, text)):
        column = 10 ** (len(text) - 1 - position)
        assert carry == (int(left) % column + int(right) % column) // column


@settings(max_examples=25)
@given(st.text("0123+", min_size=1, max_size=8).filter(lambda text: not is_sum(text)))
def test_what_is_no_sum_has_none_everywhere(text: str) -> None:
    for program in (zoo.long_addition, zoo.carries):
        assert p.interpret(program, text) == [None] * len(text)


@settings(max_examples=25)
@given(operands, operands)
def test_addition_emits_the_sum_from_the_left_and_a_full_stop(left: str, right: str) -> None:
    prompt = f"{left}+{right}="
    answer = f"{int(left) + int(right)}."
    answers = p.interpret(zoo.addition(4), prompt + answer)
    assert answers == [None] * (len(prompt) - 1) + [*answer, "."]


def spoilt(text: str, at: int, other: str) -> str:
    """Put something in, where at random there would hardly ever be a sum."""
    return text[: at % (len(text) + 1)] + other + text[at % (len(text) + 1) :]


prompts = st.builds("{}+{}={}".format, operands, operands, st.text("012", max_size=2))


@settings(max_examples=25)
@given(st.builds(spoilt, prompts, st.integers(0, 20), st.sampled_from([*"0+=.", ""])), st.integers(1, 3))
@example("+1=", 1)
@example("1+=", 1)
@example("1=+1", 1)
@example(".+0=", 1)
@example("1+.=", 1)
@example("1.+2=", 2)
@example("1+2==", 1)
@example("1+2=+", 1)
@example("1+23=", 1)
@example("12+3=", 1)
def test_addition_says_nothing_of_another_prompt(text: str, digits: int) -> None:
    prompt, equals, after = text.partition("=")
    asked = equals and is_sum(prompt) and max(map(len, prompt.split("+"))) <= digits and not set(after) & set("+=")
    assert (p.interpret(zoo.addition(digits), text)[-1] is not None) == bool(asked)


def test_addition_adds_every_two_numbers_of_one_digit() -> None:
    program = zoo.addition(1)
    for left in range(10):
        for right in range(10):
            sum_ = f"{left + right}."
            assert "".join(p.interpret(program, f"{left}+{right}={sum_}")[3:]) == sum_ + "."


def test_addition_has_room_for_its_longest_sum() -> None:
    assert zoo.addition(digits=3).max_length == len("999+999=1998.")


def test_numbers_of_no_digits_cannot_be_added() -> None:
    with pytest.raises(UserError, match="give 1 or more"):
        zoo.addition(0)
