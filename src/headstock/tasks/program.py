"""What a program gives, at every position of a random sequence: what a compiled model is exact at, learned.

    <start> a b a c      hist, causal: how often the token has come so far
            1 1 2 1

The tokens are those of the compiled model, ids, start token and all, so that such a model solves the task as it is
loaded. Targets are not the next token; of a program that a model goes on with (`addition`) they are, where the answer
is read off.
"""

import hashlib
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from typing import ClassVar

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.programs import zoo
from headstock.programs.compiler.domain import Domain
from headstock.programs.readouts import readout_for, refuse_numbers
from headstock.tasks.base import DataCard, Metric, Task, hash_of
from headstock.tasks.program_options import vocabulary_of
from headstock.tasks.program_rows import Row, answers, how_drawn, rows
from headstock.tasks.program_tokens import ProgramTokenizer
from headstock.training.batch import Batch, Split

SOLVED_AT = 0.99
SCORED_ROWS = 256
"""Rows of either evaluation set, where there are so many different ones."""
PARTS = 8
"""One sequence in so many is held out, whichever way its hash falls."""
MOST_DRAWS = 40
"""How often rows are drawn for an evaluation set before there are no more."""
REMEMBERED = 1 << 16
"""Rows whose answers are kept, for programs with few."""


class ProgramTask(Task):
    """Rows of a program's domain, trained and scored on the program's values."""

    name = "program"
    primary = Metric("accuracy", "higher", "of the program's values")
    steps: ClassVar = {"quick": 600, "full": 2000}

    def __init__(self, *, name: str, length: int, vocab: str, causal: str) -> None:
        """Make it. Raises UserError for a program that cannot be compiled so, or whose output is no token."""
        self.program = zoo.get(name)
        self.domain = Domain.of(vocabulary_of("vocab", vocab), length, causal == "true", "float32")
        try:
            self.readout = readout_for(self.program, self.domain)
        except UserError as refusal:  # in the words of this task's options
            said = re.sub(r"\bcausal=(True|False)\b", lambda found: found[0].lower(), str(refusal))
            raise UserError(said) from None
        refuse_numbers(self.program, self.readout)
        if self.program.end is not None and self.program.end not in self.domain.vocabulary:
            raise UserError(
                f"{self.program.name} ends by {self.program.end!r}, which is not of the vocabulary {vocab!r}: leave "
                f"vocab out, or give it one that has it."
            )
        self._options: dict[str, str | int | float] = {
            "name": name,
            "length": length,
            "vocab": vocab,
            "causal": causal,
        }
        self.tokenizer = ProgramTokenizer(self.readout)
        self.vocab_size = len(self.readout.names)
        self.skipped = int(self.readout.start is not None)
        self.context = length + self.skipped
        self.causal = self.domain.causal
        self.bytes_per_token = None
        self.solved_at = SOLVED_AT
        self._id_of = {value: place for place, value in self.readout.of_id.items()}
        self._padding = self.domain.vocabulary.index(self.program.end) if self.program.end is not None else 0
        self._answer = lru_cache(maxsize=REMEMBERED)(self._worked_out)
        self._scored = {split: self._evaluation_rows(split) for split in ("train", "held-out")}
        self.content_hash = hash_of(
            self.name,
            self._options,
            self.readout.names,
            [[self.tokens_of(row) for row in scored] for scored in self._scored.values()],
            self.batch(seed=0, index=0, size=8).inputs.tolist(),
        )

    def options(self) -> dict[str, str | int | float]:
        """Give the program and its domain."""
        return dict(self._options)

    def make_batch(self, seed: int, index: int, size: int, split: Split) -> Batch:
        """Give drawn rows; what counts is every position at which the program has something to say."""
        return self._batch(self._drawn(size, split, seed, index))

    def make_evaluation(self, split: Split, size: int) -> Iterator[Batch]:
        """Give the same rows every time, drawn for evaluation, no two alike."""
        scored = self._scored[split]
        for start in range(0, len(scored), size):
            yield self._batch(scored[start : start + size])

    def tokens_of(self, row: Row) -> tuple[list[int], list[int | None]]:
        """Give a row's ids, the start token's first, and the id that is right at each; None where none counts."""
        place_of = {token: place for place, token in enumerate(self.domain.vocabulary)}
        start = [] if self.readout.start is None else [self.readout.start]
        return start + [place_of[token] for token in row], [None] * self.skipped + list(self._answer(row))

    def telling_example(self) -> tuple[list[int], int]:
        """Give a held-out row; of a causal program the last position but one, else the first that counts."""
        ids, targets = self.tokens_of(self._scored["held-out"][0])
        counting = [place for place, target in enumerate(targets[:-1]) if target is not None]
        if not counting:
            raise UserError(f"{self.title} has rows of one token, of which there is nothing to tell: use length=2.")
        return ids, counting[-1 if self.causal and self.program.end is None else 0]

    def telling_target(self) -> int:
        """Give the value that the program has there."""
        _, position = self.telling_example()
        target = self.tokens_of(self._scored["held-out"][0])[1][position]
        assert target is not None
        return target

    @property
    def title(self) -> str:
        """The program and its length."""
        return f"program {self.program.name}, length {self.domain.max_length}"

    def card(self) -> DataCard:
        """Give the card, one row under the other as its example."""
        first = self._scored["held-out"][0]
        ids, targets = self.tokens_of(first)
        names = [self.readout.names[token] for token in ids]
        said = ["·" if target is None else self.readout.names[target] for target in targets]
        widths = [max(len(a), len(b)) for a, b in zip(names, said, strict=True)]
        example = "\n".join(
            " ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
            for line in (names, said)
        )
        scored = sum(int(batch.mask.sum()) for batch in self.evaluation())
        guess = self.guessing()
        mode = "causal" if self.causal else "bidirectional"
        says = next(iter(self.program.says.splitlines()), "Give the program's values.")
        return DataCard(
            title=self.title,
            what_is_asked=f"{says} Asked at every position; the tokens are those of the compiled model, so that model "
            "solves it.",
            example=example,
            primary=self.primary,
            chance=f"{guess:.1%} for the value that is commonest at each position; {1 / self.vocab_size:.1%} for one "
            f"of {self.vocab_size} tokens at random.",
            solved=f"{SOLVED_AT:.0%} of the scored positions, so that at most "
            f"{scored - math.ceil(SOLVED_AT * scored)} of {scored:,} are wrong.",
            held_out=f"One sequence in {PARTS}, by its hash, is never trained on; {len(self._scored['held-out'])} of "
            f"them are scored. What is new is the whole{': short beginnings come in both' if self.causal else ''}.",
            facts={
                "program": f"{self.program.name}, {mode}",
                "sequences": how_drawn(self.program, self.domain),
                "vocabulary": " ".join(self.readout.names),
                "tokens in a row": f"{self.context}, the start token's included" if self.skipped else f"{self.context}",
                "scored": f"{scored:,} positions in the held-out set",
            },
            source="made here, by the program's own interpreter",
            content_hash=self.content_hash,
        )

    def guessing(self) -> float:
        """Give the held-out accuracy of answering what is commonest at each position in training rows."""
        counts = torch.zeros(self.context, self.vocab_size)
        for batch in self.evaluation("train"):
            place_n = batch.mask.nonzero()[:, 1]
            ones = torch.ones(len(place_n))
            counts.index_put_((place_n, batch.targets[batch.mask]), ones, accumulate=True)
        best_q = counts.argmax(-1)
        right = scored = 0
        for batch in self.evaluation():
            right += int((batch.targets == best_q[: batch.targets.shape[1]])[batch.mask].sum())
            scored += int(batch.mask.sum())
        return right / scored

    def _worked_out(self, row: Row) -> tuple[int | None, ...]:
        values = answers(self.program, self.domain, row)
        goes_on = self.program.end is not None
        return tuple(None if value is None and goes_on else self._id_of[value] for value in values)

    def _drawn(self, size: int, split: Split, seed: int, index: int) -> list[Row]:
        """Draw rows of a split; those of the other are drawn again."""
        found: list[Row] = []
        for attempt in count():
            drawn = rows(self.program, self.domain, 2 * size, self.domain.max_length, split, seed, index, attempt)
            found += [row for row in drawn if is_held_out(row) == (split == "held-out")]
            if len(found) >= size:
                return found[:size]
        raise AssertionError

    def _evaluation_rows(self, split: Split) -> list[Row]:
        """Draw different rows for evaluation. Raises UserError where the split has none."""
        found: dict[Row, None] = {}
        for attempt in range(MOST_DRAWS):
            drawn = rows(self.program, self.domain, SCORED_ROWS, self.domain.max_length, "evaluation", split, attempt)
            for row in drawn:
                self.domain.refuse(list(row))
                if is_held_out(row) == (split == "held-out"):
                    found[row] = None
            if len(found) >= SCORED_ROWS:
                break
        if not found:
            raise UserError(
                f"{self.title} has too few different sequences to hold one in {PARTS} out: give it a greater length or "
                f"more tokens."
            )
        return list(found)[:SCORED_ROWS]

    def _batch(self, drawn: list[Row]) -> Batch:
        inputs = torch.full((len(drawn), self.context), self._padding)
        targets = torch.full((len(drawn), self.context), -1)
        for place, row in enumerate(drawn):
            ids, right = self.tokens_of(row)
            inputs[place, : len(ids)] = torch.tensor(ids)
            targets[place, : len(ids)] = torch.tensor([-1 if target is None else target for target in right])
        mask = targets >= 0
        return Batch(inputs, torch.where(mask, targets, _nothing()), mask)


def is_held_out(row: Row) -> bool:
    """Whether a sequence is never trained on: one in so many, the same ones on every machine."""
    digest = hashlib.sha256(repr(row).encode()).digest()
    return int.from_bytes(digest[:8], "little") % PARTS == 0


def _nothing() -> Tensor:
    return torch.zeros((), dtype=torch.int64)
