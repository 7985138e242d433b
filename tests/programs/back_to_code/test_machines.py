"""The smallest machine: it says what the model says, and no machine with fewer states does."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.back_to_code import Function, machine
from headstock.programs.back_to_code.domain import Domain
from headstock.programs.back_to_code.machines import answered
from headstock.programs.back_to_code.minimise import smallest
from headstock.programs.handmade import aab
from tests.programs.back_to_code.functions import Ids, foretelling, lively, of_table, running, sequences, tables
from tests.programs.back_to_code.searching import MOST, fewest_states


@pytest.mark.parametrize("overflow", ["refuse", "slide"])
def test_aab_by_hand_is_a_machine_of_three_states(overflow: str) -> None:
    found = machine(aab.model(), names="ab", overflow=overflow)
    assert found.size == 3
    assert found.verified == 2 + 4 + 8 + 16 + 32
    assert found.margin > 1000
    assert str(found).splitlines() == [
        "state  says  on a  on b",
        "0      a     1     2",
        "1      b     1     2",
        "2      a     0     2",
    ]
    assert found.after_each("aabaa") == ["b", "b", "a", "a", "b"]


@settings(max_examples=40)
@given(tables(longest=3))
def test_no_machine_with_fewer_states_says_the_same_up_to_a_length(table: dict[Ids, int]) -> None:
    found = machine(of_table(table, 2, 3))
    assert all(found(ids) == answer for ids, answer in table.items())
    assert min(found.size, MOST + 1) == fewest_states(table)


@settings(max_examples=40)
@given(tables(longest=2))
def test_no_machine_with_fewer_states_says_the_same_on_sequences_without_end(table: dict[Ids, int]) -> None:
    found = machine(of_table(table, 2, 2), overflow="slide")
    # Windows of 2 that differ do so within 2 more tokens, and all are met after 2: sequences of 5 tell all apart.
    longer = {ids: table[ids[-2:]] for ids in sequences(2, 5)}
    assert all(found(ids) == answer for ids, answer in longer.items())
    assert min(found.size, MOST + 1) == fewest_states(longer)


@settings(max_examples=40)
@given(tables(longest=2), st.integers(0, 1))
def test_with_a_start_token_what_comes_first_is_said_too(table: dict[Ids, int], first: int) -> None:
    table = {(): first} | table
    function = foretelling(lambda ids: table[ids[1:]], vocab_size=3, context=3)
    found = machine(function, start=2)
    assert found.verified == 7
    assert all(found(ids) == answer for ids, answer in table.items())
    assert found.after_each([0, 1]) == [first, table[0,], table[0, 1]]
    assert min(found.size, MOST + 1) == fewest_states(table)


@settings(max_examples=25)
@given(st.data(), st.integers(1, 4), st.integers(1, 3))
def test_a_machine_is_found_again_with_no_more_states(data: st.DataObject, states: int, base: int) -> None:
    answers = [data.draw(st.integers(0, 2)) for _ in range(states)]
    steps = [[data.draw(st.integers(0, states - 1)) for _ in range(base)] for _ in range(states)]
    function = running(answers, steps, context=4)
    found = machine(function, alphabet=range(base))
    assert found.size <= states
    for ids in sequences(base, 4):
        assert found(ids) == int(function.last(torch.tensor([ids])).argmax())


def test_what_lies_past_the_longest_sequence_is_free_and_can_save_states() -> None:
    def counting(ids: Ids) -> int:  # b after every third a, and an a too many at the fourth
        return int(len(ids) % 3 == 0)

    function = foretelling(counting, vocab_size=2, context=4)
    assert machine(function).size == 3
    assert machine(function, longest=2).size == 1
    assert machine(function, overflow="slide").size > 3  # a window slid is always four tokens long


@pytest.mark.parametrize("variant", ["softmax", "softmax+rope", "softmax+alibi", "differential", "lstm+none"])
def test_any_model_generates_what_its_machine_says(variant: str) -> None:
    model = lively(variant)
    found = machine(model, overflow="slide")
    assert found.size > 3  # else the model is dull and the test says nothing
    for length in (1, 3, 4, 5, 9):
        ids_bq = torch.randint(3, (8, length))
        said = model.generate(ids_bq, 1, overflow="slide")[:, -1].tolist()
        assert [found(ids) for ids in ids_bq.tolist()] == said


def test_a_start_token_slides_out_of_a_window_like_any_other() -> None:
    model = lively("softmax")
    found = machine(model, start=2, overflow="slide")
    assert found.verified == 1 + 2 + 4 + 8 + 16
    for length in (0, 2, 3, 4, 7):
        ids_bq = torch.randint(2, (8, length))
        seen = torch.cat([torch.full((8, 1), 2), ids_bq], dim=1)
        said = model.generate(seen, 1, overflow="slide")[:, -1].tolist()
        assert [found(ids) for ids in ids_bq.tolist()] == said


def test_before_any_token_nothing_is_said_unless_a_sequence_comes_back_there() -> None:
    longer = foretelling(lambda ids: int(len(ids) > 1), vocab_size=2, context=3)
    found = machine(longer, names="ab")
    assert found.answers == (None, 0, 1)
    assert str(found).splitlines()[1] == "0            1     1"
    assert machine(aab.model()).answers[0] == 0


def test_tokens_that_are_only_said_need_no_column() -> None:
    function = foretelling(lambda ids: 2 + ids[-1], vocab_size=4, context=3)
    found = machine(function, alphabet="ab", names="abxy")
    assert found.size == 2
    assert found.after_each("aba") == ["x", "y", "x"]
    with pytest.raises(UserError, match="'x' is not of the alphabet"):
        found("ax")


def test_sequences_that_were_not_checked_are_not_answered() -> None:
    found = machine(aab.model(), names="ab")
    with pytest.raises(UserError, match="give at most 5"):
        found("aabaab")
    with pytest.raises(UserError, match="at least one"):
        found("")
    assert machine(aab.model(), names="ab", overflow="slide")("aab" * 10) == "a"


def test_a_model_that_sees_ahead_foretells_nothing() -> None:
    with pytest.raises(UserError, match="whole_lookup"):
        machine(lively("softmax", causal=False))
    with pytest.raises(UserError, match="a str is no model"):
        machine("aab")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="a Compiled is more than a function: give its model"):
        machine(p.compile(p.zoo.ab, max_length=2))  # type: ignore[arg-type]


def test_a_model_is_left_as_it_was() -> None:
    model = lively("softmax,dropout_residual=0.5").train()
    state = torch.random.get_rng_state()
    machine(model)
    assert model.training
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_machine_that_remembers_more_than_its_window_is_a_defect() -> None:
    domain = Domain(alphabet=(0, 1), longest=1, context=1, endless=True)
    bounded = smallest({1: np.array([0, 1])}, domain)
    bounded.steps[:] = [[0, 1], [1, 1]]  # b for ever after one b
    with pytest.raises(RuntimeError, match="remembers more"):
        answered(bounded, domain)


def test_a_machine_that_answers_otherwise_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    dull = smallest({1: np.array([0, 0])}, Domain(alphabet=(0, 1), longest=1, context=1, endless=True))
    monkeypatch.setattr("headstock.programs.back_to_code.machines.smallest", lambda *_: dull)
    with pytest.raises(RuntimeError, match="defect"):
        machine(aab.model())


def test_functions_of_ones_own_are_read_like_models() -> None:
    def logits(ids_bq: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.one_hot(ids_bq, 3).float()

    found = machine(Function(logits, vocab_size=3, context=2))
    assert found.size == 3
    assert found.after_each([2, 0]) == [2, 0]
