"""The language (aab)*: say what comes next, in rows that begin at any of its three places.

    a a b a [a] [b] [a] [a]

After two tokens it is known: b after aa, a after everything else. Rows that can be told apart are only three, so what
is held out are longer ones, from where those that are trained on end.
"""

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from headstock.tasks.base import DataCard, Marks, Metric, Task, hash_of
from headstock.tasks.drawing import draw
from headstock.tasks.drawn import SOLVED_AT
from headstock.tasks.tokenizers import CharTokenizer
from headstock.training.batch import Batch, Probe, Split

WORD = "aab"
LONGER = (2, 4)
"""Times the trained length that is probed; the first is the held-out set."""


class Aab(Task):
    """Rows of (aab)*, trained to `length` tokens and scored beyond them."""

    name = "aab"
    primary = Metric("accuracy", "higher", "of the tokens beyond the trained length")
    steps: ClassVar = {"quick": 300, "full": 1000}

    def __init__(self, *, length: int) -> None:
        """Make it; `length` is what rows that are trained on have."""
        self.length = length
        self.tokenizer = CharTokenizer(WORD)
        self.vocab_size = self.tokenizer.vocab_size
        self.context = LONGER[-1] * length
        self.bytes_per_token = None
        self.solved_at = SOLVED_AT
        said = [self.rows(longer * length) for longer in (1, *LONGER)]
        drawn = self.batch(seed=0, index=0, size=16)
        self.content_hash = hash_of(
            self.name,
            self.options(),
            [[rows.inputs.tolist(), rows.targets.tolist(), rows.mask.tolist()] for rows in [*said, drawn]],
        )

    def options(self) -> dict[str, str | int | float]:
        """Give the trained length."""
        return {"length": self.length}

    def rows(self, length: int) -> Batch:
        """Give the three rows of a length, one a place to begin at, masked to what can be known and was not trained on.

        Where a row is longer than `length`, that is its later half.
        """
        word_n = torch.tensor(self.encode(WORD))
        tokens = word_n[(torch.arange(3)[:, None] + torch.arange(length + 1)) % 3]
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        mask = torch.ones_like(inputs, dtype=torch.bool)
        mask[:, 0] = inputs[:, 0] == self.encode("b")[0]  # a first a may go on either way
        if length > self.length:
            mask[:, : length // 2] = False
        return Batch(inputs.contiguous(), targets.contiguous(), mask)

    def make_batch(self, seed: int, index: int, size: int, split: Split) -> Batch:
        """Give rows that begin at drawn places; held-out ones are twice as long."""
        which = draw(len(WORD), size, self.name, split, seed, index)
        return _picked(self._rows_of(split), which)

    def make_evaluation(self, split: Split, size: int) -> Iterator[Batch]:
        """Give the three rows of the split."""
        for start in range(0, len(WORD), size):
            yield _picked(self._rows_of(split), torch.arange(start, min(start + size, len(WORD))))

    def probes(self) -> Iterator[Probe]:
        """Give rows of twice and four times the trained length, the later half of which is scored."""
        for longer in LONGER:
            yield Probe({"length": longer * self.length}, [self.rows(longer * self.length)])

    def marks(self) -> Marks:
        """Say of the last position of each held-out row which two tokens tell, the others being noise."""
        inputs = self._rows_of("held-out").inputs
        places = torch.arange(inputs.shape[1]).expand_as(inputs)
        last_two = places >= inputs.shape[1] - 2
        return Marks(inputs, torch.full((len(inputs),), inputs.shape[1] - 1), {"answer": last_two, "noise": ~last_two})

    def telling_example(self) -> tuple[list[int], int]:
        """Give the held-out row that begins at the beginning, and the last position after which b comes."""
        rows = self._rows_of("held-out")
        last = int((rows.targets[0] == self.encode("b")[0]).nonzero()[-1])
        return [*rows.inputs[0].tolist(), int(rows.targets[0, -1])], last

    def card(self) -> DataCard:
        """Give the card."""
        held_out = self._rows_of("held-out")
        labels = self.token_labels([*held_out.inputs[0].tolist(), int(held_out.targets[0, -1])])
        asked = [False, *held_out.mask[0].tolist()]
        scored = int(held_out.mask.sum())
        always_a = float((held_out.targets[held_out.mask] == self.encode("a")[0]).double().mean())
        return DataCard(
            title=self.name,
            what_is_asked="Say what comes next in (aab)*, which a row enters at any of its three places: b after aa, a "
            "after everything else. The last two tokens tell it, no matter how long the row is.",
            example=" ".join(f"[{label}]" if counts else label for label, counts in zip(labels, asked, strict=True)),
            primary=self.primary,
            chance=f"{always_a:.1%} for saying a always; the last token alone tells no more, for after a come a and b "
            "as often.",
            solved=f"{SOLVED_AT:.0%} of the scored tokens, so that at most {int((1 - SOLVED_AT) * scored + 1e-9)} of "
            f"{scored} are wrong.",
            held_out=f"The three rows of {2 * self.length} tokens, scored beyond the first {self.length}: rows differ "
            "by where they begin and by length alone, so nothing shorter could be held out. Learned positions have no "
            "training there; rope, alibi or none can go on.",
            facts={
                "vocabulary": "a and b, with the ids of the model that is made by hand",
                "tokens in a row": f"{self.length} in training, {' and '.join(str(n * self.length) for n in LONGER)} "
                "where it is scored",
                "scored": "what follows any token but a first a, which goes on either way; in held-out rows the later "
                "half",
            },
            source='Vogel, "I made a transformer by hand (no training!)" (2023), whose model has every weight chosen; '
            "here a model is trained, and asked beyond what it was trained on.",
            content_hash=self.content_hash,
        )

    def _rows_of(self, split: str) -> Batch:
        return self.rows(self.length if split == "train" else LONGER[0] * self.length)


def _picked(rows: Batch, which: Tensor) -> Batch:
    return Batch(rows.inputs[which], rows.targets[which], rows.mask[which])
