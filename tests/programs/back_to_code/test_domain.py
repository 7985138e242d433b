"""The domain: every sequence once, in the order of its number, and nothing that does not fit."""

import pytest
import torch

from headstock.errors import UserError
from headstock.programs.back_to_code import machine
from headstock.programs.back_to_code.domain import Domain
from tests.programs.back_to_code.functions import foretelling, lively, sequences


def test_sequences_are_numbered_in_order_and_each_is_given_once() -> None:
    domain = Domain(alphabet=(5, 0, 7), longest=3, context=3)
    for length in (1, 2, 3):
        numbers = torch.cat(list(domain.batches(length, 7)))
        assert numbers.tolist() == list(range(3**length))
        expected = [tuple((5, 0, 7)[at] for at in ids) for ids in sequences(3, length, length)]
        assert [tuple(ids) for ids in domain.ids(length, numbers).tolist()] == expected
        assert [domain.sequence(length, number) for number in numbers.tolist()] == expected
    assert domain.size == 3 + 9 + 27


def test_a_start_token_stands_before_every_sequence_until_the_context_is_full() -> None:
    domain = Domain(alphabet=(0, 1), longest=2, context=2, start=9, endless=True)
    assert list(domain.lengths) == [0, 1, 2]
    assert domain.ids(0, torch.tensor([0])).tolist() == [[9]]
    assert domain.ids(1, torch.tensor([1])).tolist() == [[9, 1]]
    assert domain.ids(2, torch.tensor([2])).tolist() == [[1, 0]]


def test_all_tokens_are_read_but_the_start_token_where_no_alphabet_is_given() -> None:
    assert machine(lively("softmax"), start=1).domain.alphabet == (0, 2)
    assert machine(lively("softmax")).domain.alphabet == (0, 1, 2)


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"alphabet": [0, 3]}, "3 is no token: give ids from 0 to 2"),
        ({"alphabet": ["a"]}, "ids have none"),
        ({"alphabet": ["start"], "names": ["a", "b", "strat"]}, "did you mean 'strat'"),
        ({"alphabet": [0, 0]}, "once"),
        ({"alphabet": []}, "each token that is read"),
        ({"alphabet": [0, 1], "start": 1}, "leave it out of the alphabet"),
        ({"names": "ab"}, "2 names"),
        ({"names": "aab"}, "2 of them different"),
        ({"longest": 5}, "choose from 1 to 4"),
        ({"longest": 0}, "choose from 1 to 4"),
        ({"longest": 1.5}, "longest=1.5 tokens do not fit.*choose from 1 to 4"),
        ({"longest": "3"}, "longest='3' tokens do not fit"),
        ({"longest": 4, "start": 0}, "after the start token: choose from 1 to 3"),
        ({"longest": 2, "overflow": "slide"}, "leave longest out"),
        ({"overflow": "slid"}, "choose 'refuse' or 'slide'"),
        ({"at_most": 50}, "120 sequences of up to 4 tokens.*at most 50 are read: choose longest=3"),
        ({"at_most": 2}, "choose a smaller alphabet"),
        ({"at_most": 50, "overflow": "slide"}, "overflow='refuse' with a smaller longest"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(choices: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        machine(lively("softmax"), **choices)  # type: ignore[arg-type]


def test_what_is_proposed_instead_of_too_many_fits() -> None:
    assert machine(lively("softmax"), longest=3, at_most=50).verified == 39


def test_a_context_of_one_has_no_room_after_a_start_token() -> None:
    one = foretelling(lambda ids: ids[-1], vocab_size=2, context=1)
    with pytest.raises(UserError, match="no room after the start token"):
        machine(one, start=0)
    assert machine(one, start=0, overflow="slide")([1]) == 1
