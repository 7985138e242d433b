"""A random sequence that comes again and again: after the first time, what comes next stands in the context.

    n07 n31 n12 n25 n07 [n31] [n12] [n25] [n07] [n31] ...

Nothing but the row itself foretells a token, and how long the sequence is differs from row to row, so neither counting
tokens nor counting positions helps: one has to find where the token stood before, and what followed it there.
"""

import math
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.tasks.base import DataCard, Metric, Task, hash_of
from headstock.tasks.drawing import draw
from headstock.tasks.tokenizers import WordTokenizer
from headstock.training.batch import Batch, Split

SOLVED_AT = 0.99
SCORED_ROWS = 256
"""Rows of either evaluation set."""


class Repeats(Task):
    """Rows of one random sequence, repeated to the row's end: trained and scored where it comes again."""

    name = "repeats"
    primary = Metric("accuracy", "higher", "of the tokens that come again")
    steps: ClassVar = {"quick": 600, "full": 2000}

    def __init__(self, *, length: int, vocabulary: int) -> None:
        """Make it; `length` is the longest sequence, half of it the shortest, and a row twice as long."""
        if vocabulary < length:
            raise UserError(
                f"a sequence of {length} different tokens needs a vocabulary of {length} or more, not {vocabulary}: "
                "choose a shorter length or a larger vocabulary."
            )
        self.length = length
        self.shortest = max(1, length // 2)
        digits = len(str(vocabulary - 1))
        self.tokenizer = WordTokenizer([f"n{number:0{digits}}" for number in range(vocabulary)])
        self.vocab_size = vocabulary
        self.context = 2 * length
        self.bytes_per_token = None
        self.solved_at = SOLVED_AT
        rows = [self.rows(16, split, 0, 0) for split in ("train", "held-out")]
        self.content_hash = hash_of(self.name, self.options(), [tokens.tolist() for tokens, _ in rows])

    def options(self) -> dict[str, str | int | float]:
        """Give the longest sequence and how many tokens there are."""
        return {"length": self.length, "vocabulary": self.vocab_size}

    def rows(self, size: int, split: str, seed: int, index: int) -> tuple[Tensor, Tensor]:
        """Give drawn rows with the token that follows them, int64 (size, context + 1), and each row's period (size,).

        Within a period every token is another one, so that what follows a token is never in doubt.
        """
        purpose = (self.name, split, seed, index)
        periods = self.shortest + draw(self.length - self.shortest + 1, size, *purpose, "periods")
        # The order of drawn numbers is a permutation, and its first so-many tokens a sequence without repetition.
        keys = draw(2**62, size * self.vocab_size, *purpose, "tokens").view(size, self.vocab_size)
        shuffled = keys.argsort(dim=1, stable=True)
        places = torch.arange(self.context + 1)[None] % periods[:, None]
        return shuffled.gather(1, places), periods

    def make_batch(self, seed: int, index: int, size: int, split: Split) -> Batch:
        """Give drawn rows; what counts is every token whose period has begun again before it."""
        return self._batch(*self.rows(size, split, seed, index))

    def make_evaluation(self, split: Split, size: int) -> Iterator[Batch]:
        """Give the same rows every time, drawn for evaluation."""
        tokens, periods = self.rows(SCORED_ROWS, f"{split} evaluation", 0, 0)
        for start in range(0, SCORED_ROWS, size):
            yield self._batch(tokens[start : start + size], periods[start : start + size])

    def telling_example(self) -> tuple[list[int], int]:
        """Give the first held-out row, and the position in the middle of what it scores."""
        first = next(self.evaluation(size=1))
        scored = first.mask[0].nonzero()[:, 0]
        return first.inputs[0].tolist(), int(scored[len(scored) // 2])

    def card(self) -> DataCard:
        """Give the card, the beginning of a row as its example."""
        tokens, periods = self.rows(SCORED_ROWS, "held-out evaluation", 0, 0)
        scored = sum(int(batch.mask.sum()) for batch in self.evaluation())
        shortest = int(periods.argmin())
        labels = self.token_labels(tokens[shortest, : self.shortest + 4].tolist())
        period = int(periods[shortest])
        shown = [f"[{label}]" if place > period else label for place, label in enumerate(labels)]
        return DataCard(
            title=self.name,
            what_is_asked="Say what comes next in a row that repeats one random sequence: find where the token stood "
            "before, and say what followed it there.",
            example=" ".join(shown) + " ...",
            primary=self.primary,
            chance=f"{1 / self.vocab_size:.1%} for one of {self.vocab_size} tokens at random; at most "
            f"{1 / self.shortest:.1%} for one of those that the row has shown.",
            solved=f"{SOLVED_AT:.0%} of the scored tokens, so that at most {scored - math.ceil(SOLVED_AT * scored)} of "
            f"{scored:,} are wrong.",
            held_out=f"{SCORED_ROWS} rows drawn for evaluation alone. Of {self.vocab_size} tokens at random no two "
            "rows are alike, so that nothing of a held-out row is in training.",
            facts={
                "vocabulary": f"{self.vocab_size} tokens without meaning",
                "sequence": f"{self.shortest} to {self.length} tokens, all different, evenly drawn",
                "tokens in a row": f"{self.context}",
                "scored": f"tokens after the first of the second time: {scored:,} in the held-out set",
            },
            source="made here, by a rule",
            content_hash=self.content_hash,
        )

    def _batch(self, tokens: Tensor, periods: Tensor) -> Batch:
        # Position t says t + 1, which the row has shown, with what came before it, from t + 1 > period on.
        mask = torch.arange(self.context)[None] >= periods[:, None]
        return Batch(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), mask)
