from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs import zoo
from tests.programs.cases import PARENTHESES
from tests.programs.zoo.modes import in_every_mode

PAIRS = {")": "(", "}": "{", "]": "["}
kinds = pytest.mark.parametrize("k", [1, 2, 3])


def by_stack(text: str) -> str:
    """Read brackets with a stack."""
    stack: list[str] = []
    for bracket in text:
        if bracket not in PAIRS:
            stack.append(bracket)
        elif not stack or stack.pop() != PAIRS[bracket]:
            return "broken"
    return "open" if stack else "balanced"


def well_formed(k: int) -> st.SearchStrategy[str]:
    """Give balanced brackets: at random, letters alone would hardly ever be balanced."""
    pair = st.sampled_from(["()", "{}", "[]"][:k])
    return st.recursive(
        st.just(""), lambda inner: st.builds(lambda a, b, c: a + b[0] + c + b[1], inner, pair, inner), max_leaves=8
    )


def bracketed(k: int) -> st.SearchStrategy[str]:
    """Give balanced brackets, and such with one changed, and any."""
    some = "(){}[]"[: 2 * k]
    spoilt = st.builds(
        lambda text, at, other: text[: at % (len(text) + 1)] + other + text[at % (len(text) + 1) + 1 :],
        well_formed(k),
        st.integers(0, 20),
        st.sampled_from(some),
    )
    return (well_formed(k) | spoilt | st.text(some, max_size=8)).filter(bool)


@kinds
@settings(max_examples=20)
@given(st.data())
def test_dyck_answers_as_a_stack_does(k: int, data: st.DataObject) -> None:
    text = data.draw(bracketed(k))
    for answer, at, _ in in_every_mode(zoo.dyck(k), text):
        assert answer == by_stack(text[: at + 1])


def test_fifty_brackets_are_balanced_four_times_before_they_break() -> None:
    answers = p.interpret(zoo.dyck(1), PARENTHESES, causal=True)
    assert [at for at, answer in enumerate(answers) if answer == "balanced"] == [1, 7, 23, 41]
    assert [at for at, answer in enumerate(answers) if answer == "broken"] == list(range(42, 50))


@kinds
@settings(max_examples=20)
@given(st.data())
def test_shuffle_dyck_asks_of_each_kind_whether_it_is_balanced_by_itself(k: int, data: st.DataObject) -> None:
    text = "".join(data.draw(st.permutations(data.draw(bracketed(k))))) if data.draw(st.booleans()) else ""
    text = text or data.draw(bracketed(k))
    for answer, _, seen in in_every_mode(zoo.shuffle_dyck(k), text):
        alone = ("".join(b for b in seen if b in pair) for pair in ("()", "{}", "[]"))
        assert answer == all(by_stack(kind) == "balanced" for kind in alone)


@given(st.text("ab()", min_size=1, max_size=10))
def test_pair_balance_is_a_difference_of_shares(text: str) -> None:
    for answer, at, _ in in_every_mode(zoo.pair_balance, text):
        so_far = text[: at + 1]
        assert answer == Fraction(so_far.count("(") - so_far.count(")"), at + 1)


@pytest.mark.parametrize("k", [0, 4])
def test_there_are_three_kinds_of_brackets(k: int) -> None:
    for make in (zoo.dyck, zoo.shuffle_dyck):
        with pytest.raises(UserError, match="choose 1, 2 or 3 kinds"):
            make(k)
