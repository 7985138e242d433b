"""From sequences to token ids, and from logits back to values: all that is needed to use a compiled model.

Knows nothing of expressions, so a model that was loaded from a folder is read out by it too.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.transformer import Transformer
from headstock.programs.compiler.domain import Domain
from headstock.programs.values import Value, canonical, tokens_of_input

if TYPE_CHECKING:
    from headstock.programs.compiler.compiling import Built


@dataclass(frozen=True)
class Readout:
    """How a compiled model is given its input, and how its logits are understood."""

    domain: Domain
    start: int | None
    """The id that stands before every sequence, if the program needs one."""
    names: tuple[str, ...]
    """What each token id is shown as."""
    of_id: Mapping[int, Value]
    """The value that each id stands for as an output; empty where a logit is the number."""
    numbers: tuple[Value, ...]
    """For an output that is read as a number: all that it can be, in order."""

    @classmethod
    def of(cls, built: "Built") -> "Readout":
        """Give that of what the compiler made."""
        start = None if built.plan.start is None else len(built.domain.vocabulary)
        outputs = built.outputs
        return cls(built.domain, start, outputs.names, dict(outputs.of_id), outputs.numbers)

    def read(self, sequences: Sequence[str | Sequence[Any]]) -> list[list[Value]]:
        """Give sequences as lists of tokens. Raises UserError for one outside the domain."""
        if not isinstance(sequences, Iterable):
            raise UserError(f"the inputs are {sequences!r}: give a list of sequences.")
        read = [tokens_of_input(sequence) for sequence in sequences]
        for sequence in read:
            self.domain.refuse(sequence)
        return read

    def ids_of(self, sequences: Sequence[Sequence[Value]]) -> tuple[Tensor, Tensor | None]:
        """Give ids (batch, time) with the start token in front, and which of them are real where lengths differ."""
        place = {token: number for number, token in enumerate(self.domain.vocabulary)}
        front = [] if self.start is None else [self.start]
        rows = [front + [place[token] for token in sequence] for sequence in sequences]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows], dtype=torch.int64)
        if all(len(row) == longest for row in rows):
            return ids, None
        real = torch.tensor([[place < len(row) for place in range(longest)] for row in rows])
        return ids, real

    def values_of(self, model: Transformer, sequences: Sequence[str | Sequence[Any]]) -> list[list[Value]]:
        """Give what a model computes of each sequence, a value a position. Raises UserError outside the domain."""
        read = self.read(sequences)
        if not read:
            return []
        ids, real = self.ids_of(read)
        device = model.embed.weight.device
        with torch.no_grad():
            logits = model(ids.to(device), real=None if real is None else real.to(device)).cpu()
        skipped = int(self.start is not None)
        return [self.understood(logits[row, skipped : skipped + len(sequence)]) for row, sequence in enumerate(read)]

    def understood(self, logits_qv: Tensor) -> list[Value]:
        """Give the values that logits (position, vocabulary) stand for. Raises UserError where they are no numbers."""
        if not bool(torch.isfinite(logits_qv).all()):
            raise UserError(
                "the model's logits are not finite, so they stand for no value: its weights were changed since it was "
                "compiled; compile it again."
            )
        if self.numbers:
            return [self._nearest(float(number)) for number in logits_qv[:, -1]]
        ids = list(self.of_id)
        best = logits_qv[:, ids].argmax(-1)
        return [self.of_id[ids[int(place)]] for place in best]

    def _nearest(self, number: float) -> Value:
        place = bisect_left(self.numbers, number)
        near = self.numbers[max(0, place - 1) : place + 1]
        return canonical(min(near, key=lambda value: abs(Fraction(value) - Fraction(number))), "the model")


def refuse_dtype(program: str, domain: Domain, model: Transformer) -> None:
    """Raise UserError for a model in another dtype than its program was compiled for."""
    dtype = str(model.embed.weight.dtype).removeprefix("torch.")
    if dtype != domain.dtype:
        raise UserError(
            f"the weights of {program} are {dtype}, and it was compiled for {domain.dtype}, whose rounding its scales "
            f"are made for: convert the model back, or compile the program with dtype={dtype!r}."
        )
