"""Multi-query associative recall: pairs of key and value, then every key again, at a distance that a power law draws.

    k31 v07 k12 v55 k31 [v07] · · k12 [v55] · ·

Source: Arora et al., "Zoology: Measuring and Improving Recall in Efficient Language Models" (2023).
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.tasks.base import DataCard, Metric
from headstock.tasks.drawing import draw, draw_different
from headstock.tasks.drawn import DrawnTask, Rows
from headstock.tasks.example import in_brackets
from headstock.tasks.tokenizers import WordTokenizer
from headstock.training.batch import Probe

BLANK = "·"


class Mqar(DrawnTask):
    """Rows of key-value pairs and questions: scored is the prediction at every key that is asked for again."""

    name = "mqar"
    primary = Metric("accuracy", "higher", "of the values asked for")
    steps: ClassVar = {"quick": 1000, "full": 4000}

    def __init__(self, *, length: int, vocabulary: int, pairs: int, power: float, fillers: str) -> None:
        """Make it; `length` tokens a row, `vocabulary` a blank, half of the rest keys and the others values."""
        if length % 2 or length < 4 * pairs:
            raise UserError(
                f"{pairs} pairs and a question for each need an even length of {4 * pairs} or more, not {length}: "
                "choose a longer row or fewer pairs."
            )
        self.n_keys = vocabulary // 2 - 1
        if self.n_keys < pairs:
            raise UserError(
                f"a vocabulary of {vocabulary} has {max(0, self.n_keys)} keys, too few for {pairs} pairs: choose "
                f"{2 * pairs + 2} or more."
            )
        self.length, self.pairs, self.power, self.fillers = length, pairs, power, fillers
        digits = len(str(vocabulary - self.n_keys - 2))
        keys = [f"k{number:0{digits}}" for number in range(self.n_keys)]
        values = [f"v{number:0{digits}}" for number in range(vocabulary - self.n_keys - 1)]
        self.tokenizer = WordTokenizer([BLANK, *keys, *values])
        self.vocab_size, self.context = vocabulary, length
        self.finish()

    def options(self) -> dict[str, str | int | float]:
        """Give the sizes, the law of distances and what stands where nothing is asked."""
        return {
            "length": self.length,
            "vocabulary": self.vocab_size,
            "pairs": self.pairs,
            "power": self.power,
            "fillers": self.fillers,
        }

    def draw(self, size: int, *purpose: str | int, **at: Any) -> Rows:
        """Draw rows; `at` may say how many pairs."""
        pairs = at.get("pairs", self.pairs)
        begin = 2 * pairs
        keys_bp = 1 + draw_different(self.n_keys, size, pairs, *purpose, "keys")
        values_bp = 1 + self.n_keys + draw_different(self.vocab_size - self.n_keys - 1, size, pairs, *purpose, "values")
        asked_bp = begin + 2 * self._gaps(size, pairs, *purpose)
        if self.fillers == "random":
            inputs = draw(self.vocab_size, size * self.length, *purpose, "fillers").view(size, self.length)
        else:
            inputs = torch.zeros(size, self.length, dtype=torch.int64)
        inputs[:, 0:begin:2], inputs[:, 1:begin:2] = keys_bp, values_bp
        inputs.scatter_(1, asked_bp, keys_bp)
        targets = inputs.roll(-1, 1).scatter(1, asked_bp, values_bp)
        mask = torch.zeros(size, self.length, dtype=torch.bool).scatter(1, asked_bp, True)

        first_b, pair_b = asked_bp.min(1)
        place_q = torch.arange(self.length)
        answer_bq = place_q // 2 == pair_b[:, None]
        told_q = place_q < begin
        spans = {
            "answer": answer_bq,
            "other pairs": told_q & ~answer_bq,
            "noise": ~told_q & (place_q < first_b[:, None]),
        }
        return Rows(inputs, targets, mask, spans)

    def probes(self) -> Iterator[Probe]:
        """Give a set for 1, 2, 4, ... pairs, as many as fit."""
        pairs = 1
        while 4 * pairs <= self.length and pairs <= self.n_keys:
            yield self.probe(pairs=pairs)
            pairs *= 2

    def card(self) -> DataCard:
        """Give the card, a held-out row as its example."""
        filler = {
            "random": "random tokens of the whole vocabulary, which may be keys and values of the row; only the pairs "
            "at its beginning count",
            "none": f"the token {BLANK}, which is neither key nor value, so that a key seen before is always asked for",
        }[self.fillers]
        return DataCard(
            title=self.name,
            what_is_asked="After pairs of key and value every key comes once more: say its value there. What the "
            "brackets show is no part of the row, which goes on with a filler.",
            example=in_brackets(self._scored["held-out"], self.token_labels),
            primary=self.primary,
            chance=f"{1 / self.pairs:.1%} for one of the row's {self.pairs} values, such as that of the first pair, "
            f"every time; {1 / (self.vocab_size - self.n_keys - 1):.1%} for any value at random.",
            solved=f"{self.solved_at:.0%} of the values, so that at most {self.wrong_at_most()} of {self.n_scored:,} "
            "are wrong.",
            held_out=f"{self.n_held_out} rows of the one in eight, by a hash of it up to the last answer, that is "
            "never trained on. Every key and every value is in training too; what is new is which belong together, and "
            "where.",
            facts={
                "vocabulary": f"{self.n_keys} keys, {self.vocab_size - self.n_keys - 1} values and {BLANK}",
                "tokens in a row": f"{self.length}",
                "pairs": f"{self.pairs}, of different keys and different values, at the beginning",
                "questions": f"every key once, g pairs of places after the last pair, g from 0 with a chance in "
                f"proportion to (g + 1)^({self.power} − 1), no two at one place",
                "fillers": filler,
            },
            source='Arora et al., "Zoology" (2023): keys, values, places and random fillers as in its code, whose '
            "published figures were made with blanks (fillers=none) and a vocabulary of 8,192; here rows are drawn "
            "without end instead of 100,000 times.",
            content_hash=self.content_hash,
        )

    def _gaps(self, size: int, pairs: int, *purpose: str | int) -> Tensor:
        """Draw for each pair how many pairs of places lie between the last pair and its question: int64 (size, pairs).

        One after another from a power law without repetition, which is the order of exponential clocks whose rates
        are the chances.
        """
        space = (self.length - 2 * pairs) // 2
        rates_g = torch.arange(1, space + 1, dtype=torch.float64) ** (self.power - 1)
        even_bg = (draw(2**53, size * space, *purpose, "gaps").double() + 0.5).view(size, space) / 2**53
        return (-even_bg.log() / rates_g).argsort(dim=1, stable=True)[:, :pairs]
