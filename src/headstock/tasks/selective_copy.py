"""Selective copying: tokens among blanks are to be given again, in order, after a marker.

    · n03 · · n11 n03 · · > · [n03] · [n11] · [n03]

Source: Gu and Dao, "Mamba" (2023); Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures" (2024).
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from headstock.errors import UserError
from headstock.tasks.base import DataCard, Metric
from headstock.tasks.drawing import draw, draw_different
from headstock.tasks.drawn import DrawnTask, Rows
from headstock.tasks.example import in_brackets
from headstock.tasks.guessing import commonest
from headstock.tasks.tokenizers import WordTokenizer
from headstock.training.batch import Probe

BLANK, MARKER = "·", ">"


class SelectiveCopy(DrawnTask):
    """Rows of tokens among blanks, a marker, and a blank for each answer: scored are the predictions there."""

    name = "selective-copy"
    primary = Metric("accuracy", "higher", "of the copied tokens")
    steps: ClassVar = {"quick": 1200, "full": 5000}

    def __init__(self, *, length: int, tokens: int, vocabulary: int) -> None:
        """Make it; `length` places before the marker, `tokens` of them filled from a vocabulary of so many."""
        if tokens > length:
            raise UserError(
                f"{tokens} tokens do not fit into {length} places before the marker: choose more places or fewer "
                "tokens."
            )
        self.length, self.tokens, self.vocabulary = length, tokens, vocabulary
        digits = len(str(vocabulary - 1))
        names = (f"n{number:0{digits}}" for number in range(vocabulary))
        self.tokenizer = WordTokenizer([BLANK, MARKER, *names])
        self.vocab_size = 2 + vocabulary
        self.context = 2 * length + 1 + tokens
        self.finish()

    def options(self) -> dict[str, str | int | float]:
        """Give the places, how many are filled and with how many different tokens."""
        return {"length": self.length, "tokens": self.tokens, "vocabulary": self.vocabulary}

    def draw(self, size: int, *purpose: str | int, **at: Any) -> Rows:
        """Draw rows; `at` may say how many places there are and how many are filled."""
        length, count = at.get("length", self.length), at.get("tokens", self.tokens)
        places_bn = draw_different(length, size, count, *purpose, "places").sort(1).values
        tokens_bn = 2 + draw(self.vocabulary, size * count, *purpose, "tokens").view(size, count)
        inputs = torch.zeros(size, length + 1 + count, dtype=torch.int64).scatter(1, places_bn, tokens_bn)
        inputs[:, length] = 1
        place_q = torch.arange(inputs.shape[1])
        targets = inputs.roll(-1, 1)
        targets[:, length + 1 :] = tokens_bn
        filled_bq = inputs > 1
        answer_bq = place_q == places_bn[:, :1]
        spans = {
            "answer": answer_bq,
            "other tokens": filled_bq & ~answer_bq,
            "noise": ~filled_bq & (place_q < length),
        }
        return Rows(inputs, targets, (place_q > length).repeat(size, 1), spans)

    def probes(self) -> Iterator[Probe]:
        """Give a set for 1, 2, 4, ... tokens up to the trained number, among as many places and among twice as many."""
        counts = [1 << power for power in range(self.tokens.bit_length()) if 1 << power < self.tokens]
        for length in (self.length, 2 * self.length):
            for count in (*counts, self.tokens):
                yield self.probe(length=length, tokens=count)

    def card(self) -> DataCard:
        """Give the card, a held-out row as its example."""
        return DataCard(
            title=self.name,
            what_is_asked=f"Tokens stand at random places among blanks ({BLANK}): after {MARKER} give them again in "
            "their order. The first blank asks for the first, the second for the second; what the brackets show is "
            "no part of the row.",
            example=in_brackets(self._scored["held-out"], self.token_labels),
            primary=self.primary,
            chance=f"{1 / self.vocabulary:.1%} for any of {self.vocabulary} tokens at random; "
            f"{commonest(self._scored['held-out'], range(2, self.vocab_size)):.1%} for the commonest token of the "
            "row every time, which is the best that a bag of words allows, counted in the held-out set.",
            solved=f"{self.solved_at:.0%} of the tokens, so that at most {self.wrong_at_most()} of {self.n_scored:,} "
            "are wrong.",
            held_out=f"{self.n_held_out} rows of the one in eight, by a hash of the whole row, that is never "
            "trained on.",
            facts={
                "vocabulary": f"{self.vocabulary} tokens without meaning, evenly drawn with repetition, {BLANK} and "
                f"{MARKER}",
                "places before the marker": f"{self.length}, {self.tokens} of them filled, evenly drawn",
                "tokens in a trained row": f"{self.length + 1 + self.tokens}",
                "longest row": f"{self.context} tokens, of the probes with {2 * self.length} places: the marker "
                "stands where none was trained",
            },
            source='Gu and Dao, "Mamba" (2023), who copy 16 of 4,096 tokens, and as in-context task of Poli et al., '
            '"Mechanistic Design and Scaling of Hybrid Architectures" (2024). There the length counts the whole row; '
            "here it counts the places before the marker, and the last of them may be a blank.",
            content_hash=self.content_hash,
        )
