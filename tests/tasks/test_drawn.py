from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock.errors import UserError
from headstock.tasks.base import DataCard, Metric
from headstock.tasks.drawing import draw
from headstock.tasks.drawn import DrawnTask, Rows, is_held_out
from headstock.tasks.tokenizers import WordTokenizer


class Echo(DrawnTask):
    """Say the first token again at the end."""

    name = "echo"
    primary = Metric("accuracy", "higher", "of the tokens")
    steps: ClassVar = {"quick": 1, "full": 1}

    def __init__(self, length: int = 6, vocabulary: int = 10) -> None:
        self.length = length
        self.tokenizer = WordTokenizer([f"n{number}" for number in range(vocabulary)])
        self.vocab_size, self.context = vocabulary, length
        self.finish()

    def options(self) -> dict[str, str | int | float]:
        return {"length": self.length, "vocabulary": self.vocab_size}

    def draw(self, size: int, *purpose: str | int, **at: Any) -> Rows:
        length = at.get("length", self.length)
        tokens = draw(self.vocab_size, size * length, *purpose).view(size, length)
        last = torch.arange(length) == length - 1
        first = torch.arange(length) == 0
        spans = {"answer": first.expand(size, -1), "noise": (~first & ~last).expand(size, -1)}
        return Rows(tokens, tokens[:, :1].expand(-1, length), last.expand(size, -1), spans)

    def card(self) -> DataCard:
        raise NotImplementedError


TASK = Echo()


@given(st.integers(0, 3), st.integers(0, 50), st.integers(1, 40))
@settings(max_examples=25)
def test_no_trained_row_is_ever_held_out_and_every_held_out_row_is(seed: int, index: int, size: int) -> None:
    assert not is_held_out(TASK.batch(seed=seed, index=index, size=size).inputs).any()
    assert is_held_out(TASK.batch(seed=seed, index=index, size=size, split="held-out").inputs).all()
    assert len(TASK.batch(seed=seed, index=index, size=size).inputs) == size


def test_one_row_in_eight_is_held_out_however_alike_rows_are() -> None:
    for tokens in (torch.arange(80_000)[:, None], torch.arange(80_000)[:, None] // torch.tensor([1, 30, 900]) % 30):
        assert abs(float(is_held_out(tokens.unique(dim=0)).double().mean()) - 1 / 8) < 0.01


def test_evaluation_rows_are_different_and_the_same_every_time() -> None:
    for split in ("train", "held-out"):
        rows = torch.cat([batch.inputs for batch in TASK.evaluation(split, size=50)])  # type: ignore[arg-type]
        assert len(rows) == len(rows.unique(dim=0)) == 256
        assert bool(is_held_out(rows).all()) == (split == "held-out")
        assert torch.equal(rows, torch.cat([batch.inputs for batch in Echo().evaluation(split)]))  # type: ignore[arg-type]


def test_a_row_that_comes_again_is_scored_once() -> None:
    few = Echo(length=2, vocabulary=9)
    rows = torch.cat([batch.inputs for batch in few.evaluation()])
    assert 0 < len(rows) < 40
    assert len(rows.unique(dim=0)) == len(rows)


def test_too_few_rows_to_hold_one_out_are_refused() -> None:
    with pytest.raises(UserError, match="echo,length=1,vocabulary=2 has too few different rows to hold one in 8 out"):
        Echo(length=1, vocabulary=2)


def test_a_probe_is_held_out_and_is_gone_through_again() -> None:
    probe = TASK.probe(length=9, n_rows=70)
    assert probe.at == {"length": 9}
    once, again = ([batch.inputs for batch in probe.batches] for _ in range(2))
    assert [part.shape for part in once] == [(64, 9), (6, 9)]
    assert torch.equal(torch.cat(once), torch.cat(again))
    assert is_held_out(torch.cat(once)).all()


def test_rows_are_cut_into_batches_without_losing_one() -> None:
    rows = TASK.different_rows(70, "held-out", "cut")
    parts = rows.batches(32)
    assert [len(part.inputs) for part in parts] == [32, 32, 6]
    for name in ("inputs", "targets", "mask"):
        assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(rows, name))


def test_marks_say_what_stands_where_in_the_held_out_rows() -> None:
    marks = TASK.marks()
    assert marks is not None
    assert torch.equal(marks.inputs, torch.cat([batch.inputs for batch in TASK.evaluation()]))
    assert (marks.queries == 5).all()
    assert marks.spans["answer"].sum(1).eq(1).all()
    assert not (marks.spans["answer"] & marks.spans["noise"]).any()


def test_the_hash_follows_the_rows_and_the_options() -> None:
    assert Echo().content_hash == TASK.content_hash != Echo(vocabulary=11).content_hash
    ids, position = TASK.telling_example()
    assert position == 5
    assert len(ids) == 7
    assert TASK.telling_target() == ids[0]
    assert TASK.n_scored == 256
    assert TASK.wrong_at_most() == 2
