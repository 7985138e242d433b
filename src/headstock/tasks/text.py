"""The next token of real text, scored in bits per byte so that tokenizers can be compared."""

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.tasks import corpora, tokenizers
from headstock.tasks.base import DataCard, Metric, Task, hash_of
from headstock.tasks.drawing import draw
from headstock.training.batch import Batch, Split

_SHOWN = 60  # characters of context in the card's example


class TextTask(Task):
    """A text, cut in two in order: trained on windows at random places, scored on every token of the rest once."""

    name = "text"
    bytes_per_token: Tensor
    primary = Metric("bits_per_byte", "lower", "bits per byte")
    steps: ClassVar = {"quick": 300, "full": 5000}

    def __init__(self, *, corpus: str, tokenizer: str, context: int, held_out: float) -> None:
        self._options: dict[str, str | int | float] = {
            "corpus": corpus,
            "tokenizer": tokenizer,
            "context": context,
            "held_out": held_out,
        }
        read = corpora.read(corpus)
        # Cut in characters, not in tokens: whatever the tokenizer, the same text is held out.
        cut = int(len(read.text) * (1 - held_out))
        self.tokenizer = tokenizers.make(tokenizer, read.text)
        parts = [self.tokenizer.encode_array(part) for part in (read.text[:cut], read.text[cut:])]
        self._train, self._held_out = len(parts[0]), len(parts[1])
        for part, tokens, least in (("training", self._train, context + 1), ("held-out", self._held_out, context)):
            if tokens < least:
                raise UserError(
                    f"the {part} part of {corpus} is {tokens} tokens long and a context of {context} needs {least}: "
                    "choose a smaller context or a longer text."
                )
        self.vocab_size = self.tokenizer.vocab_size
        self.context = context
        self.bytes_per_token = self.tokenizer.bytes_per_token
        self.solved_at = None
        ids = np.concatenate(parts)
        self._ids = torch.from_numpy(ids)  # int32 (tokens,): half the memory; batches are int64
        self._facts = {
            **read.facts,
            "characters": f"{len(read.text):,}",
            "bytes": f"{len(read.text.encode()):,}",
            "sha256 of the text": read.sha256,
        }
        self._source = read.source
        # The ids themselves are in it, so that a tokenizer which cuts otherwise by a hair is another task.
        self.content_hash = hash_of(
            self.name,
            read.sha256,
            [piece.hex() for piece in self.tokenizer.pieces],
            hash_of_ids(ids),
            [self._train, self._held_out, context],
        )

    def options(self) -> dict[str, str | int | float]:
        """Give the options; a corpus that is no named one as an absolute path."""
        return dict(self._options)

    def make_batch(self, seed: int, index: int, size: int, split: Split) -> Batch:
        """Give windows of `context` tokens at drawn places of one part; every token counts."""
        first, targets = (0, self._train - 1) if split == "train" else (self._train - 1, self._held_out)
        starts = first + draw(targets - self.context + 1, size, self.name, split, seed, index)
        return self._windows(starts, end=first + targets)

    def make_evaluation(self, split: Split, size: int) -> Iterator[Batch]:
        """Give windows side by side; the last one is padded and the padding masked."""
        first, targets = self._scored(split)
        starts = torch.arange(first, first + targets, self.context)
        for row in range(0, len(starts), size):
            yield self._windows(starts[row : row + size], end=first + targets)

    def telling_example(self) -> tuple[list[int], int]:
        """Give the row, among the first held-out ones, in which a stretch comes a second time and is the longest.

        The position is the one that predicts the stretch's last token: what the row itself foretells; the last of the
        first row where no stretch comes again. The row is given with the token that follows it.
        """
        first = next(self.evaluation(size=max(1, min(self._held_out, 8192) // self.context)))
        rows = first.inputs.numpy()
        changes = np.concatenate([np.zeros_like(rows[:, :1]), rows[:, 1:] != rows[:, :-1]], axis=1)
        earlier = np.arange(self.context)
        longest, found = 0, (0, self.context - 1)
        # runs[w, j]: how often the token changes in the stretch that ends both at `now` and, earlier, at j. Changes
        # and not tokens are counted, or a row of dashes would be the longest stretch of all.
        runs = np.zeros(rows.shape, dtype=np.int64)
        for now in range(1, self.context):
            before = np.concatenate([np.zeros_like(runs[:, :1]), runs[:, :-1]], axis=1)
            runs = np.where((rows == rows[:, now : now + 1]) & (earlier < now), before + changes[:, now : now + 1], 0)
            if runs.max() > longest:
                longest, found = int(runs.max()), (int(runs.max(axis=1).argmax()), now - 1)
        row, position = found
        return [*rows[row].tolist(), int(first.targets[row, -1])], position

    def card(self) -> DataCard:
        """Give the card, a stretch that the row foretells as its example."""
        ids, position = self.telling_example()
        known = self.decode(ids[: position + 1])
        held_out_bytes = float(self.bytes_per_token[self._ids[self._train :].long()].sum())
        return DataCard(
            title=f"text: {self._options['corpus']}, tokenizer {self.tokenizer.name}",
            what_is_asked=f"Predict every next token of a text, from at most {self.context} tokens before it.",
            example=f"{known[-_SHOWN:]!r} → [{self.tokenizer.label(ids[position + 1])!r}]",
            primary=self.primary,
            chance=f"{math.log2(self.vocab_size) * self._held_out / held_out_bytes:.2f} bits per byte for "
            f"{self.vocab_size:,} tokens all alike; {self._unigram_bits() / held_out_bytes:.2f} for one who knows only "
            "how often each token comes in the training part.",
            solved="Nothing counts as solved: a text has no end of what can be learnt.",
            held_out=f"The last {100 * float(self._options['held_out']):g} % of the text's characters, which no "
            f"training row reads. Each of its {self._held_out:,} tokens is scored once, in windows of {self.context} "
            "that do not overlap; the first is predicted from the last training token. The training figure is taken "
            f"in the same way over the first {self._scored('train')[1]:,} tokens that follow another.",
            facts={
                **self._facts,
                "tokenizer": f"{self.tokenizer.name}, trained on the whole text"
                if self.tokenizer.name.startswith("bpe")
                else self.tokenizer.name,
                "vocabulary": f"{self.vocab_size:,} tokens",
                "training tokens": f"{self._train:,}",
                "held-out tokens": f"{self._held_out:,}",
                "bytes per held-out token": f"{held_out_bytes / self._held_out:.2f}",
                "tokens in a row": f"{self.context}",
            },
            source=self._source,
            content_hash=self.content_hash,
        )

    def _scored(self, split: Split) -> tuple[int, int]:
        """Give the place of the first token read in evaluation, and how many tokens after it are predicted."""
        if split == "train":
            return 0, min(self._held_out, self._train - 1)
        return self._train - 1, self._held_out

    def _windows(self, starts: Tensor, end: int) -> Batch:
        """Give the rows that begin at `starts`; what would read from `end` on is padding: 0 and masked."""
        places = starts[:, None] + torch.arange(self.context)
        mask = places < end
        places = places.clamp(max=end - 1)
        inputs, targets = self._ids[places].long(), self._ids[places + 1].long()
        return Batch(inputs.where(mask, 0), targets.where(mask, 0), mask)

    def _unigram_bits(self) -> float:
        """Give the bits of the held-out part under the training part's token counts, each raised by one."""
        counts = torch.bincount(self._ids[: self._train], minlength=self.vocab_size).double() + 1
        return float(-(counts / counts.sum()).log2()[self._ids[self._train :].long()].sum())


def hash_of_ids(ids: tokenizers.Ids) -> str:
    """Give the sha256 of token ids, whatever the byte order of the machine."""
    return hash_of(np.ascontiguousarray(ids, dtype="<i4").tobytes().hex())
