"""Classification from examples in the row: what a label means is drawn anew for every row, so only the shots tell.

    f03 f17 f40 y2   f11 f08 f29 y5   f03 f17 f22 [y2]

A class has a prototype of a few features; an item shows each of them, or at times any feature in its place.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from headstock.errors import UserError
from headstock.tasks.base import DataCard, Metric
from headstock.tasks.drawing import draw, draw_different
from headstock.tasks.drawn import SOLVED_AT, DrawnTask, Rows, is_held_out
from headstock.tasks.example import in_brackets
from headstock.tasks.tokenizers import WordTokenizer
from headstock.tasks.words import numbered
from headstock.training.batch import Probe

Order = Literal["random", "alternating", "grouped"]
"""Of shots: any; class 1 2 3 1 2 3 …; class 1 1 2 2 3 3 …, which class is the first being drawn."""
ORDERS: tuple[Order, ...] = get_args(Order)
PROBED_SETS = 64
"""Sets of shots that a probe has, each with its question."""
BY_LUCK = 0.01
"""The chance of guessing as many right as naive Bayes does, from which the task cannot be told from guessing."""
TURNS = 4
"""Orders of one kind that a probe puts each of them in."""


class ManyShot(DrawnTask):
    """Rows of labelled items and a last one to be labelled: scored there, trained on every label that can be known."""

    name = "manyshot"
    primary = Metric("accuracy", "higher", "of the questions")
    steps: ClassVar = {"quick": 1500, "full": 4000}

    def __init__(self, *, shots: int, classes: int, item: int, noise: float, features: int, labels: int) -> None:
        """Make it; `shots` examples before the question, as many of each of the `classes`, `item` features each."""
        if shots % classes:
            raise UserError(
                f"{shots} shots cannot be as many of each of {classes} classes: choose a multiple of {classes}, such "
                f"as shots={max(1, round(shots / classes)) * classes}."
            )
        if features < classes * item:
            raise UserError(
                f"{classes} classes of {item} features each, none shared, need {classes * item} features, not "
                f"{features}: choose more features, fewer classes or smaller items."
            )
        if labels < classes:
            raise UserError(f"{classes} classes need {classes} labels or more, not {labels}: choose labels={classes}.")
        self.shots, self.classes, self.item, self.noise = shots, classes, item, noise
        self.features, self.labels = features, labels
        self.tokenizer = WordTokenizer([*numbered("f", features), *numbered("y", labels)])
        self.vocab_size = features + labels
        self.context = shots * (item + 1) + item
        self.finish()
        self.best = self._right(self.read(self._scored["held-out"]))
        """Accuracy of naive Bayes on the shots, a class at a time: what reading them well gets. It leaves out that no
        two classes share a feature, so that with few features and much noise a little more can be had."""
        self.solved_at = round(SOLVED_AT * self.best, 4)
        chance, n = 1 / classes, len(self._scored["held-out"])
        if noise and _by_luck(round(self.best * n), n, chance) > BY_LUCK:
            raise UserError(
                f"with noise={noise} naive Bayes gets {self.best:.1%} of {n} questions by the shots, not clearly "
                f"above the {chance:.1%} of guessing: choose less noise, or items of more features."
            )

    def options(self) -> dict[str, str | int | float]:
        """Give the sizes and the noise."""
        return {
            "shots": self.shots,
            "classes": self.classes,
            "item": self.item,
            "noise": self.noise,
            "features": self.features,
            "labels": self.labels,
        }

    def draw(self, size: int, *purpose: str | int, **at: Any) -> Rows:
        """Draw rows in random orders, masked to what is trained on; `at` may say how many shots, and which question.

        With `even` there are as many shots of each class; else each has a class drawn on its own, so that counting
        labels foretells none. Equal purposes and shots give equal shots, whatever the question.
        """
        shots, question, even = at.get("shots", self.shots), at.get("question", 0), at.get("even", False)
        count = self.classes * self.item
        prototypes_bci = draw_different(self.features, size, count, *purpose, "prototypes").view(size, -1, self.item)
        labels_bc = self.features + draw_different(self.labels, size, self.classes, *purpose, "labels")
        if even:
            classes_bs = draw_different(shots, size, shots, *purpose, "order") % self.classes
        else:
            classes_bs = draw(self.classes, size * shots, *purpose, "order").view(size, shots)
        asked_b1 = draw(self.classes, size, *purpose, "asked", question)[:, None]

        def shown(classes_bn: Tensor, *purpose: str | int) -> Tensor:
            items_bni = prototypes_bci.gather(1, classes_bn[..., None].expand(-1, -1, self.item))
            noisy_n = draw(2**53, items_bni.numel(), *purpose, "noisy") < self.noise * 2**53
            any_n = draw(self.features, items_bni.numel(), *purpose, "noise")
            items_bni = torch.where(noisy_n.view_as(items_bni), any_n.view_as(items_bni), items_bni)
            return torch.cat([items_bni, labels_bc.gather(1, classes_bn)[..., None]], dim=2).flatten(1)

        return self._rows(torch.cat([shown(classes_bs, *purpose), shown(asked_b1, *purpose, question)], dim=1))

    def identity(self, rows: Rows) -> Tensor:
        """Give the shots in an order of their own: a set of them is held out in every order, whatever is asked."""
        return _in_an_order_of_their_own(self._shots(rows))

    def trainable(self, rows: Rows) -> Tensor:
        """Say which rows may be trained on: none that begins with shots that a probe of fewer shots may have."""
        shots_bsi = self._shots(rows)
        held_out = [is_held_out(_in_an_order_of_their_own(shots_bsi[:, :count])) for count in self._probed]
        return ~torch.stack(held_out).any(0)

    def different_rows(self, size: int, split: str, *purpose: str | int, **at: Any) -> Rows:
        """Draw different rows with as many shots of each class, masked to their question alone: what is scored."""
        return _question_alone(super().different_rows(size, split, *purpose, even=True, **at))

    def ordered(self, rows: Rows, order: Order, *purpose: str | int) -> Rows:
        """Give the same shots and questions with the shots in another order, decided by `purpose` and a row's place."""
        shots_bsi = self._shots(rows)
        size, n_shots, _ = shots_bsi.shape
        shots_bsi = _picked(shots_bsi, draw_different(n_shots, size, n_shots, *purpose, "order"))
        if order != "random":
            first_bl = draw_different(self.labels, size, self.labels, *purpose, "classes")
            classes_bs = first_bl.gather(1, shots_bsi[:, :, -1] - self.features)
            shots_bsi = _picked(shots_bsi, classes_bs.argsort(dim=1, stable=True))
        if order == "alternating":
            shots_bsi = self._by_class(shots_bsi).transpose(1, 2).flatten(1, 2)
        question_bi = torch.cat([rows.inputs[:, -self.item :], rows.targets[:, -1:]], dim=1)
        return _question_alone(self._rows(torch.cat([shots_bsi.flatten(1), question_bi], dim=1)))

    def probes(self) -> Iterator[Probe]:
        """Give for a quarter, half and all of the shots the same sets of them in each order, each set in four of it."""
        for shots in self._probed:
            rows = self.different_rows(PROBED_SETS, "held-out", "probe", shots, shots=shots)
            for order in ORDERS:
                turns = [self.ordered(rows, order, "probe", turn) for turn in range(TURNS)]
                yield Probe({"order": order, "shots": shots}, Rows.joined(turns).batches())

    @property
    def _probed(self) -> list[int]:
        """Numbers of shots that probes have, ascending, all of them the last."""
        each = self.shots // self.classes
        return sorted({self.classes * max(1, round(each * part)) for part in (0.25, 0.5, 1.0)})

    def read(self, rows: Rows) -> Tensor:
        """Say each question's label as naive Bayes has it by the shots: int64 (row,).

        By Bayes' rule, every feature as likely beforehand at each place of a prototype.
        """
        kept = 1 - max(self.noise, 1e-9)
        by_class = self.ordered(rows, "grouped", "reading")
        shots_bcsi = self._by_class(self._shots(by_class))
        counts_bcif = one_hot(shots_bcsi[..., :-1], self.features).sum(2).double()
        prototypes_bcif = (counts_bcif * torch.tensor(1 + kept / (1 - kept) * self.features).double().log()).softmax(-1)
        asked_bcif = rows.inputs[:, None, -self.item :, None].expand(-1, self.classes, -1, -1)
        likely_bci = kept * prototypes_bcif.gather(3, asked_bcif)[..., 0] + (1 - kept) / self.features
        best_b1 = likely_bci.log().sum(-1).argmax(-1, keepdim=True)
        return shots_bcsi[:, :, 0, -1].gather(1, best_b1)[:, 0]

    def card(self) -> DataCard:
        """Give the card, a held-out row as its example."""
        rows = self._scored["held-out"]
        last = self._right(rows.inputs[:, -self.item - 1])
        noise = (
            f"; each is with a chance of {self.noise} any feature instead, the right one and those of other classes "
            "included"
            if self.noise
            else ", always"
        )
        return DataCard(
            title=self.name,
            what_is_asked=f"After {self.shots} items with their labels, say the label of one more. Which features a "
            "class has and what it is called are drawn anew for every row, so that only the row itself tells.",
            example=in_brackets(rows, self.token_labels),
            primary=self.primary,
            chance=f"{1 / self.classes:.1%} for one of the row's {self.classes} labels, of which all come as often: "
            f"that of the last shot is right in {last:.1%} of the held-out rows; {1 / self.labels:.1%} for any label.",
            solved=f"{self.solved_at:.1%} of the questions, so that at most {self.wrong_at_most()} of "
            f"{self.n_scored:,} are wrong: {SOLVED_AT:.0%} of what naive Bayes gets by the shots, which is "
            f"{self.best:.1%}{', for noise hides some' if self.best < 1 else ''}.",
            held_out=f"{len(rows)} rows of the one in eight, by a hash of its shots whatever their order, that is "
            "never trained on, neither in another order nor with another question; nor do trained rows begin with the "
            "fewer shots of a probe. Every feature and label is trained on.",
            facts={
                "vocabulary": f"{self.features} features and {self.labels} labels, none of them both",
                "classes": f"{self.classes} a row, each of {_features(self.item)} that no other class of the row has, "
                "with a label of its own",
                "item": f"{_features(self.item)} in the order of the prototype{noise}",
                "shots": f"{self.shots}, {self.shots // self.classes} of each class, in random order; in training each "
                "of a class drawn on its own, so that counting labels tells nothing",
                "tokens in a row": f"{self.context}",
                "trained on": "the label of every item whose class the row has shown before, the question's too",
                "scored": f"the question alone: {self.n_scored:,} in the held-out set",
            },
            source='in the manner of the many-shot classification of Ye et al., "Differential Transformer" (2024), '
            "whose classes are kinds of English questions that pretraining tells of; here they mean nothing beyond the "
            "row.",
            content_hash=self.content_hash,
        )

    def _right(self, said_b: Tensor) -> float:
        return float((said_b == self._scored["held-out"].targets[:, -1]).double().mean())

    def _shots(self, rows: Rows) -> Tensor:
        """Give the shots of rows, each its item and then its label: int64 (row, shot, item + 1)."""
        return rows.inputs[:, : -self.item].reshape(len(rows), -1, self.item + 1)

    def _by_class(self, shots_bsi: Tensor) -> Tensor:
        """Give shots that are grouped as (row, class, shot, item + 1)."""
        return shots_bsi.reshape(len(shots_bsi), self.classes, -1, self.item + 1)

    def _rows(self, tokens_bq: Tensor) -> Rows:
        """Give rows of shots and a question with its label, masked to every label that can be known."""
        labels_bn = tokens_bq[:, self.item :: self.item + 1]
        known_bn = (labels_bn[:, :, None] == labels_bn[:, None, :]).tril(-1).any(2)
        is_label_q = torch.arange(tokens_bq.shape[1]) % (self.item + 1) == self.item
        mask_bq = known_bn.repeat_interleave(self.item + 1, dim=1) & is_label_q
        same_bq = (labels_bn == labels_bn[:, -1:]).repeat_interleave(self.item + 1, dim=1)
        before_q = torch.arange(tokens_bq.shape[1]) < tokens_bq.shape[1] - self.item - 1
        spans = {
            "answer": same_bq & is_label_q & before_q,
            "items of its class": same_bq & ~is_label_q & before_q,
            "other labels": ~same_bq & is_label_q & before_q,
            "other items": ~same_bq & ~is_label_q & before_q,
        }
        return Rows(
            tokens_bq[:, :-1], tokens_bq[:, 1:], mask_bq[:, 1:], {name: span[:, :-1] for name, span in spans.items()}
        )


def _question_alone(rows: Rows) -> Rows:
    mask = torch.zeros_like(rows.mask)
    mask[:, -1] = True
    return replace(rows, mask=mask)


def _in_an_order_of_their_own(shots_bsi: Tensor) -> Tensor:
    """Give the tokens of shots, int64 (row, n), the same ones in whichever order the shots come."""
    for column in reversed(range(shots_bsi.shape[2])):
        shots_bsi = _picked(shots_bsi, shots_bsi[:, :, column].argsort(dim=1, stable=True))
    return shots_bsi.flatten(1)


def _picked(shots_bsi: Tensor, places_bs: Tensor) -> Tensor:
    return shots_bsi.gather(1, places_bs[..., None].expand_as(shots_bsi))


def _by_luck(right: int, n: int, chance: float) -> float:
    """Give the chance that at least so many of n guesses are right."""
    return math.fsum(math.comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(right, n + 1))


def _features(count: int) -> str:
    return f"{count} feature{'s' * (count > 1)}"
