"""How much of the second map a differential model subtracts, followed through its training."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.lambdas import lambda_values
from headstock.model.transformer import Transformer
from headstock.pictures.lines import lines
from headstock.pictures.numbers import small
from headstock.pictures.picture import Picture

if TYPE_CHECKING:
    from headstock.training.loop import Progress

QUARTILES = (0.25, 0.5, 0.75)
MOST_LINES = 6
"""Layers in one picture; of more, some are chosen evenly, the first and the last among them."""


@dataclass
class LambdaLog:
    """λ over a training: given to `train` as its `before_evaluation`, it looks at each evaluation.

    As `after_step` it looks every so many steps, or with every=None after each. The training is left as it is.
    """

    model: Transformer
    ids: Tensor | None
    real: Tensor | None
    every: int | None
    at_start: Tensor
    """(layer,): λ, or its mean, when the log was made."""
    initial: Tensor | None
    """(layer,): λ_init of version 1; None in version 2."""
    steps: list[int] = field(default_factory=list)
    """Steps done at each look."""
    means: list[Tensor] = field(default_factory=list)
    """(layer,) a look: λ of version 1, the mean over real tokens and heads of version 2."""
    spreads: list[Tensor] = field(default_factory=list)
    """(layer, 3) a look: version 2's quartiles over real tokens and heads; none in version 1, where there is one λ."""

    def __call__(self, progress: "Progress") -> None:
        """Look where the step is one of those; twice at one step is once."""
        done = progress.steps_done
        if (self.every is None or done % self.every == 0) and (not self.steps or self.steps[-1] != done):
            now = lambda_values(self.model, self.ids, real=self.real)
            self.steps.append(done)
            self.means.append(now.by_layer)
            if now.by_token is not None:
                levels = torch.tensor(QUARTILES, dtype=now.by_token.dtype)
                self.spreads.append(now.by_token.flatten(1).nanquantile(levels, dim=1).T)

    @property
    def by_layer(self) -> Tensor:
        """(look, layer): λ, or its mean over real tokens and heads. Raises UserError before the first look."""
        self._refuse_nothing()
        return torch.stack(self.means)

    @property
    def quartiles(self) -> Tensor | None:
        """(look, layer, 3): at 25, 50 and 75 % of real tokens and heads; None in version 1."""
        return torch.stack(self.spreads) if self.spreads else None

    def draw(self) -> Picture:
        """Draw λ over steps, a line a layer, in version 2 with the band that half of tokens and heads lie in."""
        by_layer, quartiles = self.by_layer, self.quartiles
        last = by_layer.shape[1] - 1
        shown = sorted({round(place * last / (MOST_LINES - 1)) for place in range(MOST_LINES)})
        if last < MOST_LINES:
            shown = list(range(last + 1))
        bands = {}
        if quartiles is not None:
            bands = {
                f"layer {layer}": (quartiles[:, layer, 0].tolist(), quartiles[:, layer, 2].tolist()) for layer in shown
            }
        began = self.at_start if self.initial is None else self.initial
        return lines(
            {f"layer {layer}": (self.steps, by_layer[:, layer].tolist()) for layer in shown},
            x="steps",
            y="λ",
            title=f"λ after {self.steps[-1]} steps: {_ends(by_layer[-1])}",
            bands=bands,
            band="25 to 75 % of tokens and heads" if bands else "",
            caption=f"{'At the start' if self.initial is None else 'λ_init'}: {_ends(began)}.",
            name="lambda-log",
        )

    def _repr_html_(self) -> str | None:
        """Give the picture; None, with which a notebook shows the log as text, before the first look."""
        return self.draw()._repr_html_() if self.steps else None

    def _refuse_nothing(self) -> None:
        if not self.steps:
            often = "until the first evaluation" if self.every is None else f"for {self.every} steps"
            raise UserError(f"no λ was looked at yet: train {often}, with this log as before_evaluation or after_step.")


def lambdas_in_training(
    model: Transformer, ids: Tensor | None = None, *, real: Tensor | None = None, every: int | None = None
) -> LambdaLog:
    """Give a log that follows λ while the model trains: `train(..., before_evaluation=log)`.

    ids: what differential2 reads, (batch, time), always the same, so that steps can be told from texts; version 1 needs
    none. real: as `lambda_values` takes it. every: only at steps that it divides. Does λ go to 0, as readers of Ye et
    al., "Differential Transformer" (2024), asked? Raises UserError as `lambda_values` does, and for every below 1.
    """
    if every is not None and (every < 1 or every != int(every)):
        raise UserError(f"every={every} divides no step: choose 1 or more, or leave it out.")
    now = lambda_values(model, ids, real=real)
    return LambdaLog(model, ids, real, every, at_start=now.by_layer, initial=now.initial)


def _ends(values: Tensor) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{small(low, 3)} to {small(high, 3)}" if high > low else small(low, 3)
