"""The smallest look-up: the longest ending that fits decides, and no table with fewer rows says the same."""

import pytest
import torch
from hypothesis import example, given, settings

from headstock.errors import UserError
from headstock.programs.back_to_code import lookup
from headstock.programs.handmade import aab
from tests.programs.back_to_code.functions import Ids, foretelling, lively, of_table, sequences, tables
from tests.programs.back_to_code.searching import fewest_rows


@pytest.mark.parametrize("overflow", ["refuse", "slide"])
def test_aab_by_hand_is_three_rows_over_two_tokens(overflow: str) -> None:
    found = lookup(aab.model(), names="ab", overflow=overflow)
    assert found.window == 2
    assert found.verified == 62
    assert str(found).splitlines() == ["after  says", "… b a  a", "… a    b", "…      a"]


# What ends in a takes three answers as well as one another: it has to keep the one of the ending above it.
@example({(0,): 0, (1,): 2, (0, 0): 1, (0, 1): 2, (1, 0): 2, (1, 1): 2})
@settings(max_examples=15)
@given(tables(longest=2))
def test_no_table_with_fewer_rows_says_the_same(table: dict[Ids, int]) -> None:
    found = lookup(of_table(table, 2, 2), alphabet=[0, 1])
    assert all(found(ids) == answer for ids, answer in table.items())
    assert found.size == fewest_rows(table, 2, 2)


@settings(max_examples=25)
@given(tables(base=3, longest=3, answers=3))
def test_a_look_up_says_what_was_read(table: dict[Ids, int]) -> None:
    found = lookup(of_table(table, 3, 3))
    assert all(found(ids) == answer for ids, answer in table.items())
    sliding = lookup(of_table(table, 3, 3), overflow="slide")
    assert all(sliding(ids) == table[ids[-3:]] for ids in sequences(3, 4))


@settings(max_examples=25)
@given(tables(longest=3))
def test_the_window_is_the_fewest_last_tokens_that_decide(table: dict[Ids, int]) -> None:
    found = lookup(of_table(table, 2, 3))

    def decides(window: int) -> bool:
        said = {(ids[len(ids) - window :], answer) for ids, answer in table.items() if len(ids) >= window}
        return len({answer for _, answer in said}) == 1 if window == 0 else len(said) == len(dict(said))

    assert found.window == min(window for window in range(4) if decides(window))


def test_a_sequence_that_nothing_stands_before_can_have_a_row_of_its_own() -> None:
    function = foretelling(lambda ids: int(ids == (0,)), vocab_size=2, context=3)
    found = lookup(function, names="ab")
    assert str(found).splitlines() == ["after  says", "a      b", "…      a"]
    assert found("a") == "b"
    assert found("ba") == "a"


def test_what_follows_the_start_token_alone_can_have_a_row_of_its_own() -> None:
    function = foretelling(lambda ids: int(ids == (2,)), vocab_size=3, context=3)
    found = lookup(function, start=2)
    assert [(row.ending, row.whole, row.answer) for row in found.rows] == [((), False, 0), ((), True, 1)]
    assert found([]) == 1
    assert "the start token alone" in str(found)


def test_any_model_generates_what_its_look_up_says() -> None:
    model = lively("softmax+alibi")
    found = lookup(model, overflow="slide")
    assert found.size > 3
    ids_bq = torch.randint(3, (32, 7))
    said = model.generate(ids_bq, 1, overflow="slide")[:, -1].tolist()
    assert [found(ids) for ids in ids_bq.tolist()] == said


def test_a_model_that_sees_ahead_foretells_nothing() -> None:
    with pytest.raises(UserError, match="whole_lookup"):
        lookup(lively("softmax", causal=False))
