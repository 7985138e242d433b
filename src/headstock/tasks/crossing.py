"""Which noun did the pronoun mean? Sentences whose answer needs word order, and their leaky form, which does not.

    the herd did not cross the river because it was too wide , so the [river] waited .

The adjective says whether the noun that crosses or the noun that is crossed is meant; a model that sees its prefix as a
bag of words knows both nouns and the adjective, but not which noun came first.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.tasks.base import DataCard, Metric, Task, hash_of
from headstock.tasks.drawing import draw
from headstock.tasks.tokenizers import WordTokenizer
from headstock.training.batch import Batch, Split

TEMPLATE = "the {x} did not cross the {y} because it was too {adjective} , so the {meant} waited ."
MEANING_X = ("tired", "scared", "slow", "weak")
MEANING_Y = ("wet", "wide", "busy", "steep")
ADJECTIVES = MEANING_X + MEANING_Y
SLOTS = {"{x}": 1, "{y}": 6, "{adjective}": 11, "{meant}": 15}
"""Where each word of the template stands, counted from 0."""
DECIDING = SLOTS["{meant}"] - 1
"""The position that predicts the noun meant: the `the` of `so the`."""

SOLVED_AT = 0.99

# Each of them can cross something and be crossed itself; all waited.
NOUNS = (
    *("crowd", "river", "herd", "road", "parade", "stream", "train", "trail"),
    *("queue", "bridge", "convoy", "path", "caravan", "canal", "patrol", "track"),
)
ANIMALS = ("dog", "horse", "cow", "goat", "sheep", "fox", "bear", "duck")
PLACES = ("street", "river", "field", "bridge", "valley", "canal", "meadow", "square")

Pair = tuple[str, str]


class CrossingTask(Task):
    """Sentences of one template over pairs of nouns: trained on every next word, scored on the noun meant."""

    primary = Metric("accuracy", "higher", "of the held-out sentences")
    steps: ClassVar = {"quick": 600, "full": 2000}
    crossers: ClassVar[tuple[str, ...]]
    crossed: ClassVar[tuple[str, ...]]

    def __init__(self, *, held_out: float) -> None:
        pairs = in_rounds(self.crossers, self.crossed)
        count = round(held_out * len(pairs))
        if count < 1:
            raise UserError(
                f"held_out={held_out} of {len(pairs)} noun pairs holds out none: choose at least {1 / len(pairs):.2g}."
            )
        self.held_out_pairs, self.training_pairs = pairs[:count], pairs[count:]
        self._nouns = tuple(dict.fromkeys((*self.crossers, *self.crossed)))
        words = dict.fromkeys(word for word in TEMPLATE.split() if not word.startswith("{"))
        self.tokenizer = WordTokenizer([*words, *self._nouns, *ADJECTIVES])
        self.vocab_size = self.tokenizer.vocab_size
        self.context = len(TEMPLATE.split()) - 1
        self.bytes_per_token = None
        self.solved_at = SOLVED_AT
        self._held_out_share = held_out
        self._sentences: dict[Split, Tensor] = {
            "train": self._tokens(self.training_pairs),
            "held-out": self._tokens(self.held_out_pairs),
        }
        # Drawn, not the first ones: those would be all adjectives of a few pairs.
        order = draw(2**62, len(self._sentences["train"]), "crossing", "train evaluation").argsort(stable=True)
        sample = order[: len(self._sentences["held-out"])].sort().values
        self._scored: dict[Split, Tensor] = {
            "train": self._sentences["train"][sample],
            "held-out": self._sentences["held-out"],
        }
        self.content_hash = hash_of(
            self.name,
            [piece.decode() for piece in self.tokenizer.pieces],
            [[split, rows.tolist(), self._scored[split].tolist()] for split, rows in self._sentences.items()],
        )

    def options(self) -> dict[str, str | int | float]:
        """Give the share held out."""
        return {"held_out": self._held_out_share}

    def make_batch(self, seed: int, index: int, size: int, split: Split) -> Batch:
        """Give sentences drawn with repetition; every next word counts."""
        sentences = self._sentences[split]
        rows = sentences[draw(len(sentences), size, self.name, split, seed, index)]
        return _batch(rows, torch.ones(size, self.context, dtype=torch.bool))

    def make_evaluation(self, split: Split, size: int) -> Iterator[Batch]:
        """Give every scored sentence once; only the noun meant counts."""
        scored = self._scored[split]
        for start in range(0, len(scored), size):
            rows = scored[start : start + size]
            mask = torch.zeros(len(rows), self.context, dtype=torch.bool)
            mask[:, DECIDING] = True
            yield _batch(rows, mask)

    def telling_example(self) -> tuple[list[int], int]:
        """Give a held-out sentence that means the noun that is crossed: the one that takes two hops to find."""
        return self.encode(sentence(*self.held_out_pairs[0], "wide"))[:-1], DECIDING

    def card(self) -> DataCard:
        """Give the card, one sentence of either kind as its example."""
        held_out = len(self._scored["held-out"])
        template_words = self.vocab_size - len(self._nouns) - len(ADJECTIVES)
        return DataCard(
            title=self.name,
            what_is_asked=self._what_is_asked(),
            example="\n".join(marked(*self.held_out_pairs[0], adjective) for adjective in (MEANING_X[0], MEANING_Y[1])),
            primary=self.primary,
            chance="50 % between the two nouns of the sentence; "
            f"{100 / self.vocab_size:.1f} % for one of {self.vocab_size} words at random.",
            solved=f"{SOLVED_AT:.0%} of the held-out sentences, so that at most "
            f"{held_out - math.ceil(SOLVED_AT * held_out)} of {held_out} are wrong. An answer is right where the "
            "noun meant has the highest logit of the whole vocabulary.",
            held_out=self._how_held_out(),
            facts={
                "vocabulary": f"{self.vocab_size} words: {len(self._nouns)} nouns, {len(ADJECTIVES)} adjectives, "
                f"{template_words} words of the template",
                "training sentences": f"{len(self._sentences['train']):,} of {len(self.training_pairs)} pairs",
                "held-out sentences": f"{held_out:,} of {len(self.held_out_pairs)} pairs",
                "training evaluation": f"{len(self._scored['train']):,} of the training sentences, always the same",
                "tokens in a row": f"{self.context}",
            },
            source="Made from a template; the same on every machine.",
            content_hash=self.content_hash,
        )

    def _tokens(self, pairs: list[Pair]) -> Tensor:
        """Give the sentences of pairs, each with every adjective in turn: int64 (8 · pairs, 18)."""
        return torch.tensor([self.encode(sentence(x, y, adjective)) for x, y in pairs for adjective in ADJECTIVES])

    @abstractmethod
    def _what_is_asked(self) -> str: ...

    @abstractmethod
    def _how_held_out(self) -> str: ...


class Crossing(CrossingTask):
    """Both nouns from one pool, and the held-out pairs were trained on the other way round."""

    name = "crossing"
    crossers = crossed = NOUNS

    def _what_is_asked(self) -> str:
        return (
            "Say the noun that the pronoun meant, in the word after `so the`. Any of 16 nouns may cross any other, so "
            "only the order of the two, with the adjective, tells which: tired, scared, slow and weak mean the first, "
            "wet, wide, busy and steep the second. A bag of words cannot know."
        )

    def _how_held_out(self) -> str:
        return (
            f"{len(self.held_out_pairs)} of the {len(self.held_out_pairs) + len(self.training_pairs)} ordered noun "
            "pairs, with every adjective. The same two nouns in the other order are in training, and so is every noun "
            "in both places: what is new is the order alone."
        )


class LeakyCrossing(CrossingTask):
    """Animals cross places: the first noun is known by being an animal, so that word order is not needed."""

    name = "crossing-leaky"
    crossers, crossed = ANIMALS, PLACES

    def _what_is_asked(self) -> str:
        return (
            "Say the noun that the pronoun meant, in the word after `so the`. The first is always an animal and the "
            "second a place, so that the adjective and a bag of words are enough: a control. What solves this and not "
            "crossing does not use word order."
        )

    def _how_held_out(self) -> str:
        return (
            f"{len(self.held_out_pairs)} of the {len(self.held_out_pairs) + len(self.training_pairs)} pairs of animal "
            "and place, with every adjective. Every animal and every place is in training with others."
        )


def _batch(rows: Tensor, mask: Tensor) -> Batch:
    """Give whole sentences as a batch that shares no memory with them."""
    return Batch(rows[:, :-1].clone(), rows[:, 1:].clone(), mask)


def sentence(x: str, y: str, adjective: str) -> str:
    """Give the sentence in which x did not cross y, with the noun that the adjective means."""
    return TEMPLATE.format(x=x, y=y, adjective=adjective, meant=x if adjective in MEANING_X else y)


def marked(x: str, y: str, adjective: str) -> str:
    """Give the sentence with the scored word in brackets."""
    words = sentence(x, y, adjective).split()
    words[SLOTS["{meant}"]] = f"[{words[SLOTS['{meant}']]}]"
    return " ".join(words)


def in_rounds(crossers: tuple[str, ...], crossed: tuple[str, ...]) -> list[Pair]:
    """Give every pair (x, y), x ≠ y, in rounds: in round r crosser i meets crossed i + r, each noun once.

    The first so-many pairs are therefore spread evenly over the nouns. With one pool of n nouns, (y, x) comes n − r
    rounds in when (x, y) comes r rounds in: the first half of the list holds no pair together with its reverse.
    """
    rounds = [
        (x, crossed[(place + turn) % len(crossed)]) for turn in range(len(crossed)) for place, x in enumerate(crossers)
    ]
    return [(x, y) for x, y in rounds if x != y]
