"""Tasks whose rows a rule draws without end: the stream, what is held out of it, and the sets that are scored.

A subclass says how rows are drawn and what its card tells. Which rows are held out is decided by their tokens alone:
one in eight, by a hash, wherever they are drawn, so that no stream of training, however long, ever meets one.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.tasks.base import Marks, Task, hash_of
from headstock.tasks.drawing import draw
from headstock.training.batch import Batch, Probe, Split

SOLVED_AT = 0.99
SCORED_ROWS = 256
"""Rows of either evaluation set, where there are so many different ones."""
FEWEST = 2
"""Different held-out rows without which a score says nothing."""
PARTS = 8
"""One row in so many is held out, whichever way its hash falls."""
MOST_DRAWS = 40
"""How often rows are drawn for a set before there are no more."""


@dataclass(frozen=True)
class Rows:
    """Drawn rows. inputs and targets: int64 (row, time); mask: bool (row, time), as a `Batch` has them.

    spans: by name, bool (row, time): what stands where, as `Marks` has it, for the first target that counts.
    """

    inputs: Tensor
    targets: Tensor
    mask: Tensor
    spans: Mapping[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, which: Tensor | slice) -> "Rows":
        return Rows(
            self.inputs[which],
            self.targets[which],
            self.mask[which],
            {name: span_bq[which] for name, span_bq in self.spans.items()},
        )

    def batch(self) -> Batch:
        """Give them to be trained on or scored."""
        return Batch(self.inputs.clone(), self.targets.clone(), self.mask.clone())

    def batches(self, size: int = 64) -> list[Batch]:
        """Give them so many at a time."""
        return [self[start : start + size].batch() for start in range(0, len(self), size)]

    @classmethod
    def joined(cls, parts: list["Rows"]) -> "Rows":
        """Give rows of one length one after another."""
        return cls(
            torch.cat([rows.inputs for rows in parts]),
            torch.cat([rows.targets for rows in parts]),
            torch.cat([rows.mask for rows in parts]),
            {name: torch.cat([rows.spans[name] for rows in parts]) for name in parts[0].spans},
        )


class DrawnTask(Task):
    """A task made of drawn rows. A subclass sets Task's fields and then calls `finish` at the end of its __init__.

    Its content hash follows from its options and rows, its evaluation sets from `draw`.
    """

    bytes_per_token = None
    solved_at: float | None = SOLVED_AT

    @abstractmethod
    def draw(self, size: int, *purpose: str | int, **at: Any) -> Rows:
        """Draw rows, decided by `purpose` and `at` alone (by `drawing.draw`), of either split, not all different.

        at: the difficulties that `probes` asks for, by name; what is left out is as training has it.
        """

    def identity(self, rows: Rows) -> Tensor:
        """Give the tokens that tell a row from others, int64 (row, n): held-out rows share them with no trained one.

        Here those up to the last target that counts, then −1, for a longer row may go on differently after it.
        """
        return beginning(rows, rows.mask.shape[1] - rows.mask.flip(1).int().argmax(1))

    def held_out(self, rows: Rows) -> Tensor:
        """Say which rows are never trained on, bool (row,)."""
        return is_held_out(self.identity(rows))

    def trainable(self, rows: Rows) -> Tensor:
        """Say which rows may be trained on, bool (row,): none that is held out."""
        return ~self.held_out(rows)

    def finish(self) -> None:
        """Draw the evaluation sets. Raises UserError where a split has no row."""
        self._scored = {split: self.different_rows(SCORED_ROWS, split, "evaluation") for split in ("train", "held-out")}
        if self.n_held_out < FEWEST:
            raise self._too_few()
        first = self.split_rows(16, "train", 0, 0)
        said = [rows.tolist() for rows in (first.inputs, first.targets, first.mask)]
        self.content_hash = hash_of(
            self.name, self.options(), self.tokenizer_names(), said, [*map(_told, self._scored.values())]
        )

    def tokenizer_names(self) -> list[str]:
        """Give each token's label, in order."""
        return self.token_labels(list(range(self.vocab_size)))

    def split_rows(self, size: int, split: str, *purpose: str | int, **at: Any) -> Rows:
        """Draw so many rows of a split. Raises UserError where the split has none."""
        parts: list[Rows] = []
        found = 0
        for attempt in count():
            drawn = self.draw(_enough(size - found, split), self.name, split, *purpose, attempt, **at)
            parts.append(drawn[self.held_out(drawn) if split == "held-out" else self.trainable(drawn)])
            found += len(parts[-1])
            if found >= size:
                return Rows.joined(parts)[:size]
            if attempt == MOST_DRAWS and not found:
                raise self._too_few()
        raise AssertionError

    def different_rows(self, size: int, split: str, *purpose: str | int, **at: Any) -> Rows:
        """Draw so many rows of a split, no two alike, or as many as there are. Raises UserError where it has none."""
        kept: Rows | None = None
        for attempt in range(MOST_DRAWS):
            more = self.split_rows(size, split, *purpose, "different", attempt, **at)
            kept = more if kept is None else Rows.joined([kept, more])
            kept = kept[_first_of_each(self.identity(kept))]
            if len(kept) >= size:
                return kept[:size]
        assert kept is not None
        return kept

    def make_batch(self, seed: int, index: int, size: int, split: Split) -> Batch:
        """Give drawn rows; those of the held-out split are held out whatever the seed."""
        return self.split_rows(size, split, seed, index).batch()

    def make_evaluation(self, split: Split, size: int) -> Iterator[Batch]:
        """Give the same rows every time, drawn for evaluation, no two alike."""
        yield from self._scored[split].batches(size)

    def probe(self, *, n_rows: int = SCORED_ROWS, **at: int | float | str) -> Probe:
        """Give a held-out set of one difficulty, drawn as `draw` reads it."""
        rows = self.different_rows(n_rows, "held-out", "probe", *map(str, sorted(at.items())), **at)
        return Probe(at, rows.batches())

    def marks(self) -> Marks | None:
        """Give the held-out set with what stands where, if rows are drawn with that."""
        rows = self._scored["held-out"]
        if not rows.spans:
            return None
        return Marks(
            rows.inputs.clone(), rows.mask.int().argmax(1), {name: s.clone() for name, s in rows.spans.items()}
        )

    def telling_example(self) -> tuple[list[int], int]:
        """Give the first held-out row, and the last position of those that count."""
        rows = self._scored["held-out"]
        last = int(rows.mask[0].nonzero()[-1])
        return [*rows.inputs[0].tolist(), int(rows.targets[0, -1])], last

    def telling_target(self) -> int:
        """Give the target that counts there."""
        _, last = self.telling_example()
        return int(self._scored["held-out"].targets[0, last])

    @cached_property
    def n_scored(self) -> int:
        """How many targets the held-out set has."""
        return int(self._scored["held-out"].mask.sum())

    @property
    def n_held_out(self) -> int:
        """How many rows the held-out set has."""
        return len(self._scored["held-out"])

    def wrong_at_most(self) -> int:
        """Say how many of them may be wrong where the task still counts as solved."""
        assert self.solved_at is not None
        return int((1 - self.solved_at) * self.n_scored + 1e-9)

    def _too_few(self) -> UserError:
        return UserError(
            f"{self.spec} has too few different rows to hold one in {PARTS} out: make rows longer, or give them more "
            f"tokens."
        )


