"""How much the order of labelled examples sways a model: accuracy on the same shots in many orders."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.transformer import Transformer
from headstock.tasks.drawn import Rows
from headstock.tasks.manyshot import ORDERS, ManyShot, Order
from headstock.training.batch import Batch
from headstock.training.evaluation import score


@dataclass(frozen=True)
class OrderAccuracy:
    """How a model does on the same shots in several orders of a kind. accuracy: float64 (set, order)."""

    accuracy: Tensor

    @property
    def mean(self) -> float:
        """Accuracy over all sets and orders."""
        return float(self.accuracy.mean())

    @property
    def margins(self) -> Tensor:
        """Best minus worst order of each set of shots, float64 (set,)."""
        return self.accuracy.amax(1) - self.accuracy.amin(1)

    @property
    def margin(self) -> float:
        """Best minus worst order, mean over the sets."""
        return float(self.margins.mean())


def orders(
    task: ManyShot, order: Order, *, n_sets: int = 16, n_orders: int = 10, n_questions: int = 32
) -> Iterator[tuple[int, int, Batch]]:
    """Give (set, which order, batch) for held-out sets of shots, each in several orders of a kind.

    A batch is one set of shots in one order before `n_questions` questions, (n_questions, context) and masked to them;
    the questions of a set are the same in all its orders, and the sets in all kinds of order.
    """
    asked = [
        task.split_rows(n_sets, "held-out", "orders", question=question, even=True) for question in range(n_questions)
    ]
    for turn in range(n_orders):
        turned = [task.ordered(rows, order, "orders", turn) for rows in asked]
        for place in range(n_sets):
            yield place, turn, Rows.joined([rows[place : place + 1] for rows in turned]).batch()


def order_accuracy(
    model: Transformer, task: ManyShot, *, n_sets: int = 16, n_orders: int = 10, n_questions: int = 32
) -> Mapping[Order, OrderAccuracy]:
    """Score a model on held-out shots in orders of each kind: its accuracy, and best minus worst as the paper has it.

    The paper takes one set of shots, ten random orders and a data set's questions: best minus worst accuracy among the
    orders. Here that is done for each of `n_sets` sets. A model that no order sways has a margin of exactly 0. Raises
    UserError for a count below 1.
    Source: Ye et al., "Differential Transformer" (2024).
    """
    if not isinstance(task, ManyShot):
        raise UserError(f"{task.name} has no shots to put in order: give the task manyshot.")
    for name, count in (("n_sets", n_sets), ("n_orders", n_orders), ("n_questions", n_questions)):
        if count < 1:
            raise UserError(f"{name} is {count}: give 1 or more.")
    found: dict[Order, OrderAccuracy] = {}
    for order in ORDERS:
        accuracy = torch.zeros(n_sets, n_orders, dtype=torch.float64)
        for place, turn, batch in orders(task, order, n_sets=n_sets, n_orders=n_orders, n_questions=n_questions):
            accuracy[place, turn] = score(model, [batch])["accuracy"]
        found[order] = OrderAccuracy(accuracy)
    return found
