import itertools
from typing import Any

import pytest
from hypothesis import given, settings

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.compiler.compiling import Built, built
from headstock.programs.compiler.domain import Domain
from tests.programs.random_programs import Drawn, programs


def built_of(expression: p.Expression, vocabulary: Any = "abc", n: int = 5, causal: bool = False) -> Built:
    return built(expression, Domain.of(vocabulary, n, causal, "float32"))


def built_or_none(drawn: Drawn) -> Built | None:
    try:
        return built_of(drawn.output, drawn.vocabulary, drawn.max_length, drawn.causal)
    except UserError:
        return None


@settings(max_examples=30)
@given(drawn=programs(deepest=3, longest=4))
def test_nothing_is_read_before_it_is_made_and_nothing_is_made_that_is_not_read(drawn: Drawn) -> None:
    made = built_or_none(drawn)
    if made is None:
        return
    schedule = made.schedule
    read = set(schedule.last_read)
    for head in schedule.heads:
        sides = [side for dimension in head.dimensions for side in (dimension.query, dimension.key)]
        for affine in [*sides, *(carried for carried, _ in head.carried)]:
            assert all(quantity.time < head.time for quantity in affine.terms), head.name
        assert all(quantity in read for _, quantity in head.carried), head.name
    for unit in schedule.units:
        assert all(quantity.time < unit.time for quantity in unit.reads.terms), unit.name
        assert all(quantity in read for quantity in unit.writes), unit.name


@settings(max_examples=30)
@given(drawn=programs(deepest=3, longest=4))
def test_no_column_holds_two_numbers_that_are_still_to_be_read(drawn: Drawn) -> None:
    made = built_or_none(drawn)
    if made is None:
        return
    schedule, allocation = made.schedule, made.allocation
    assert sorted(map(id, schedule.quantities)) == sorted(id(q) for held in allocation.holds for q in held)
    for held in allocation.holds:
        for old, new in itertools.pairwise(held):
            cleared = [time for time, gone in allocation.clearing.items() if old in gone]
            assert len(cleared) == 1
            assert old.time < cleared[0] <= new.time
            assert schedule.last_read.get(old, 0) <= cleared[0] < 2 * schedule.n_layers + 1
        assert not any(held[-1] in gone for gone in allocation.clearing.values())


def test_a_column_is_not_cleared_in_the_sum_that_makes_a_flag_of_something_noisy() -> None:
    step = p.lookup({"(": 1, ")": -1}, p.tokens)
    level = p.aggregate(p.up_to_here, step) == 0
    compiled = p.compile(level, vocab="()", max_length=50, causal=True)
    assert compiled("()" * 25) == [False, True] * 25
    made = compiled.built
    for held in made.allocation.holds:
        for old, new in itertools.pairwise(held):
            if old in made.allocation.clearing.get(new.time, []):
                makers = [unit for unit in made.schedule.units if new in unit.writes]
                assert all(unit.reads.grid is not None for unit in makers), (old.name, new.name)


def test_a_column_is_used_again_once_it_is_read_no_more() -> None:
    value: Any = p.tokens
    for _ in range(6):
        value = p.aggregate(p.select(p.indices, p.length - 1 - p.indices), value, by="best")
        value = p.where(p.indices == 0, "a", value)
    made = built_of(value)
    assert any(len(held) > 1 for held in made.allocation.holds)
    assert len(made.allocation.holds) < len(made.schedule.quantities)


def test_two_aggregates_of_one_selector_are_one_head() -> None:
    backwards = p.select(p.indices, p.length - 1 - p.indices)
    letter = p.aggregate(backwards, p.tokens, by="best")
    vowel = p.aggregate(backwards, p.indices * p.indices, by="best")
    made = built_of(p.where(letter == "a", vowel, p.indices))
    picks = [head for head in made.schedule.heads if len(head.carried) > 1]
    assert len(picks) == 1
    alone = built_of(letter)
    assert len(made.schedule.heads) == len(alone.schedule.heads)


def test_what_is_said_twice_is_built_once() -> None:
    def hist() -> p.Expression:
        return p.width(p.select(p.tokens, p.tokens))

    once, twice = built_of(hist() * 3), built_of(hist() + hist() + hist())
    assert twice.blueprint.size() == once.blueprint.size()


def test_what_the_output_does_not_need_is_not_built() -> None:
    hist = p.width(p.select(p.tokens, p.tokens))
    assert built_of(p.tokens).schedule.heads == []
    assert built_of(hist * 0 + p.indices).schedule.heads == []
    assert (
        built_of(p.where(p.indices < 99, p.tokens, p.lookup({"a": "b"}, p.tokens, default="c"))).schedule.n_layers == 0
    )


@pytest.mark.parametrize(
    ("expression", "needed"),
    [
        (p.tokens, False),
        (p.aggregate(p.select(p.indices, p.length - 1 - p.indices), p.tokens, by="best"), False),
        (p.aggregate(p.select(p.tokens, p.tokens), p.indices), False),
        (p.width(p.select(p.tokens, p.tokens)), True),
        (p.aggregate(p.offset(-1), p.tokens, by="best"), True),
        (p.aggregate(p.select(p.tokens, "a"), p.indices, default=0), True),
        (p.length, False),
    ],
)
def test_a_start_token_is_there_only_where_something_is_counted_or_may_select_nothing(
    expression: p.Expression, needed: bool
) -> None:
    made = built_of(expression)
    assert (made.plan.start is not None) == needed
    assert made.blueprint.context == 5 + needed


def test_a_function_of_a_token_or_a_position_takes_no_layer() -> None:
    assert built_of(p.lookup({"a": 1, "b": 5, "c": 2}, p.tokens)).schedule.n_layers == 0
    assert built_of(p.map(lambda at: at * at % 3, p.indices)).schedule.n_layers == 0
    assert built_of(p.indices * 3 - 1).schedule.n_layers == 0
