"""What every task has: batches, a primary metric, a data card, a name that makes it again."""

import hashlib
import json
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal, get_args

from torch import Tensor

from headstock.errors import UserError, near_name
from headstock.tasks.tokenizers import Tokenizer
from headstock.training.batch import Batch, Probe, Split


@dataclass(frozen=True)
class Metric:
    """A figure that evaluation gives, and which way is better."""

    name: Literal["bits_per_byte", "loss", "accuracy"]
    better: Literal["lower", "higher"]
    unit: str


@dataclass(frozen=True)
class DataCard:
    """What a person should know of a task before believing a figure on it."""

    title: str
    what_is_asked: str
    example: str
    """A worked example, as a person reads it: the input, and which target is scored."""
    primary: Metric
    chance: str
    """What guessing gives, with its figure and how it is reached."""
    solved: str
    """What counts as solved, or why nothing does."""
    held_out: str
    """How the held-out set is made, and its size."""
    facts: dict[str, str]
    """Sizes, versions and hashes of the data itself."""
    source: str
    content_hash: str


@dataclass(frozen=True)
class Marks:
    """Held-out rows with one question each, and what stands where: for who asks where a model looks for its answer.

    inputs: int64 (row, time). queries: int64 (row,), the position whose prediction is the answer. spans: by name, as in
    "answer", "other needles", "noise", bool (row, time); no position is in two of them, and none comes after its query.
    """

    inputs: Tensor
    queries: Tensor
    spans: Mapping[str, Tensor]


class Task(ABC):
    """A batch source with a card. Subclasses set the fields below in __init__ and never change them after.

    A task is a value: the same options give the same batches, on any machine, in any process.
    """

    name: ClassVar[str]
    primary: ClassVar[Metric]
    steps: ClassVar[Mapping[Literal["quick", "full"], int]]
    """Training steps of batch 32 that a comparison gives it, by budget, where none are asked for."""

    vocab_size: int
    """How many ids there are; the tokenizer's."""
    context: int
    """The longest row of any batch, in tokens."""
    bytes_per_token: Tensor | None
    """As `BatchSource.bytes_per_token`."""
    causal: bool = True
    """Whether what is right at a position follows from what stands before it, so that a model which sees more would be
    no answer; with false it follows from the whole row, targets are no tokens of it, and models see all of it."""
    tokenizer: Tokenizer
    """Kept with a run (`task.tokenizer.save(folder)`), so that a model outlives its task."""
    solved_at: float | None
    """The primary metric at which the task counts as solved; None where it has no end (language modelling)."""
    content_hash: str
    """sha256 of everything that decides the batches: text, vocabulary, pairs, split. No path and no name of a file."""

    @abstractmethod
    def options(self) -> dict[str, str | int | float]:
        """Give every option by name, complete: `tasks.get(task.name, **task.options())` makes the same task."""

    @property
    def spec(self) -> str:
        """The task as the command line writes it, complete: `crossing,held_out=0.2`; `tasks.parse` reads it back.

        A comma inside a value (a path's) is written twice.
        """
        pairs = (f"{key}={value}".replace(",", ",,") for key, value in sorted(self.options().items()))
        return ",".join([self.name, *pairs])

    def batch(self, *, seed: int, index: int, size: int, split: Split = "train") -> Batch:
        """Give a batch as `BatchSource.batch` promises. Raises UserError for a split or a size that there is not."""
        _refuse_split(split)
        return self.make_batch(_whole("seed", seed), _whole("index", index), _whole("size", size, least=1), split)

    def evaluation(self, split: Split = "held-out", *, size: int = 64) -> Iterator[Batch]:
        """Give the fixed evaluation set as `BatchSource.evaluation` promises. Raises UserError as `batch` does."""
        _refuse_split(split)
        return self.make_evaluation(split, _whole("size", size, least=1))

    @abstractmethod
    def make_batch(self, seed: int, index: int, size: int, split: Split) -> Batch:
        """Give the batch that `batch` was asked for."""

    @abstractmethod
    def make_evaluation(self, split: Split, size: int) -> Iterator[Batch]:
        """Give the set that `evaluation` was asked for."""

    def probes(self) -> Iterator[Probe]:
        """Give a held-out set for each difficulty that the task knows of; none where it knows of none."""
        return iter(())

    def marks(self) -> Marks | None:
        """Say where answers and distractions stand in held-out rows; None where an answer stands nowhere."""
        return None

    def encode(self, text: str) -> list[int]:
        """Give the token ids of a text; raises UserError where a token is unknown."""
        return self.tokenizer.encode(text)

    def decode(self, ids: list[int]) -> str:
        """Give the text of token ids; raises UserError for an id that is none."""
        return self.tokenizer.decode(ids)

    def token_labels(self, ids: list[int]) -> list[str]:
        """Give one readable label a token, for the axes of a picture (a space or a newline is made visible)."""
        return [self.tokenizer.label(token) for token in ids]

    @abstractmethod
    def telling_example(self) -> tuple[list[int], int]:
        """Give the ids of a held-out row worth looking at, and the position whose prediction decides the task.

        What is right there is `telling_target`.
        """

    def telling_target(self) -> int:
        """Give the token that is right at the telling example's position: the one after it, where that is asked for."""
        ids, position = self.telling_example()
        return ids[position + 1]

    @abstractmethod
    def card(self) -> DataCard:
        """Give the data card."""


def _refuse_split(split: Split) -> None:
    if split not in get_args(Split):
        raise UserError(f"there is no split {split!r}: {near_name(str(split), get_args(Split))}")


def _whole(name: str, value: object, least: int | None = None) -> int:
    """Give a whole number of whatever type as int, so that the same number draws the same rows."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise UserError(f"{name} is {value!r}: give a whole number.") from None
    if least is not None and number < least:
        raise UserError(f"{name} is {number}: give {least} or more.")
    return number


def hash_of(*parts: object) -> str:
    """Give the sha256 of a JSON-able description, the same on every machine."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=asdict).encode()).hexdigest()
