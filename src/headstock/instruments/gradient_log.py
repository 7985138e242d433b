"""Gradient norms of a model, followed through its training."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headstock.errors import UserError
from headstock.instruments.gradients import GradientNorms, gradient_norms
from headstock.model.transformer import Transformer
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture
from headstock.training.batch import Batch

if TYPE_CHECKING:
    from headstock.training.loop import Progress


@dataclass
class GradientLog:
    """Gradient norms over a training: given to `train` as its `after_step`, it measures every so many steps.

    What it measures is the gradient of one fixed batch, so that steps can be told from batches; the training itself
    is left as it is, and its seconds do not count what this takes.
    """

    model: Transformer
    batch: Batch
    every: int
    steps: list[int] = field(default_factory=list)
    """Steps done when each was measured."""
    norms: list[GradientNorms] = field(default_factory=list)

    def __call__(self, progress: "Progress") -> None:
        """Measure where the step is one of those."""
        if progress.steps_done % self.every == 0:
            self.steps.append(progress.steps_done)
            self.norms.append(gradient_norms(self.model, self.batch))

    def draw(self) -> Picture:
        """Draw the first, the middle and the last block's norm over steps. Raises UserError where none was measured."""
        if not self.norms:
            raise UserError(f"nothing was measured yet: train for {self.every} steps, or choose a smaller `every`.")
        last = len(self.norms[0].blocks) - 1
        return lines(
            {
                f"block {block}": (self.steps, [float(norms.blocks[block]) for norms in self.norms])
                for block in sorted({0, last // 2, last})
            },
            x="steps",
            y="norm of the loss's gradient",
            title=f"Gradients by block over {self.steps[-1]} steps",
            log_y=True,
            name="gradient-log",
        )

    def _repr_html_(self) -> str | None:
        """Give the picture; None, with which a notebook shows the log as text, before the first measurement."""
        return self.draw()._repr_html_() if self.norms else None


def gradients_in_training(model: Transformer, batch: Batch, *, every: int = 100) -> GradientLog:
    """Give a log that follows gradient norms while the model trains: `train(..., after_step=log)`.

    batch: whose gradients they are, always the same, so that steps can be told from batches. Raises UserError for an
    every below 1.
    """
    if every < 1 or every != int(every):
        raise UserError(f"every={every} divides no step: choose 1 or more.")
    return GradientLog(model, batch, every)
