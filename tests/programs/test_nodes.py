import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.nodes import Expression, expression

rows = st.lists(st.integers(-5, 5), min_size=1, max_size=6)
OPERATORS: list[Callable[[Any, Any], Any]] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.floordiv,
    operator.mod,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]
each_operator = pytest.mark.parametrize("by", OPERATORS, ids=lambda by: by.__name__)


@each_operator
@settings(max_examples=20)
@given(row=rows)
def test_an_operator_does_at_each_position_what_it_does_to_numbers(by: Any, row: list[int]) -> None:
    assert p.interpret(by(p.tokens, p.indices + 1), row) == [by(token, at + 1) for at, token in enumerate(row)]
    assert p.interpret(by(p.tokens, 3), row) == [by(token, 3) for token in row]


@pytest.mark.parametrize("by", [operator.add, operator.sub, operator.mul], ids=lambda by: by.__name__)
@settings(max_examples=20)
@given(row=rows)
def test_a_number_may_stand_on_the_left(by: Any, row: list[int]) -> None:
    assert p.interpret(by(7, p.tokens), row) == [by(7, token) for token in row]


def test_a_division_is_exact_from_either_side() -> None:
    assert p.interpret(p.tokens / 3, [1, 3]) == [Fraction(1, 3), 1]
    assert p.interpret(1 / p.tokens, [1, 3]) == [1, Fraction(1, 3)]


@given(st.lists(st.booleans(), min_size=1, max_size=4))
def test_truths_are_put_together_as_truths(row: list[bool]) -> None:
    last = p.indices == len(row) - 1
    for at, token in enumerate(row):
        is_last = at == len(row) - 1
        assert p.interpret(p.tokens & last, row)[at] is (token and is_last)
        assert p.interpret(p.tokens | last, row)[at] is (token or is_last)
        assert p.interpret(~p.tokens, row)[at] is (not token)


def test_a_sign_and_a_size() -> None:
    assert p.interpret(-p.tokens, [1, -2]) == [-1, 2]
    assert p.interpret(abs(p.tokens), [1, -2]) == [1, 2]


def test_two_expressions_are_equal_only_if_they_are_one() -> None:
    one, other = p.indices + 1, p.indices + 1
    assert len({one, other, one}) == 2
    assert isinstance(one == other, Expression)


def test_a_name_is_given_to_a_copy() -> None:
    hist = p.width(p.select(p.tokens, p.tokens))
    named = hist.named("how often")
    assert (named.name, named.said.split(" (")[0]) == ("how often", "how often")
    assert hist.name == "width"
    assert p.interpret(named, "aba") == [2, 1, 2]


def test_symbols_say_what_is_done() -> None:
    def double(number: int) -> int:
        return 2 * number

    said = [p.indices + 1, p.indices.map(double), p.map(lambda a: a, p.tokens), p.constant("a"), p.where(1, 2, 3)]
    assert [each.symbol for each in said] == ["+", "double", "map", "'a'", "where"]
    assert p.aggregate(p.before, p.indices, by="max").symbol == "max"
    assert Expression.symbol.fget is not None
    with pytest.raises(NotImplementedError):
        _ = Expression().symbol


def test_what_an_expression_is_computed_from_is_known() -> None:
    keys, queries, values, score = p.tokens == "a", p.indices + 1, p.indices * 2, p.indices * 3
    aggregate = p.aggregate(p.select(keys, queries) & ~p.before, values, by="best", score=score)
    wanted = [keys, queries, p.indices, p.indices, values, score]
    assert [id(each) for each in aggregate.inputs] == [id(each) for each in wanted]
    assert [id(each) for each in p.width(p.select(keys, queries)).inputs] == [id(keys), id(queries)]
    assert p.tokens.inputs == ()


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda: bool(p.tokens), "tokens (language.py:N) has a value at every position and no truth of its own"),
        (lambda: 1 if p.tokens == "a" else 2, "in place of `if`, `and`, `or`, `not` write where(), &, |, ~"),
        (lambda: list(p.tokens), "known only when a program runs, so it has no items to go through"),
        (lambda: p.tokens[0], "so it has no items to take by [ ]: take the value of another position by aggregate()"),
        (lambda: len(p.tokens), "has no len(): p.length is how many tokens there are"),
        (lambda: "a" in p.tokens, "compare its values by =="),
        (lambda: float(p.indices), "it is no number yet: apply a function to its values by map()"),
        (lambda: int(p.indices), "it is no number yet"),
        (lambda: range(p.length), "it is no number yet"),
        (lambda: round(p.indices / 2), "it is no number yet: apply a function to its values by map(), as in map(round"),
        (lambda: math.floor(p.indices / 2), "it is no number yet"),
        (lambda: math.ceil(p.indices / 2), "it is no number yet"),
        (lambda: math.trunc(p.indices / 2), "it is no number yet"),
        (lambda: p.tokens ^ True, "knows no ^"),
        (lambda: p.tokens.map(3), "map() needs a function, not 3"),
        (lambda: p.before[0], "is a selector and no sequence: give width() or aggregate() of it in its place"),
        (lambda: list(p.before), "is a selector and no sequence"),
        (lambda: p.before + 1, "is a selector and no sequence"),
        (lambda: p.before < 1, "is a selector and no sequence"),
        (lambda: True & p.before, "is a selector and no sequence"),
        (
            lambda: bool(p.before),
            "before (language.py:N) has no truth of its own: put selectors together by &, | and ~",
        ),
        (lambda: p.before & (p.tokens == "a"), "is no selector"),
        (lambda: p.before | True, "True is no selector"),
        (lambda: p.tokens & p.before, "'&' has a sequence on one side and a selector on the other"),
        (lambda: expression(p.before), "a selector stands where a sequence is needed"),
        (lambda: p.indices + 0.5, "gives 0.5, and a program is exact"),
    ],
)
def test_what_is_no_program_is_refused_where_it_is_written(write: Callable[[], Any], said: str) -> None:
    with pytest.raises(UserError, match=re.escape(said).replace("N", r"\d+")) as refused:
        write()
    assert re.search(r"test_nodes\.py:\d+\)", str(refused.value))
