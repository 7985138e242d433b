"""How a model is trained, as a value: everything that decides the numbers which come out."""

import math
from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from headstock.errors import UserError
from headstock.settings import Settings


class TrainingConfig(Settings):
    """Every choice of a run beyond the model and the data; two runs with equal ones end with equal numbers.

    `piece_tokens` and `threads` change sums only by rounding, but rounding is part of a run, so they stand here.
    Raises UserError for an unknown key or a value outside its range.
    """

    steps: PositiveInt
    """Batches trained on."""
    batch_size: PositiveInt = 32
    """Rows a step."""
    seed: NonNegativeInt = 0
    """Fixes the order of the data, every dropout draw and, where the model is built for the run, its numbers."""

    lr: float = Field(default=1e-3, gt=0)
    """Learning rate, at its highest."""
    schedule: Literal["constant", "cosine"] = "constant"
    """How the rate goes on after it has risen."""
    warmup_steps: NonNegativeInt = 0
    """Steps over which the rate rises from 0 in a line, under either schedule."""
    final_lr_fraction: float = Field(default=0.1, ge=0, le=1)
    """Where the cosine ends, as a share of lr."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """AdamW's memory of gradients."""
    beta2: float = Field(default=0.95, ge=0, lt=1)
    """AdamW's memory of their squares."""
    eps: float = Field(default=1e-8, gt=0)
    """AdamW's addition to the root of those."""
    weight_decay: float = Field(default=0.1, ge=0)
    """On matrices alone: never on norms, biases or a mixer's vectors."""
    agreement_penalty: float = Field(default=0.0, ge=0)
    """Times the mean cosine of the two maps that a differential head subtracts, added to what is minimised."""
    clip: float | None = Field(default=None, gt=0)
    """Largest norm of the whole gradient; longer ones are scaled down to it. None leaves them as they are."""

    evaluate_every: PositiveInt = 50
    """Steps between two evaluations; a comparison chooses its own where this is not set."""
    piece_tokens: PositiveInt = 2048
    """A step's batch goes through the model in pieces of about so many tokens, small enough for the cache."""
    threads: PositiveInt = 1
    """Cores that one run computes on."""

    @model_validator(mode="after")
    def _parts_fit(self) -> "TrainingConfig":
        if self.warmup_steps >= self.steps:
            raise UserError(
                f"warmup_steps={self.warmup_steps} leaves none of the {self.steps} steps at full rate: choose fewer."
            )
        return self

    def lr_at(self, step: int) -> float:
        """Give the learning rate of a step, counted from 0."""
        if step < self.warmup_steps:
            return self.lr * (step + 1) / (self.warmup_steps + 1)
        if self.schedule == "constant":
            return self.lr
        done = (step - self.warmup_steps) / max(1, self.steps - 1 - self.warmup_steps)
        lowest = self.lr * self.final_lr_fraction
        return lowest + (self.lr - lowest) * (1 + math.cos(math.pi * done)) / 2

    def evaluates_after(self, steps_done: int) -> bool:
        """Say whether the model is evaluated when so many steps are done: every so often, and at the end."""
        return steps_done == self.steps or (steps_done > 0 and steps_done % self.evaluate_every == 0)
