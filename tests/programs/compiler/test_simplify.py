import pytest

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.infer import Values
from headstock.programs.compiler.simplify import Simplifying
from headstock.programs.nodes import Aggregate, Constant, Expression, Indices, Length, Map, Width


def simple(expression: Expression, causal: bool = False, n: int = 4) -> Expression:
    return Simplifying(Values(Domain.of("ab", n, causal, "float32")))(expression)


def test_constants_are_folded() -> None:
    found = simple(p.constant(2) * 3 + 1)
    assert isinstance(found, Constant)
    assert found.value == 7
    assert isinstance(simple(p.width(p.select(p.tokens, "z"))), Constant)
    nothing = simple(p.aggregate(p.select(p.tokens, p.tokens) & p.select(p.indices, -1), p.indices, default=5))
    assert isinstance(nothing, Constant)
    assert nothing.value == 5


def test_common_subexpressions_are_one() -> None:
    def written() -> Expression:
        return p.width(p.select(p.tokens, p.tokens)) + 1

    simplify = Simplifying(Values(Domain.of("ab", 4, False, "float32")))
    assert simplify(written()) is simplify(written())


def test_everything_is_counted_by_the_length_or_by_the_position() -> None:
    assert isinstance(simple(p.width(p.everything)), Length)
    so_far = simple(p.width(p.everything), causal=True)
    assert isinstance(so_far, Map)
    assert any(isinstance(part, Indices) for part in so_far.arguments)
    assert not isinstance(simple(p.width(p.up_to_here), causal=True), Width)


def test_extremes_and_single_sums_are_choices_of_a_key() -> None:
    for by in ("max", "min"):
        found = simple(p.aggregate(p.everything, p.indices, by=by))  # type: ignore[arg-type]
        assert isinstance(found, Aggregate)
        assert found.by == "best"
    found = simple(p.aggregate(p.offset(-1), p.indices * p.indices, by="sum"))
    assert isinstance(found, Aggregate)
    assert found.by == "best"
    assert found.default == 0


def test_a_function_of_what_a_key_says_is_what_the_key_says_of_it() -> None:
    found = simple(p.lookup({"a": 1, "b": 2}, p.aggregate(p.offset(-1), p.tokens, by="best", default="b")))
    assert isinstance(found, Aggregate)
    assert found.default == 2


def test_a_function_need_not_take_a_default_that_cannot_be_met() -> None:
    backwards = p.aggregate(p.select(p.indices, p.length - 1 - p.indices), p.indices, by="best")
    compiled = p.compile(backwards + 1, vocab="ab", max_length=4, causal=False)
    assert compiled("abab") == [4, 3, 2, 1]


def test_extremes_of_flags_are_numbers_as_the_interpreter_has_them() -> None:
    any_a = p.aggregate(p.everything, p.tokens == "a", by="max")
    answer = p.compile(any_a, vocab="ab", max_length=3, causal=False)("bab")
    assert [type(value) for value in answer] == [int] * 3


def test_a_selector_of_too_many_parts_is_refused_with_its_line() -> None:
    many = p.select(p.tokens, "a")
    for shift in range(1, 9):
        many = many | (p.select(p.indices, p.indices - shift) & p.select(p.tokens, p.tokens))
    wide = p.width(many)
    with pytest.raises(UserError, match=r"wide \(test_simplify.py:\d+\) has a selector of \d+ parts, more than 64"):
        simple(wide, n=12)
