"""Induction: a trigger stands once in a random row and again at its end, where what followed it is asked.

    n03 n11 ! n07 n11 n00 n03 ! [n07]

Source: Olsson et al., "In-context Learning and Induction Heads" (2022); as a task Gu and Dao, "Mamba" (2023).
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from headstock.tasks.base import DataCard, Metric
from headstock.tasks.drawing import draw
from headstock.tasks.drawn import DrawnTask, Rows
from headstock.tasks.example import in_brackets
from headstock.tasks.guessing import commonest
from headstock.tasks.tokenizers import WordTokenizer
from headstock.training.batch import Probe

TRIGGER = "!"
LONGER = (1, 2, 4, 8)
"""How many times the trained length a probe is."""


class Induction(DrawnTask):
    """Rows of random tokens with one trigger among them and one at the end: scored is the last prediction."""

    name = "induction"
    primary = Metric("accuracy", "higher", "of the rows")
    steps: ClassVar = {"quick": 1200, "full": 5000}

    def __init__(self, *, length: int, vocabulary: int) -> None:
        """Make it; `length` tokens a trained row, `vocabulary` different ones beside the trigger."""
        self.length, self.vocabulary = length, vocabulary
        digits = len(str(vocabulary - 1))
        self.tokenizer = WordTokenizer([TRIGGER, *(f"n{number:0{digits}}" for number in range(vocabulary))])
        self.vocab_size = 1 + vocabulary
        self.context = LONGER[-1] * length
        self.finish()

    def options(self) -> dict[str, str | int | float]:
        """Give the trained length and how many tokens there are."""
        return {"length": self.length, "vocabulary": self.vocabulary}

    def draw(self, size: int, *purpose: str | int, **at: Any) -> Rows:
        """Draw rows; `at` may say how long they are."""
        length = at.get("length", self.length)
        inputs = 1 + draw(self.vocabulary, size * length, *purpose, "tokens").view(size, length)
        first_b = draw(length - 2, size, *purpose, "first")  # so that what follows it is not the last trigger
        place_q = torch.arange(length)
        last_q = place_q == length - 1
        trigger_bq = (place_q == first_b[:, None]) | last_q
        inputs = inputs.masked_fill(trigger_bq, 0)
        answer_bq = (place_q == first_b[:, None]) | (place_q == first_b[:, None] + 1)
        answers_b = inputs.gather(1, first_b[:, None] + 1)
        targets = torch.cat([inputs[:, 1:], answers_b], dim=1)
        return Rows(inputs, targets, last_q.repeat(size, 1), {"answer": answer_bq, "noise": ~answer_bq & ~last_q})

    def probes(self) -> Iterator[Probe]:
        """Give a set for each of some lengths, the trained one first."""
        for times in LONGER:
            yield self.probe(length=times * self.length)

    def card(self) -> DataCard:
        """Give the card, a held-out row as its example."""
        return DataCard(
            title=self.name,
            what_is_asked=f"The token {TRIGGER} stands somewhere in a random row and again at its end: say what "
            "followed it the first time.",
            example=in_brackets(self._scored["held-out"], self.token_labels),
            primary=self.primary,
            chance=f"{1 / self.vocabulary:.1%} for any of {self.vocabulary} tokens at random; "
            f"{commonest(self._scored['held-out'], range(1, self.vocab_size)):.1%} for the commonest token of the "
            "row, which is the best that a bag of words allows, counted in the held-out set.",
            solved=f"{self.solved_at:.0%} of the rows, so that at most {self.wrong_at_most()} of {self.n_scored} are "
            "wrong.",
            held_out=f"{self.n_held_out} rows of the one in eight, by a hash of the whole row, that is never trained "
            f"on; the probes of {', '.join(map(str, LONGER))} times the length are rows of that rule as well.",
            facts={
                "vocabulary": f"{self.vocabulary} tokens without meaning, evenly drawn with repetition, and {TRIGGER}",
                "tokens in a trained row": f"{self.length}",
                "first trigger": "at any place but the last two, evenly",
                "longest row": f"{self.context} tokens, of the last probe: positions from {self.length} on are never "
                "trained",
            },
            source='Gu and Dao, "Mamba" (2023), after Olsson et al., "In-context Learning and Induction Heads" (2022). '
            "There rows of 256 tokens are trained on and up to a million tested; here rows are shorter.",
            content_hash=self.content_hash,
        )
