"""Quality by bits is the model's own loss and accuracy, taken with what was named rounded."""

import math

import pytest
import torch

from headstock.errors import UserError
from headstock.instruments.few_bits import quantisation
from headstock.instruments.quantising import quantised
from headstock.training.batch import Batch
from headstock.training.evaluation import score
from tests.model.cases import BATCH, TIME, Case, some_ids

MASK = torch.arange(TIME).remainder(3).ne(1).expand(BATCH, -1)
BATCHES = [Batch(some_ids(seed=n), some_ids(seed=n + 1), MASK) for n in (0, 2)]
ALL = ("attention logits", "weights", "activations")


@pytest.mark.parametrize("variant", ["softmax", "differential", "differential2"])
@pytest.mark.parametrize("of", [*ALL, ALL])
def test_loss_and_accuracy_are_those_of_an_evaluation_in_fewer_bits(variant: str, of) -> None:
    model = Case("", variant).model().train()
    found = quantisation(model, iter(BATCHES), (5, 2), of, per="row")
    whole = score(model, BATCHES)
    assert (found.whole.loss, found.whole.accuracy) == pytest.approx((whole["loss"], whole["accuracy"]))
    for place, bits in enumerate(found.bits):
        with quantised(model, bits, of, per="row"):
            fewer = score(model, BATCHES)
        assert found.loss[place].item() == pytest.approx(fewer["loss"])
        assert found.accuracy[place].item() == pytest.approx(fewer["accuracy"])
        assert found.loss_change[place].item() == pytest.approx(fewer["loss"] - whole["loss"])
        assert found.accuracy_change[place].item() == pytest.approx(fewer["accuracy"] - whole["accuracy"])
    assert found.targets == 2 * int(MASK.sum())
    assert model.training


def test_many_bits_cost_nothing_and_few_cost_much() -> None:
    model = Case("", "softmax").model()
    with torch.no_grad():
        targets = model(some_ids()).argmax(-1)
    found = quantisation(model, [Batch(some_ids(), targets, MASK)], (32, 1), "weights")
    assert found.whole.accuracy == 1.0
    assert found.loss_change[0].item() == pytest.approx(0.0, abs=1e-6)
    assert found.accuracy_change.tolist()[0] == 0.0
    assert found.accuracy[1] < 0.5


def test_errors_are_those_of_rows_paired() -> None:
    model = Case("", "softmax").model()
    found = quantisation(model, BATCHES, (3,))
    change = []
    for batch in BATCHES:
        for row in range(BATCH):
            alone = Batch(batch.inputs[row : row + 1], batch.targets[row : row + 1], batch.mask[row : row + 1])
            # a scale for a whole tensor is one of the whole batch, so rows are taken out of it afterwards
            with torch.no_grad():
                whole = model(batch.inputs)
                with quantised(model, 3):
                    fewer = model(batch.inputs)
            nats = [
                torch.nn.functional.cross_entropy(logits[row][alone.mask[0]], alone.targets[alone.mask]).item()
                for logits in (fewer, whole)
            ]
            change.append(nats[0] - nats[1])
    expected = torch.tensor(change).double().std() / math.sqrt(len(change))
    assert found.loss_error.item() == pytest.approx(expected.item(), rel=1e-4)
    assert quantisation(model, [alone], (3,)).loss_error.isnan().all()


def test_it_draws_quality_against_bits() -> None:
    found = quantisation(Case("", "softmax").model(), BATCHES, (8, 2))
    drawn = found.draw()
    assert drawn.title == (f"Loss {found.loss[1]:.3g} with 2 bits of attention logits, {found.whole.loss:.3g} as it is")
    assert [row[1] for row in drawn.table.rows] == ["2", "8"]
    assert found.draw("accuracy").title.startswith("Accuracy 0.")
    assert "<svg" in found._repr_html_()
    alone = Batch(some_ids(1), some_ids(1), MASK[:1])
    assert "Band" not in quantisation(Case("", "softmax").model(), [alone], (4,)).draw().caption
    with pytest.raises(UserError, match="accuracy"):
        found.draw("acuracy")


def test_no_bits_bits_twice_and_no_targets_are_refused() -> None:
    model = Case("", "softmax").model()
    for bits in ((), (4, 4)):
        with pytest.raises(UserError, match="choose different ones"):
            quantisation(model, BATCHES, bits)
    with pytest.raises(UserError, match="bits=0"):
        quantisation(model, BATCHES, (4, 0))
    with pytest.raises(UserError, match="no target of these batches counts"):
        quantisation(model, [Batch(some_ids(), some_ids(), torch.zeros_like(MASK))])
    with pytest.raises(UserError, match="no attention logits"):
        quantisation(Case("", "linear").model(), BATCHES)
