"""Which length a memory has room for: measured bytes carried on to longer sequences, and closed formulas for the rest.

Measured is what one block holds at each length: at its peak, and between forward and backward. A polynomial of the
length, of the second degree at most and without a negative term, carries that on; where a mixer's memory is linear it
has no square. By formula come the parameters, their gradients, AdamW's two numbers for each, the residual, and the
loss, worked out as `headstock.training.loss` does it. What the longest length measured would have been foreseen as
from the shorter ones says how far to believe it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from headstock.errors import UserError
from headstock.instruments.cost.expected import memory_is_linear
from headstock.instruments.cost.result import PASSES, Cost, Pass
from headstock.model.accounting import Parameters, parameters
from headstock.model.config import ModelConfig
from headstock.training.loss import CHUNK_NUMBERS

Holder = Literal["mixing", "block", "model"]
"""mixing: from queries, keys and values on. block: with its input, its parameters and, in training, their gradients.
model: all blocks with embedding, unembedding and loss, and in training what AdamW remembers."""
HOLDERS: tuple[Holder, ...] = ("mixing", "block", "model")
FITTED, FEWEST_FITTED = 4, 3
"""Lengths, the longest ones, that are carried on."""
NUMBER = torch.float32.itemsize
FARTHEST = 2**40

Bytes = Callable[[int], float]


@dataclass(frozen=True)
class Fits:
    """The longest sequence whose pass a memory has room for, `batch` of them at once."""

    label: str
    holder: Holder
    step: Pass
    tokens: int
    """0 where not even one token fits."""
    longest_measured: int
    """Beyond it, tokens are foreseen."""
    bytes_foreseen: int
    """At `tokens` tokens, at least one."""
    off_by: float | None
    """What was foreseen of the longest length measured from the shorter ones, less what was measured, as a share of
    that; None where too few lengths were measured to say."""


def longest_that_fits(found: Cost, configs: Mapping[str, ModelConfig], memory_bytes: float) -> tuple[Fits, ...]:
    """Give for each variant that was measured, holder and pass the longest length that `memory_bytes` have room for.

    configs: of the whole models, by label, whose blocks are those that were measured; their context is left out of
    account, for it grows with the length. `found.batch` sequences are held at once: of a larger batch, training takes
    one piece after another. Variants whose mixer has a table of places count what the table grows by.

    Raises UserError where fewer than three lengths were measured of a variant, or block or mixing not at all.
    """
    if not memory_bytes > 0:
        raise UserError(f"the memory is {memory_bytes:g} bytes: give more than 0.")
    given = []
    lacking = [variant.label for variant in found.variants if variant.label not in configs]
    if lacking:
        raise UserError(f"configs has no {lacking[0]!r}: give the whole model of every variant that was measured.")
    for variant in found.variants:
        model = _Model(found, configs[variant.label], variant.label)
        for holder in HOLDERS:
            for step in PASSES:
                held = model.holds(holder, step)
                tokens = _longest(held, memory_bytes)
                longest = model.longest_measured
                off_by = model.off_by("mixing" if holder == "mixing" else "block", step)
                given.append(Fits(variant.label, holder, step, tokens, longest, round(held(max(1, tokens))), off_by))
    return tuple(given)


class _Model:
    """A variant's bytes as functions of the length."""

    def __init__(self, found: Cost, config: ModelConfig, label: str) -> None:
        self.found, self.config, self.label = found, config, label
        self.measured_context = max(found.lengths)
        measured = found.of(label, "block", "training")
        if len(measured) < FEWEST_FITTED or not found.of(label, "mixing", "training"):
            raise UserError(
                f"{label} was measured at {len(measured)} lengths: what fits is read off three or more, of the block "
                f"and of its mixing."
            )
        self.longest_measured = measured[-1].length

    def holds(self, holder: Holder, step: Pass) -> Bytes:
        """Give the function from tokens to bytes."""
        if holder == "mixing":
            return self._at_peak("mixing", step)
        block = self._at_peak("block", step)
        if holder == "block":
            times = 2 if step == "training" else 1
            return lambda n: block(n) + times * (NUMBER * self._parameters(n, 1).blocks + self._residual(n))
        if step == "forward":
            return lambda n: NUMBER * self._parameters(n).total + 2 * self._residual(n) + max(block(n), self._logits(n))
        kept, layers = self._carried("block", step, kept=True), self.config.n_layers
        unembedding = NUMBER * self.config.vocab_size * self.config.d_model

        def model(n: int) -> float:
            residual = self._residual(n)
            # The embedding's sum; what the final norm gives; the gradient of that, worked out with the loss.
            always = 4 * NUMBER * self._parameters(n).total + 3 * residual + unembedding
            in_loss = layers * kept(n) + self._logits(n)
            in_last_block = (layers - 1) * kept(n) + residual + block(n) if layers else 0
            return always + max(in_loss, in_last_block)

        return model

    def off_by(self, part: Literal["mixing", "block"], step: Pass) -> float | None:
        """Foresee the longest length measured from the shorter ones."""
        measured = self.found.of(self.label, part, step)[-FITTED:]
        *shorter, last = [(one.length, one.peak_bytes) for one in measured]
        if len(shorter) < (2 if self._is_linear(step) else 3):
            return None
        return polynomial(shorter, squared=not self._is_linear(step))(last[0]) / last[1] - 1

    def _carried(self, part: Literal["mixing", "block"], step: Pass, *, kept: bool = False) -> Bytes:
        measured = self.found.of(self.label, part, step)[-FITTED:]
        points = [(one.length, one.kept_bytes if kept else one.peak_bytes) for one in measured]
        return polynomial(points, squared=not self._is_linear(step))

    def _at_peak(self, part: Literal["mixing", "block"], step: Pass) -> Bytes:
        """Carry the peak on: in training, which goes forward first, never below that of the forward pass."""
        forward = self._carried(part, "forward")
        if step == "forward":
            return forward
        training = self._carried(part, "training")
        return lambda n: max(forward(n), training(n) + self._grown(n))

    def _is_linear(self, step: Pass) -> bool:
        return not self.found.plain and memory_is_linear(self.config, step)

    def _residual(self, n: int) -> int:
        return NUMBER * self.found.batch * n * self.config.d_model

    def _logits(self, n: int) -> int:
        """Count the bytes of the logits that are alive at once, and of their log-probabilities."""
        return 2 * NUMBER * min(CHUNK_NUMBERS, self.found.batch * n * self.config.vocab_size)

    def _parameters(self, n: int, layers: int | None = None) -> Parameters:
        layers = self.config.n_layers if layers is None else layers
        return parameters(self.config.model_copy(update={"context": n, "n_layers": layers}))

    def _grown(self, n: int) -> int:
        """Count the bytes by which the gradient of a table of places outgrows that of the measured one."""
        return NUMBER * (self._parameters(n, 1).blocks - self._parameters(self.measured_context, 1).blocks)


def polynomial(points: Sequence[tuple[int, int]], *, squared: bool) -> Bytes:
    """Fit bytes = c₀ + c₁ n + c₂ n², no c below 0, to (length, bytes), by least squares of shares.

    c₂ is 0 unless squared.
    """
    import numpy as np
    from scipy.optimize import nnls

    lengths, count = (np.array(values, dtype=float) for values in zip(*points, strict=True))
    powers = (0, 1, 2) if squared else (0, 1)
    largest = float(lengths.max())
    terms = np.stack([(lengths / largest) ** power for power in powers], axis=1)
    share = 1 / np.maximum(count, 1)
    found, _ = nnls(terms * share[:, None], count * share)
    coefficients = [float(c) / largest**power for c, power in zip(found, powers, strict=True)]
    return lambda n: sum(c * n**power for c, power in zip(coefficients, powers, strict=True))


def _longest(holds: Bytes, memory_bytes: float) -> int:
    """Give the largest number of tokens, 2⁴⁰ at most, that hold no more than the memory."""
    low, high = 0, FARTHEST
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle) <= memory_bytes:
            low = middle
        else:
            high = middle - 1
    return low
