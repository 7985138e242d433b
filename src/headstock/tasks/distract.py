"""A question among distractions: one passage tells what is asked, others tell the same of other subjects.

    moss colour anna red drink anna tea   drink ben milk fern colour ben blue   ? drink anna [tea]

A small form of answering from retrieved text: Ye et al., "Differential Transformer" (2024), and its readers' question
of how much irrelevant context costs.
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
from headstock.tasks.guessing import commonest
from headstock.tasks.tokenizers import WordTokenizer
from headstock.tasks.words import FACTS, NOISE, PEOPLE, named
from headstock.training.batch import Probe

MARK = "?"
FACT = 3
"""Tokens of a fact: attribute, subject, value."""
QUESTION = 4
"""Tokens of a question: mark, attribute, subject, and the value that answers it."""
ANSWER, OTHER_FACT, IRRELEVANT, FILLER = range(4)
SPANS = ("answer", "other facts of the subject", "irrelevant passages", "noise")


class Distract(DrawnTask):
    """Rows of passages, one of them relevant, and questions on its subject: scored is the value after each question."""

    name = "distract"
    primary = Metric("accuracy", "higher", "of the values asked for")
    steps: ClassVar = {"quick": 1500, "full": 4000}

    def __init__(
        self,
        *,
        irrelevant: int,
        beyond: int,
        facts: int,
        questions: int,
        subjects: int,
        attributes: int,
        values: int,
        filler: int,
    ) -> None:
        """Make it; up to `irrelevant` such passages are trained on and `beyond` times as many probed.

        A passage has `facts` facts and as many as `filler` words of noise.
        """
        names, most = list(FACTS), min(map(len, FACTS.values()))
        for what, count, limit in (("attributes", attributes, len(names)), ("values", values, most)):
            if count > limit:
                raise UserError(f"only {limit} {what} have names: choose {what}={limit} or fewer, not {count}.")
        if facts > attributes:
            raise UserError(
                f"{facts} facts of a passage are of as many attributes, not {attributes}: choose facts={attributes} or "
                "fewer."
            )
        if questions > facts:
            raise UserError(
                f"a passage of {facts} facts cannot answer {questions} different questions: choose "
                f"questions={facts} or fewer."
            )
        if subjects <= irrelevant * beyond:
            raise UserError(
                f"{irrelevant * beyond} irrelevant passages and a relevant one need as many subjects, not {subjects}: "
                f"choose subjects={irrelevant * beyond + 1} or more."
            )
        self.irrelevant, self.beyond, self.facts, self.questions = irrelevant, beyond, facts, questions
        self.subjects, self.attributes, self.values, self.filler = subjects, attributes, values, filler
        words = [MARK, *named(PEOPLE, subjects, "person"), *names[:attributes]]
        self._first_attribute = len(words) - attributes
        self._first_value = len(words)
        words += [value for name in names[:attributes] for value in FACTS[name][:values]]
        self._first_noise = len(words)
        self.tokenizer = WordTokenizer([*words, *NOISE])
        self.vocab_size = self.tokenizer.vocab_size
        self.places = irrelevant * beyond + 1
        """Of passages in a row, trained on or probed."""
        self.context = self.places * self._passage + questions * QUESTION - 1
        self.finish()

    def options(self) -> dict[str, str | int | float]:
        """Give the sizes."""
        return {
            "irrelevant": self.irrelevant,
            "beyond": self.beyond,
            "facts": self.facts,
            "questions": self.questions,
            "subjects": self.subjects,
            "attributes": self.attributes,
            "values": self.values,
            "filler": self.filler,
        }

    @property
    def _passage(self) -> int:
        """Tokens of a passage."""
        return FACT * self.facts + self.filler

    def draw(self, size: int, *purpose: str | int, **at: Any) -> Rows:
        """Draw rows; `at` may say how many irrelevant passages each has. Noise stands where others have a passage."""
        count_b1 = draw(self.irrelevant + 1, size, *purpose, "irrelevant")[:, None]
        if "irrelevant" in at:
            count_b1 = torch.full_like(count_b1, at["irrelevant"])
        n_all = size * self.places
        # Of every passage, the relevant one first: its subject, and its facts one after another, however they stand.
        subjects_n1 = 1 + draw_different(self.subjects, size, self.places, *purpose, "subjects").view(n_all, 1)
        attributes_nf = draw_different(self.attributes, n_all, self.facts, *purpose, "attributes")
        chosen_nf = draw(self.values, n_all * self.facts, *purpose, "values").view(n_all, self.facts)
        values_nf = self._first_value + self.values * attributes_nf + chosen_nf
        attributes_nf = self._first_attribute + attributes_nf
        units_nf = draw_different(self.facts + self.filler, n_all, self.facts, *purpose, "within")
        begin_nf = units_nf + (FACT - 1) * (units_nf[:, None, :] < units_nf[:, :, None]).sum(2)

        noise = self._first_noise + draw(len(NOISE), n_all * self._passage, *purpose, "noise")
        noise_bsp = noise.view(size, self.places, self._passage)
        passages_np = noise.view(n_all, self._passage).clone()
        kinds_np = torch.full_like(passages_np, FILLER)
        for offset, words_nf in enumerate((attributes_nf, subjects_n1.expand(-1, self.facts), values_nf)):
            passages_np.scatter_(1, begin_nf + offset, words_nf)
            kinds_np.scatter_(1, begin_nf + offset, OTHER_FACT)
            kinds_np.scatter_(1, begin_nf[:, :1] + offset, ANSWER)
        there_bs1 = (torch.arange(self.places) <= count_b1)[:, :, None]
        kinds_bsp = kinds_np.view_as(noise_bsp)
        kinds_bsp[:, 1:] = torch.where(there_bs1[:, 1:], IRRELEVANT, FILLER)
        order_bsp = draw_different(self.places, size, self.places, *purpose, "order")[:, :, None].expand_as(noise_bsp)
        text_bsp = noise_bsp.scatter(1, order_bsp, torch.where(there_bs1, passages_np.view_as(noise_bsp), noise_bsp))
        kinds_bq = kinds_bsp.scatter(1, order_bsp, kinds_bsp).flatten(1)

        relevant_b = torch.arange(size) * self.places
        asked_brt = torch.stack(
            [
                torch.zeros(size, self.questions, dtype=torch.int64),
                attributes_nf[relevant_b, : self.questions],
                subjects_n1[relevant_b].expand(-1, self.questions),
                values_nf[relevant_b, : self.questions],
            ],
            dim=2,
        )
        tokens_bq = torch.cat([text_bsp.flatten(1), asked_brt.flatten(1)], dim=1)
        mask_bq = (tokens_bq == 0).roll(QUESTION - 2, 1)[:, :-1]  # the subject of a question; no mark stands elsewhere
        in_questions_bq = torch.full((size, self.questions * QUESTION - 1), -1)
        kinds_bq = torch.cat([kinds_bq, in_questions_bq], dim=1)
        return Rows(
            tokens_bq[:, :-1].contiguous(),
            tokens_bq[:, 1:].contiguous(),
            mask_bq.contiguous(),
            {name: kinds_bq == kind for kind, name in enumerate(SPANS)},
        )

    def identity(self, rows: Rows) -> Tensor:
        """Give the tokens before the questions: passages are held out whatever is asked of them."""
        return beginning(rows, rows.mask.int().argmax(1) - (QUESTION - 2))

    def probes(self) -> Iterator[Probe]:
        """Give a set for 0, 1, 2, 4, ... irrelevant passages, up to `beyond` times as many as are trained on."""
        count = 0
        while count <= self.irrelevant * self.beyond:
            yield self.probe(irrelevant=count)
            count = max(1, 2 * count)

    def card(self) -> DataCard:
        """Give the card, a held-out row as its example."""
        rows = self._scored["held-out"]
        return DataCard(
            title=self.name,
            what_is_asked="Passages tell of different subjects in the same words, or noise stands in their place: say "
            "what the one on the subject asked for gives as its attribute. Everything is drawn anew for every row.",
            example=in_brackets(rows, self.token_labels),
            primary=self.primary,
            chance=f"{self.guessing():.1%} for the commonest value in the row of the attribute asked for, the best "
            f"that a bag of words allows, counted in the held-out set; {1 / self.values:.1%} for any of its values.",
            solved=f"{self.solved_at:.0%} of the values, so that at most {self.wrong_at_most()} of {self.n_scored:,} "
            "are wrong.",
            held_out=f"{len(rows)} rows of the one in eight, by a hash of all before the questions, that is never "
            "trained on, whatever is asked. Every subject and every value is in training too; what is new is which "
            "belong together, and where.",
            facts={
                "vocabulary": f"{self.subjects} subjects, {self.attributes} attributes, {self.values} values of each, "
                f"{len(NOISE)} noise words and {MARK}; no word is of two kinds, and no two attributes share a value",
                "passage": f"{self._passage} tokens: {self.facts} facts of different attributes (attribute, subject, "
                f"value) in random order{f' among {self.filler} noise words' if self.filler else ''}",
                "passages": f"the relevant one at a random place among 0 to {self.irrelevant} irrelevant ones, every "
                "number as often, each of another subject; their attributes and values may be those asked for",
                "questions": f"{self.questions} on the relevant subject, of different attributes; the answer follows",
                "tokens in a row": f"{self.context}, however many passages: there is room for "
                f"{self.irrelevant * self.beyond} irrelevant ones, as the hardest probe has, and noise where they lack",
                "scored": f"the value after each question: {self.n_scored:,} in the held-out set",
                "spans": "of the first question: answer is its fact, other facts are the rest of its subject's, "
                "irrelevant passages are whole, noise is all other words before the questions",
            },
            source='made here, by a rule: a small form of what Ye et al., "Differential Transformer" (2024), show with '
            "question answering by large models, where distraction comes with English text and is not counted.",
            content_hash=self.content_hash,
        )

    def guessing(self) -> float:
        """Give the accuracy of naming the commonest value, up to each question, of the attribute that it asks for."""
        rows, right = self._scored["held-out"], 0.0
        for place in range(self.attributes):
            asks_bq = rows.mask & (rows.inputs.roll(1, 1) == self._first_attribute + place)
            first = self._first_value + self.values * place
            if asks_bq.any():
                asked = Rows(rows.inputs, rows.targets, asks_bq)
                right += commonest(asked, range(first, first + self.values)) * int(asks_bq.sum())
        return right / self.n_scored
