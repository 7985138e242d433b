"""What is read is what the model says, twice; where it says nothing clear, it is refused."""

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.programs.back_to_code import Function, machine
from headstock.programs.back_to_code.domain import domain_of
from headstock.programs.back_to_code.function import function_of
from headstock.programs.back_to_code.reading import Told, gaps, lowest_of_highest, read
from tests.programs.back_to_code.functions import lively


def test_each_answer_is_the_models_after_that_sequence_alone() -> None:
    model = lively("softmax")
    function = function_of(model)
    domain = domain_of(function, alphabet=[0, 2], names=None, start=1, longest=2, overflow="refuse", at_most=100)
    told = read(function, domain)
    assert told.verified == domain.size == 1 + 2 + 4
    every = [(), (0,), (2,), (0, 0), (0, 2), (2, 0), (2, 2)]
    rows = [model(torch.tensor([[1, *ids]]))[0, -1].detach() for ids in every]
    found = [int(answer) for length in (0, 1, 2) for answer in told.by_length[length]]
    assert found == [int(row.argmax()) for row in rows]
    least = min(float(row.topk(2).values.diff().abs()) for row in rows)
    assert told.margin == pytest.approx(least, rel=1e-4)


def test_two_equally_likely_tokens_are_refused_or_the_lowest_is_taken() -> None:
    def logits(ids_bq: Tensor) -> Tensor:
        return torch.stack([-1.0 - 0 * ids_bq, 0.0 * ids_bq, 1.0 * (ids_bq - 1)], dim=-1)

    function = Function(logits, vocab_size=3, context=2)
    with pytest.raises(UserError, match="after b two tokens are equally likely"):
        machine(function, names="abc", alphabet="ab")
    found = machine(function, names="abc", alphabet="ab", ties="lowest")
    assert found.margin == 0
    assert found("ab") == "b"
    with pytest.raises(UserError, match="choose 'refuse' or 'lowest'"):
        machine(function, ties="highest")  # type: ignore[arg-type]


def test_logits_that_are_not_numbers_are_refused_by_the_sequence() -> None:
    def logits(ids_bq: Tensor) -> Tensor:
        one = torch.where((ids_bq == 1) & (ids_bq.cumsum(1) == 2), torch.nan, 1.0)
        return torch.stack([one, 0 * one], dim=-1)

    with pytest.raises(UserError, match="the logits after b b are not numbers"):
        machine(Function(logits, vocab_size=2, context=2), names="ab")


def test_a_function_that_looks_ahead_is_met_on_the_second_reading() -> None:
    def logits(ids_bq: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(ids_bq[:, -1:].expand_as(ids_bq), 2).float()

    with pytest.raises(UserError, match="after 0 the model says 0 in one batch and 1 in another: it looks ahead"):
        machine(Function(logits, vocab_size=2, context=2))


def test_an_answer_that_hangs_on_the_size_of_the_batch_is_refused() -> None:
    def logits(ids_bq: Tensor) -> Tensor:
        return torch.nn.functional.one_hot((ids_bq + ids_bq.shape[1]) % 2, 2).float()

    with pytest.raises(UserError, match="within rounding"):
        machine(Function(logits, vocab_size=2, context=2))


def test_an_extraction_that_differs_from_what_was_read_is_a_defect() -> None:
    told = Told({1: torch.tensor([0, 1]).numpy()}, 1.0, "a", 2)
    told.refuse_other({1: torch.tensor([0, 1]).numpy()})
    with pytest.raises(RuntimeError, match="defect"):
        told.refuse_other({1: torch.tensor([0, 0]).numpy()})


def test_gaps_and_likeliest_tokens_hold_for_infinite_and_single_logits() -> None:
    infinite = float("inf")
    logits = torch.tensor([[infinite, infinite, 0.0], [-infinite, 0.0, -infinite], [1.0, 3.0, 3.0], [5.0, 1.0, 2.0]])
    assert gaps(logits).tolist() == [0, infinite, 0, 3]
    assert lowest_of_highest(logits).tolist() == [0, 1, 1, 0]
    assert gaps(torch.ones(2, 1)).tolist() == [infinite, infinite]


def test_large_domains_are_read_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    model = lively("softmax")
    whole = machine(model)
    monkeypatch.setattr("headstock.programs.back_to_code.reading.TOKENS", 10)
    assert machine(model).steps == whole.steps