def beginning(rows: Rows, ends_b: Tensor) -> Tensor:
    """Give each row's tokens before a place, int64 (row, time), and −1 from there on."""
    return rows.inputs.masked_fill(torch.arange(rows.inputs.shape[1]) >= ends_b[:, None], -1)


def is_held_out(tokens_bn: Tensor) -> Tensor:
    """Say of each row of ids whether it is never trained on, bool (row,): one in eight, the same on every machine.

    Rows that differ only in how many −1 they end with are alike.
    """
    odd_n = draw(2**62, tokens_bn.shape[1], "held out") * 2 + 1
    hash_b = ((tokens_bn + 1) * odd_n).sum(1)  # modulo 2⁶⁴, whose upper bits are evenly spread
    hash_b = hash_b ^ (hash_b >> 29)
    return ((hash_b * 0x2545F4914F6CDD1D) >> 40) % PARTS == 0


def _enough(size: int, split: str) -> int:
    """Say how many rows to draw so that most often so many are of the split."""
    return PARTS * size + 2 * PARTS if split == "held-out" else size + size // (PARTS - 1) + PARTS


def _first_of_each(tokens_bn: Tensor) -> Tensor:
    """Give the places of rows that no earlier one is like."""
    seen: dict[bytes, int] = {}
    for place, row in enumerate(tokens_bn.numpy()):
        seen.setdefault(row.tobytes(), place)
    return torch.tensor(sorted(seen.values()))


def _told(rows: Rows) -> list[Any]:
    return [rows.inputs.tolist(), rows.targets.tolist(), rows.mask.tolist()]
