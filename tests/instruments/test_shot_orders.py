"""The same shots in many orders: what sways a model is seen, and a bag of tokens is swayed by none."""

import pytest
import torch
from torch.nn.functional import one_hot

from headstock.instruments.shot_orders import order_accuracy, orders
from headstock.model.transformer import build
from headstock.tasks.drawn import Rows, is_held_out
from headstock.tasks.manyshot import ORDERS, ManyShot

TASK = ManyShot(shots=12, classes=3, item=2, noise=0.2, features=20, labels=5)


def test_orders_are_of_the_same_shots_and_questions() -> None:
    found = {order: list(orders(TASK, order, n_sets=2, n_orders=3, n_questions=4)) for order in ORDERS}
    for each in found.values():
        assert [(place, turn) for place, turn, _ in each] == [(place, turn) for turn in range(3) for place in range(2)]
    for place in range(2):
        same = [
            Rows(batch.inputs, batch.targets, batch.mask)
            for each in found.values()
            for at, _, batch in each
            if at == place
        ]
        for rows in same:
            assert len(rows) == 4
            assert is_held_out(TASK.identity(rows)).all()
            assert (rows.inputs[:, :-2] == rows.inputs[:1, :-2]).all()  # one set in one order, asked four times
            assert torch.equal(rows.inputs[:, -2:], same[0].inputs[:, -2:])
            assert torch.equal(rows.targets[:, -1], same[0].targets[:, -1])
            assert torch.equal(TASK.identity(rows), TASK.identity(same[0]))
        assert len({tuple(rows.inputs[0].tolist()) for rows in same}) == 9


def test_no_order_sways_a_bag_of_tokens() -> None:
    bag = build("uniform+none,n_layers=1", vocab_size=TASK.vocab_size, context=TASK.context, d_model=16)
    sizes = {"n_sets": 3, "n_orders": 4, "n_questions": 6}
    for found in order_accuracy(bag, TASK, **sizes).values():
        assert found.accuracy.shape == (3, 4)
        assert found.margin == 0
        assert found.mean == pytest.approx(float(found.accuracy.mean()))


def test_who_says_the_last_shots_label_is_swayed_by_its_order() -> None:
    class LastLabel(torch.nn.Module):
        """Says what the last label was."""

        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(TASK.vocab_size, TASK.vocab_size)
            self.config = build("softmax", vocab_size=TASK.vocab_size, context=TASK.context).config

        def hidden(self, ids_bq: torch.Tensor) -> torch.Tensor:
            return one_hot(ids_bq.roll(2, 1), TASK.vocab_size).double()

        def logits(self, x: torch.Tensor) -> torch.Tensor:
            return x

    found = order_accuracy(LastLabel(), TASK, n_sets=4, n_orders=5, n_questions=6)  # type: ignore[arg-type]
    for order in ORDERS:
        by_hand = torch.zeros(4, 5, dtype=torch.float64)
        for place, turn, batch in orders(TASK, order, n_sets=4, n_orders=5, n_questions=6):
            by_hand[place, turn] = (batch.inputs[:, -3] == batch.targets[:, -1]).double().mean()
        assert torch.equal(found[order].accuracy, by_hand)
        assert found[order].margin == pytest.approx(sum(max(each) - min(each) for each in by_hand.tolist()) / 4)
        assert found[order].margin > 0
