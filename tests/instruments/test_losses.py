"""Losses are counted once each, by position and by whether their n-gram stood before."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy

from headstock.errors import UserError
from headstock.instruments.gradients import gradient_norms
from headstock.instruments.losses import loss_by_position, loss_on_repeats, repeats, token_losses
from headstock.instruments.row_means import RowMeans
from headstock.model.transformer import Transformer
from headstock.training.batch import Batch
from headstock.training.config import TrainingConfig
from headstock.training.evaluation import score
from headstock.training.loop import accumulate_gradients
from tests.model.cases import VOCAB, Case, every_mixer, some_ids


def some_batch(seed: int = 0, rows: int = 4, time: int = 9) -> Batch:
    ids = some_ids(rows, time + 1, seed)
    mask = torch.rand(rows, time, generator=torch.Generator().manual_seed(seed)) < 0.7
    return Batch(ids[:, :-1], ids[:, 1:], mask)


def plain_losses(model: Transformer, batch: Batch) -> Tensor:
    with torch.no_grad():
        logits = model(batch.inputs).flatten(0, 1)
    return cross_entropy(logits, batch.targets.flatten(), reduction="none").view(batch.mask.shape)


@every_mixer
def test_losses_by_position_are_the_means_of_all_rows_however_they_are_cut(case: Case) -> None:
    model = case.model()
    batches = [some_batch(0), some_batch(1, rows=3, time=5), some_batch(2)]
    found = loss_by_position(model, iter(batches))
    for position in range(9):
        here = [
            plain_losses(model, batch)[:, position][batch.mask[:, position]]
            for batch in batches
            if position < batch.mask.shape[1]
        ]
        losses = torch.cat(here)
        assert found.count[position] == len(losses)
        torch.testing.assert_close(found.mean[position], losses.mean())
        torch.testing.assert_close(found.standard_error[position], losses.std() / math.sqrt(len(losses)))
    kept = torch.cat([plain_losses(model, batch)[batch.mask] for batch in batches])
    assert found.overall == pytest.approx(kept.mean().item())


def test_a_batch_without_rows_adds_nothing() -> None:
    model, batch = Case("", "softmax").model(), some_batch()
    none = Batch(batch.inputs[:0], batch.targets[:0], batch.mask[:0])
    assert loss_on_repeats(model, [none, batch]) == loss_on_repeats(model, [batch])
    torch.testing.assert_close(loss_by_position(model, [none, batch]).mean, loss_by_position(model, [batch]).mean)


def test_a_position_without_targets_has_no_loss_and_with_one_no_error() -> None:
    ids = some_ids(2, 4)
    mask = torch.tensor([[True, False, True], [True, False, False]])
    found = loss_by_position(Case("", "softmax").model(), [Batch(ids[:, :-1], ids[:, 1:], mask)])
    assert found.count.tolist() == [2, 0, 1]
    assert found.mean.isnan().tolist() == [False, True, False]
    assert found.standard_error.isnan().tolist() == [False, True, True]
    assert "Loss by position" in found._repr_html_()


def test_no_target_at_all_is_refused() -> None:
    ids = some_ids(2, 4)
    nothing = Batch(ids[:, :-1], ids[:, 1:], torch.zeros(2, 3, dtype=torch.bool))
    for measure in (loss_by_position, loss_on_repeats):
        with pytest.raises(UserError, match="no target"):
            measure(Case("", "softmax").model(), [nothing])


def looked_up(inputs: list[int], targets: list[int], n: int) -> list[bool]:
    """Look for each n-gram in all that was read, the definition word for word."""
    seen = []
    for place, target in enumerate(targets):
        read = inputs[: place + 1]
        gram = [*read[len(read) - n + 1 :], target] if n <= len(read) + 1 else None
        seen.append(gram is not None and any(read[i : i + n] == gram for i in range(len(read) - n + 1)))
    return seen


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.integers(1, 9).flatmap(
                lambda time: st.lists(
                    st.tuples(*(st.lists(st.integers(0, 2), min_size=time, max_size=time) for _ in range(2))),
                    min_size=1,
                    max_size=3,
                )
            ),
        )
    )
)
def test_an_ngram_is_seen_where_it_stands_in_what_was_read(drawn: Any) -> None:
    n, rows = drawn
    inputs, targets = torch.tensor([row[0] for row in rows]), torch.tensor([row[1] for row in rows])
    assert repeats(inputs, targets, n).tolist() == [looked_up(*row, n) for row in rows]


def test_a_bigram_that_ends_where_the_target_stands_has_not_been_read_yet() -> None:
    assert repeats(torch.tensor([[1, 2, 1]]), torch.tensor([[2, 1, 2]]), 2).tolist() == [[False, False, True]]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_repeated_and_other_tokens_make_up_all_of_them(n: int) -> None:
    model = Case("", "softmax").model()
    batches = [some_batch(seed, rows=8) for seed in range(3)]
    found = loss_on_repeats(model, batches, n)
    losses = torch.cat([plain_losses(model, batch)[batch.mask] for batch in batches])
    seen = torch.cat([repeats(batch.inputs, batch.targets, n)[batch.mask] for batch in batches])
    assert found.repeated.count == int(seen.sum())
    assert found.repeated.count + found.others.count == found.everything.count == len(losses)
    assert found.share == pytest.approx(seen.double().mean().item())
    assert found.others.mean == pytest.approx(losses[~seen].mean().item())
    if n < 3:
        assert found.repeated.mean == pytest.approx(losses[seen].mean().item())
        assert "seen before" in found._repr_html_()
    else:
        assert math.isnan(found.repeated.mean) == (not bool(seen.any()))


def test_ngrams_known_by_heart_count_with_the_others() -> None:
    inputs, targets = torch.tensor([[1, 2, 1, 3, 1]]), torch.tensor([[2, 1, 3, 1, 2]])
    assert repeats(inputs, targets, 2).tolist() == [[False, False, False, False, True]]
    assert not repeats(inputs, targets, 2, [(1, 2)]).any()
    assert repeats(inputs, targets, 2, [(1, 3)]).any()
    with pytest.raises(UserError, match="no 2-gram"):
        loss_on_repeats(Case("", "softmax").model(), [], 2, but_not=[(1, 2, 3)])
    with pytest.raises(UserError, match="n=0"):
        loss_on_repeats(Case("", "softmax").model(), [], 0)


def test_the_model_is_left_in_the_modes_it_was_in() -> None:
    model = Case("", "softmax,dropout_residual=0.5").model().train()
    model.blocks[0].eval()
    before = [module.training for module in model.modules()]
    first = loss_by_position(model, [some_batch()])
    assert [module.training for module in model.modules()] == before
    torch.testing.assert_close(first.mean, loss_by_position(model.eval(), [some_batch()]).mean, equal_nan=True)


def test_chunks_of_logits_do_not_move_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = Case("", "softmax").model(), some_batch()
    with torch.no_grad():
        whole = token_losses(model, batch)
        monkeypatch.setattr("headstock.instruments.losses.CHUNK_NUMBERS", 2 * VOCAB)
        torch.testing.assert_close(token_losses(model, batch), whole)
    torch.testing.assert_close(whole, plain_losses(model, batch) * batch.mask)


def test_rows_that_say_the_same_over_and_over_are_one_observation_each() -> None:
    once, often = RowMeans(), RowMeans()
    values = torch.tensor([1.0, 2.0, 4.0])
    once.add(values, torch.ones(3))
    often.add(100 * values, torch.full((3,), 100))
    assert once.standard_error == pytest.approx(often.standard_error)
    assert once.standard_error == pytest.approx(values.std().item() / math.sqrt(3))


@pytest.mark.parametrize("odd", [-100, -1, 60])
def test_a_target_that_is_no_token_is_refused_where_it_counts_and_passed_over_where_not(odd: int) -> None:
    model, ids = Case("", "softmax").model(), some_ids()
    targets, mask = ids.clone(), torch.ones_like(ids, dtype=torch.bool)
    targets[:, 4:] = odd
    batch = Batch(ids, targets, mask)
    for measure in (
        lambda: loss_by_position(model, [batch]),
        lambda: score(model, [batch]),
        lambda: gradient_norms(model, batch),
        lambda: accumulate_gradients(model, batch, TrainingConfig(steps=1), 0),
    ):
        with pytest.raises(UserError, match=f"a target that counts is {odd}, and ids go from 0 to"):
            measure()
    mask[:, 4:] = False
    assert loss_by_position(model, [Batch(ids, targets, mask)]).count.tolist()[:5] == [len(ids)] * 4 + [0]
