from fractions import Fraction
from itertools import islice

import pytest
from hypothesis import given, settings

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.compiler.certificate import every_sequence
from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.infer import Values
from headstock.programs.compiler.simplify import Simplifying
from headstock.programs.interpreter import Reading
from tests.programs.random_programs import Drawn, programs


def values_of(
    expression: p.Expression, vocabulary: object = "ab", n: int = 4, causal: bool = False
) -> tuple[object, ...]:
    values = Values(Domain.of(vocabulary, n, causal, "float32"))
    return values[Simplifying(values)(expression)]


@settings(max_examples=40)
@given(drawn=programs(deepest=2, longest=4))
def test_no_value_that_occurs_is_missing(drawn: Drawn) -> None:
    domain = Domain.of(drawn.vocabulary, drawn.max_length, drawn.causal, "float32")
    values = Values(domain)
    simplify = Simplifying(values)
    try:
        simplify(drawn.output)
        known = {node: set(values[node]) for _, node in list(simplify.became.values())}
    except UserError:
        return
    for sequence in islice(every_sequence(domain), 80):
        reading = Reading(sequence, causal=drawn.causal)
        for node, possible in known.items():
            assert set(reading[node]) <= possible, (node.said, sequence, drawn)


@settings(max_examples=40)
@given(drawn=programs(deepest=2, longest=4))
def test_the_simple_form_of_a_program_means_the_same(drawn: Drawn) -> None:
    domain = Domain.of(drawn.vocabulary, drawn.max_length, drawn.causal, "float32")
    simplify = Simplifying(Values(domain))
    try:
        simplify(drawn.output)
    except UserError:
        return
    for sequence in islice(every_sequence(domain), 40):
        reading = Reading(sequence, causal=drawn.causal)
        for written, simple in simplify.became.values():
            assert list(map(_typed, reading[simple])) == list(map(_typed, reading[written])), (written.said, drawn)


def _typed(value: object) -> tuple[str, object]:
    return type(value).__name__, value


def test_what_hangs_together_at_one_position_is_followed() -> None:
    assert values_of(p.length - 1 - p.indices) == (0, 1, 2, 3)
    assert values_of(p.where(p.indices < p.length, 1, 2)) == (1,)
    assert values_of(p.indices - p.indices) == (0,)


def test_counts_and_sums_and_means_have_the_values_that_so_many_keys_allow() -> None:
    assert values_of(p.width(p.select(p.tokens, "a")), n=3) == (0, 1, 2, 3)
    assert values_of(p.width(p.select(p.tokens, p.tokens)), n=3) == (1, 2, 3)
    assert values_of(p.width(p.select(p.tokens, p.tokens, "!=")), n=3) == (0, 1, 2)
    assert values_of(p.width(p.offset(-1)), n=3) == (0, 1)
    half, third = Fraction(1, 2), Fraction(1, 3)
    assert values_of(p.aggregate(p.everything, p.tokens == "a"), n=3) == (0, third, half, 2 * third, 1)
    assert values_of(p.aggregate(p.before, p.tokens, by="best"), n=3) == (None, "a", "b")


def test_a_sum_of_many_counts_is_inferred_term_by_term() -> None:
    many = p.aggregate(p.select(p.tokens, p.tokens, "!="), p.indices, by="sum")
    assert set(range(7)) <= set(values_of(many, n=5))


def test_too_many_combinations_are_refused_with_the_expression_and_the_length_that_would_do() -> None:
    backwards = p.length - 1 - p.indices
    with pytest.raises(
        UserError, match=r"backwards \(test_infer.py:\d+\) is a function of 90,000 .* max_length=244 or"
    ):
        values_of(backwards, n=300)
    assert len(values_of(backwards, n=244)) == 244
    counted = p.width(p.select(p.tokens, p.tokens)) * p.indices * p.width(p.select(p.tokens, "a"))
    with pytest.raises(
        UserError, match=r"counted \(test_infer.py:\d+\) is .* declare a smaller max_length or vocabulary"
    ):
        values_of(counted, n=300)
