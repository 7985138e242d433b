"""Needles in a haystack: sentences that give cities their numbers, among noise, and questions for some at the end.

    reed oslo is 17 moss fern lima is 04 clay   ? lima [04]   ? oslo [17]

After the multi-needle retrieval of Ye et al., "Differential Transformer" (2024), which follows Gemini 1.5 and LWM.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.tasks.base import DataCard, Metric
from headstock.tasks.drawing import draw, draw_different
from headstock.tasks.drawn import DrawnTask, Rows, beginning
from headstock.tasks.example import in_brackets
from headstock.tasks.tokenizers import WordTokenizer
from headstock.tasks.words import CITIES, NOISE, named, numbered
from headstock.training.batch import Probe

NEEDLE = ("{city}", "is", "{number}")
QUESTION = ("?", "{city}", "{number}")
BLANK = "·"
"""What stands after the last answer of a row that is shorter than others."""
DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
LENGTHS = (0.5, 1, 2)
"""Lengths of the probes, as multiples of the longest trained one."""


class Needle(DrawnTask):
    """Rows of noise with needles in it and questions at the end: trained and scored is the number after each."""

    name = "needle"
    primary = Metric("accuracy", "higher", "of the numbers asked for")
    steps: ClassVar = {"quick": 1200, "full": 4000}

    def __init__(self, *, length: int, needles: int, queries: int, cities: int, numbers: int, noise: int) -> None:
        """Make it; `length` tokens before the questions at most, half of them at least; `noise` different words."""
        if queries > needles:
            raise UserError(
                f"{needles} needles cannot answer {queries} different questions: choose queries={needles} or less, or "
                "more needles."
            )
        for what, least in (("cities", cities), ("numbers", numbers)):
            if least < needles:
                raise UserError(f"{needles} needles need as many {what}, not {least}: choose {what}={needles} or more.")
        if length < 2 * needles * len(NEEDLE):
            raise UserError(
                f"{needles} needles of {len(NEEDLE)} tokens must fit into half the length: choose "
                f"length={2 * needles * len(NEEDLE)} or more, or fewer needles."
            )
        self.length, self.needles, self.queries = length, needles, queries
        self.cities, self.numbers, self.noise = cities, numbers, noise
        fixed = [word for word in dict.fromkeys((BLANK, *NEEDLE, *QUESTION)) if word not in ("{city}", "{number}")]
        names = [*fixed, *named(CITIES, cities, "city"), *numbered("", numbers), *named(NOISE, noise, "word")]
        self.tokenizer = WordTokenizer(names)
        self._id_of = {word: place for place, word in enumerate(fixed)}
        self._first_city = len(fixed)
        self._first_number = self._first_city + cities
        self._first_noise = self._first_number + numbers
        self.vocab_size = len(names)
        self.context = int(LENGTHS[-1] * length) + self._asked - 1
        self.finish()

    @property
    def _asked(self) -> int:
        """How many tokens the questions take, answers included."""
        return self.queries * len(QUESTION)

    def options(self) -> dict[str, str | int | float]:
        """Give the sizes."""
        return {
            "length": self.length,
            "needles": self.needles,
            "queries": self.queries,
            "cities": self.cities,
            "numbers": self.numbers,
            "noise": self.noise,
        }

    def draw(self, size: int, *purpose: str | int, **at: Any) -> Rows:
        """Draw rows; `at` may say a length and a number of needles that all have, and a depth of the first question's.

        depth: the share of the noise words and other needles that stand before that needle, where none is lacking.
        """
        longest = at.get("length", self.length)
        lengths_b1 = torch.full((size, 1), longest)
        if "length" not in at:  # every other row is shorter: were all lengths as likely, the last places were rare
            shorter_b1 = self.length // 2 + draw((self.length + 1) // 2, size, *purpose, "lengths")[:, None]
            lengths_b1 = torch.where(draw(2, size, *purpose, "shorter")[:, None] == 1, shorter_b1, lengths_b1)
        places_bn = self._places(lengths_b1, longest, at.get("depth"), *purpose)
        cities_bn = self._first_city + draw_different(self.cities, size, self.needles, *purpose, "cities")
        numbers_bn = self._first_number + draw_different(self.numbers, size, self.needles, *purpose, "numbers")
        n_tokens = longest + self._asked
        tokens = self._first_noise + draw(self.noise, size * n_tokens, *purpose, "noise").view(size, n_tokens)
        noise_bq = torch.arange(n_tokens) < lengths_b1
        tokens.masked_fill_(torch.arange(n_tokens) >= lengths_b1 + self._asked, self._id_of[BLANK])
        asked_br = lengths_b1 + len(QUESTION) * torch.arange(self.queries)
        count_b1 = self.queries + draw(self.needles - self.queries + 1, size, *purpose, "needles")[:, None]
        if "needles" in at:
            count_b1 = torch.full_like(count_b1, at["needles"])
        there_bn = torch.arange(self.needles) < count_b1
        self._write(tokens, NEEDLE, places_bn, cities_bn, numbers_bn, there_bn)
        asked = slice(self.queries)
        self._write(tokens, QUESTION, asked_br, cities_bn[:, asked], numbers_bn[:, asked], there_bn[:, asked])

        mask = torch.zeros(tokens.shape, dtype=torch.bool)
        mask.scatter_(1, asked_br + len(QUESTION) - 2, True)
        needle_bnt = places_bn[:, :, None] + torch.arange(len(NEEDLE))
        told_t = torch.tensor([word in ("{city}", "{number}") for word in NEEDLE])
        no_bq = torch.zeros_like(mask)
        others_bnt = there_bn[:, 1:, None].expand(-1, -1, len(NEEDLE))
        other_bq = no_bq.scatter(1, needle_bnt[:, 1:].flatten(1), others_bnt.flatten(1))
        spans = {
            "answer": no_bq.scatter(1, needle_bnt[:, 0, told_t], True),
            "other needles": other_bq,
            "noise": noise_bq & ~other_bq & ~no_bq.scatter(1, needle_bnt[:, 0], True),
        }
        return Rows(
            tokens[:, :-1].contiguous(),
            tokens[:, 1:].contiguous(),
            mask[:, :-1].contiguous(),
            {name: span[:, :-1].contiguous() for name, span in spans.items()},
        )

    def identity(self, rows: Rows) -> Tensor:
        """Give the tokens before the questions: a haystack is held out whatever is asked of it."""
        return beginning(rows, rows.mask.int().argmax(1) - (len(QUESTION) - 2))

    def probes(self) -> Iterator[Probe]:
        """Give a set for each length and depth of the first question's needle, masked to that question."""
        for times in LENGTHS:
            for depth in DEPTHS:
                yield self.probe(length=int(times * self.length), depth=depth)

    def different_rows(self, size: int, split: str, *purpose: str | int, **at: Any) -> Rows:
        """Draw different rows with every needle; where they have a depth, masked to the first question, whose it is."""
        rows = super().different_rows(size, split, *purpose, needles=self.needles, **at)
        if "depth" not in at:
            return rows
        return Rows(rows.inputs, rows.targets, rows.mask & (rows.mask.cumsum(1) == 1), rows.spans)

    def telling_example(self) -> tuple[list[int], int]:
        """Give the longest of the held-out rows, and the position of its last answer."""
        shown = self._longest()
        return [*shown.inputs[0].tolist(), int(shown.targets[0, -1])], shown.inputs.shape[1] - 1

    def telling_target(self) -> int:
        """Give the last answer of that row."""
        return int(self._longest().targets[0, -1])

    def _longest(self) -> Rows:
        """Give the first of the longest held-out rows, up to its last question."""
        rows = self._scored["held-out"]
        ends_b = (rows.mask * torch.arange(rows.mask.shape[1])).amax(1)
        row = int((ends_b == ends_b.max()).nonzero()[0])
        shown = slice(0, int(ends_b[row]) + 1)
        return Rows(rows.inputs[[row], shown], rows.targets[[row], shown], rows.mask[[row], shown])

    def card(self) -> DataCard:
        """Give the card, a held-out row as its example."""
        rows = self._scored["held-out"]
        return DataCard(
            title=self.name,
            what_is_asked=f"{self.needles} sentences among noise give cities their numbers: say the number of "
            f"{self.queries} of the cities at the end. Which number a city has is drawn anew for every row.",
            example=in_brackets(self._longest(), self.token_labels),
            primary=self.primary,
            chance=f"{self.guessing():.1%} for one of the row's {self.needles} numbers, leaving out those that earlier "
            f"questions have got: what a bag of words allows. {1 / self.numbers:.1%} for any number at random.",
            solved=f"{self.solved_at:.0%} of the numbers, so that at most {self.wrong_at_most()} of {self.n_scored:,} "
            "are wrong.",
            held_out=f"{len(rows)} rows of the one in eight, by a hash of all before the questions, that is never "
            "trained on, whatever is asked. Every city and every number is in training too; what is new is which "
            "belong together, and where.",
            facts={
                "vocabulary": f"{self.cities} cities, {self.numbers} numbers, {self.noise} noise words and "
                f"{self._first_city} of the sentences; no word is of two kinds, so that noise names no city or number",
                "needles": f"{self.needles} in every scored row, {self.queries} to {self.needles} in a trained one, "
                "each number as often, of different cities and different numbers, at random places",
                "questions": f"{self.queries}, of different cities, in random order; the right answer follows each",
                "length": f"{self.length} tokens before the questions, needles included, in every other row, in the "
                f"others {self.length // 2} to {self.length - 1}, evenly drawn; those are filled up with {BLANK} after "
                "their last answer",
                "scored": f"the number after each question: {self.n_scored:,} in the held-out set",
                "depth": "of a probe: the share of the noise words and other needles that stand before the needle of "
                "the first question, which alone is scored there",
                "spans": "answer is the city and the number of the needle that answers, without the words between; "
                "other needles are whole sentences; noise is noise words",
                "longest row": f"{self.context} tokens, of the probes of twice the length: positions from "
                f"{self.length + self._asked - 1} on are never trained",
            },
            source='in the manner of the multi-needle retrieval of Ye et al., "Differential Transformer" (2024): N '
            "needles, R questions, the first needle at one of five depths, others at random. There needles are English "
            "sentences in English text of 4,096 tokens and more, read by models of 3 billion parameters; here a "
            f"sentence has {len(NEEDLE)} tokens and noise no order.",
            content_hash=self.content_hash,
        )

    def guessing(self) -> float:
        """Give the accuracy of naming at each question a number of the row that no earlier question has got."""
        return sum(1 / (self.needles - earlier) for earlier in range(self.queries)) / self.queries

    def _places(self, lengths_b1: Tensor, longest: int, depth: float | None, *purpose: str | int) -> Tensor:
        """Draw where each needle begins: int64 (row, needle), every order of needles and noise words as likely."""
        long = len(NEEDLE)
        units_b1 = lengths_b1 - self.needles * (long - 1)  # noise words and needles
        most = longest - self.needles * (long - 1)
        order_bu = draw(2**62, len(lengths_b1) * most, *purpose, "places").view(-1, most)
        order_bu = order_bu.masked_fill(torch.arange(most) >= units_b1, 2**62)
        if depth is not None:
            order_bu = order_bu.scatter(1, (depth * (units_b1 - 1)).round().long(), -1)
        units_bn = order_bu.argsort(dim=1, stable=True)[:, : self.needles]
        return units_bn + (long - 1) * (units_bn[:, None, :] < units_bn[:, :, None]).sum(2)

    def _write(
        self,
        tokens: Tensor,
        sentence: tuple[str, ...],
        places_bn: Tensor,
        cities_bn: Tensor,
        numbers_bn: Tensor,
        there_bn: Tensor,
    ) -> None:
        """Write a sentence of each city and number into the rows, from each place on, where it is to be there."""
        drawn = {"{city}": cities_bn, "{number}": numbers_bn}
        for offset, word in enumerate(sentence):
            at_bn = places_bn + offset
            words_bn = drawn[word] if word in drawn else torch.full_like(cities_bn, self._id_of[word])
            tokens.scatter_(1, at_bn, torch.where(there_bn, words_bn, tokens.gather(1, at_bn)))
