"""What a model is trained on: a batch, and the protocol of whatever gives batches.

Knows nothing of tasks, text or tokenizers: everything that trains or evaluates sees only these two.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor

Split = Literal["train", "held-out"]


@dataclass(frozen=True)
class Batch:
    """Token ids, the ids that should come next, and which of those count.

    inputs: int64 (batch, time). targets: int64 (batch, time). mask: bool (batch, time), True where the target is
    trained on or scored; where it is False the target's value has no meaning.
    """

    inputs: Tensor
    targets: Tensor
    mask: Tensor


@dataclass(frozen=True)
class Probe:
    """A fixed held-out set of one difficulty, beside the one that a figure of merit is of: a depth, a length, an order.

    at: what it is, by the name of each difficulty, as in {"depth": 0.25, "length": 64}; every probe of a source has the
    same names. Nothing is ever trained on its rows.
    """

    at: Mapping[str, int | float | str]
    batches: Iterable[Batch]


class BatchSource(Protocol):
    """Gives batches as a pure function of its arguments; nothing is drawn, nothing is remembered between calls."""

    vocab_size: int
    context: int
    """The longest row of any batch, in tokens."""

    bytes_per_token: Tensor | None
    """float64 (vocab_size,): how many bytes of text each token stands for; None where the tokens are no text."""

    def batch(self, *, seed: int, index: int, size: int, split: Split = "train") -> Batch:
        """Give training batch `index` of the run seeded with `seed`: `size` rows, masked to what is trained on.

        With split="held-out" the rows come from the held-out part and the seed has no effect on what that part is.
        """
        ...

    def evaluation(self, split: Split = "held-out", *, size: int = 64) -> Iterator[Batch]:
        """Give the fixed evaluation set of a split, `size` rows at a time, masked to what is scored.

        The set depends on the source alone: no seed, and `size` changes only where it is cut. "train" is a sample
        of the training part about as large as the held-out set, scored in the same way.
        """
        ...
