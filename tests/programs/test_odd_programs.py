"""Programs and domains that nobody should write: each is refused with a sentence that says why, or simply works."""

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.interpreter import Reading
from headstock.programs.nodes import Expression


def by_chance(_: Any) -> bool:
    return random.random() < 0.5


@pytest.mark.parametrize(
    "program",
    [
        p.map(by_chance, p.tokens),
        p.width(p.select(p.tokens, p.tokens, lambda _key, _query: random.random() < 0.5)),
        p.map(lambda _: object(), p.tokens),
    ],
)
def test_a_function_that_hangs_on_more_than_its_values_is_named_and_is_no_fault_of_the_compiler(
    program: Expression,
) -> None:
    with pytest.raises(UserError, match=r"\(test_odd_programs.py:\d+\) gives one value of .* now and another then"):
        p.compile(program, vocab="abc", max_length=4)


def test_values_of_numpy_are_those_of_python() -> None:
    for given, meant in ((np.bool_(True), True), (np.str_("q"), "q"), ((np.int64(2), 1), (2, 1))):
        (found,) = p.interpret(p.map(lambda _, given=given: given, p.tokens), "a")
        assert found == meant
        assert type(found) is type(meant)


def test_what_is_no_value_is_refused_wherever_it_is_given() -> None:
    with pytest.raises(UserError, match="gives nan"):
        p.interpret(p.map(lambda token: (token, float("nan")), p.tokens), "a")
    with pytest.raises(UserError, match="no value of a program"):
        p.interpret(p.map(lambda _: p.indices, p.tokens), "a")
    with pytest.raises(UserError, match="no value of a program"):
        p.aggregate(p.offset(-1), p.tokens, default=p.tokens)


@pytest.mark.parametrize("number", [10**400, Fraction(1, 10**400), -(10**100)], ids=["large", "small", "negative"])
def test_a_number_beyond_all_floats_is_refused_by_name(number: Any) -> None:
    with pytest.raises(UserError, match=r"\(test_odd_programs.py:\d+\) can be about -?1e[+-]\d+, beyond"):
        p.compile(p.lookup({"a": number, "b": 0}, p.tokens), vocab="ab", max_length=2)


@pytest.mark.parametrize("number", [Fraction(1, 10**6), Fraction(1, 10**7)])
def test_numbers_that_a_dtype_holds_with_fewer_digits_are_refused_and_not_met_by_chance(number: Fraction) -> None:
    small = p.lookup({"a": number, "b": 3 * number, "c": 0}, p.tokens)
    with pytest.raises(UserError, match="float16") as refused:
        p.compile(p.aggregate(p.everything, small), vocab="abc", max_length=4, dtype="float16")
    assert "fault" not in str(refused.value)


def test_a_mean_of_too_many_different_values_is_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr("headstock.programs.compiler.infer.canonical", lambda value, _: made.append(value) or value)
    numbers = p.lookup({"a": 0, "b": 1, "c": Fraction(1, 1_000_003), "d": 2}, p.tokens)
    with pytest.raises(UserError, match="different values, more than"):
        p.compile(p.aggregate(p.everything, numbers), vocab="abcd", max_length=50)
    assert len(made) < 100


def test_operators_work_with_the_number_on_either_side() -> None:
    one = p.indices + 1
    truth = True & (p.indices > 0)
    for program in (7 // one, 7 % one, one**2, 2**one, one ** (-1), truth, False | truth):
        compiled = p.compile(program, vocab="ab", max_length=3)
        assert compiled("aba") == Reading("aba")[program]
    assert p.interpret(2 ** (-one), "ab") == [Fraction(1, 2), Fraction(1, 4)]


def test_words_of_the_language_refuse_what_they_cannot_use() -> None:
    with pytest.raises(UserError, match="goes by one whole number"):
        p.offset(p.indices)
    with pytest.raises(UserError, match="needs a dictionary"):
        p.lookup([1, 2], p.indices)


@pytest.mark.parametrize("length", [1.5, "4", True, 10**9, 0])
def test_a_length_that_is_none_is_refused(length: Any) -> None:
    with pytest.raises(UserError, match="max_length is"):
        p.compile(p.indices, vocab="ab", max_length=length)


def test_a_vocabulary_may_have_the_names_that_a_model_gives_its_own_tokens(tmp_path: Any) -> None:
    for number, program in enumerate((p.width(p.select(p.tokens, p.tokens)), 1 / (p.indices + 1))):
        compiled = p.compile(program, vocab=["<start>", "<number>"], max_length=3)
        compiled.save(tmp_path / str(number))
        given = ["<start>", "<number>", "<start>"]
        assert p.load(tmp_path / str(number))(given) == compiled(given) == Reading(given)[program]


def test_a_token_with_space_in_it_is_given_in_python_and_not_typed(tmp_path: Any) -> None:
    from headstock.programs.text import tokens_of

    compiled = p.compile(p.indices, vocab=["red", "a b"], max_length=3)
    with pytest.raises(UserError, match="'a b' has space in it"):
        tokens_of(compiled.readout, "red a b")
    assert tokens_of(compiled.readout, "red red") == ["red", "red"]


def test_a_program_built_too_deep_for_python_is_refused() -> None:
    deep = p.indices
    for _ in range(2_000):
        deep = (deep + 1) % 7
    with pytest.raises(UserError, match="more deeply than Python goes"):
        p.interpret(deep, "ab")
    with pytest.raises(UserError, match="more deeply than Python goes"):
        p.compile(deep, vocab="ab", max_length=3)


@pytest.mark.parametrize("program", [p.tokens, 1 / (p.indices + 1)])
def test_a_model_that_gives_no_numbers_gives_no_values(program: Expression) -> None:
    compiled = p.compile(program, vocab="ab", max_length=3)
    compiled.model.embed.weight.data.fill_(float("nan"))
    with pytest.raises(UserError, match="not finite"):
        compiled("ab")


def test_half_a_character_is_not_written_to_a_file(tmp_path: Any) -> None:
    with pytest.raises(UserError, match="half a character"):
        p.compile(p.where(p.indices > 0, chr(0xD800), p.tokens), vocab="ab", max_length=3).save(tmp_path / "x")


def test_a_token_of_another_kind_is_told_from_one_that_looks_the_same() -> None:
    with pytest.raises(UserError, match="the token '1' is not in the program's vocabulary: did you mean 1"):
        p.compile(p.indices, vocab=[1, 2], max_length=3)(["1"])
