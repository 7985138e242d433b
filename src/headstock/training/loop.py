"""The training loop: a pure function of (model, data, config), which can stop after any step and go on later.

Knows nothing of tasks, tokenizers or comparisons. A batch is a function of (seed, step), so data need no state.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from headstock.model.dropout import DropoutDraws
from headstock.model.transformer import Transformer
from headstock.training.agreement import hidden_and_agreement, refuse_penalty
from headstock.training.batch import Batch, BatchSource
from headstock.training.config import TrainingConfig
from headstock.training.evaluation import evaluate
from headstock.training.loss import loss_sum, refuse_targets
from headstock.training.optimiser import adamw


class NonFiniteLoss(ArithmeticError):
    """Training came to a loss that is no number; the message says at which step."""


@dataclass
class Progress:
    """Where a run stands: what a stopped run needs, beside its model and optimiser, to go on."""

    steps_done: int = 0
    training_seconds: float = 0.0
    """Spent in steps alone, evaluations left out."""
    recent_losses: list[Tensor] = field(default_factory=list)
    """Of the steps since the last evaluation, unsynchronised."""
    curve: list[dict[str, float]] = field(default_factory=list)
    """One entry an evaluation: step, train_loss (mean nats a token since the last entry) and the held-out metrics."""

    @property
    def seconds_per_step(self) -> float:
        """Mean seconds a step."""
        return self.training_seconds / max(1, self.steps_done)


Watcher = Callable[[Progress], None]


def train(
    model: Transformer,
    source: BatchSource,
    config: TrainingConfig,
    *,
    optimiser: torch.optim.Optimizer | None = None,
    progress: Progress | None = None,
    before_evaluation: Watcher | None = None,
    after_step: Watcher | None = None,
) -> Progress:
    """Train the model in place from where `progress` stands to the last step; give the progress made.

    before_evaluation is called with every weight in place, so that it can be saved before evaluating can fail;
    after_step after every step, for showing progress or stopping by an exception: what is done then stays done.

    Raises NonFiniteLoss at the latest by the next evaluation, with nothing evaluated after it, and UserError for an
    agreement_penalty on a model without two maps.
    """
    refuse_penalty(model.config, config)
    optimiser = adamw(model, config) if optimiser is None else optimiser
    progress = Progress() if progress is None else progress

    def evaluate_if_due() -> None:
        done = progress.steps_done
        if config.evaluates_after(done) and (not progress.curve or progress.curve[-1]["step"] < done):
            train_loss = _mean_or_refuse(progress.recent_losses, done)
            if before_evaluation is not None:
                before_evaluation(progress)
            metrics = evaluate(model, source)
            if not math.isfinite(metrics["loss"]):
                raise NonFiniteLoss(f"the held-out loss is {metrics['loss']} after step {done}")
            progress.curve.append({"step": done, "train_loss": train_loss, **metrics})
            progress.recent_losses.clear()

    with threads_set_to(config.threads):
        evaluate_if_due()  # a run may have stopped between a step and the evaluation that follows it
        model.train()
        while progress.steps_done < config.steps:
            began = time.perf_counter()
            progress.recent_losses.append(take_step(model, source, config, optimiser, progress.steps_done))
            progress.steps_done += 1
            progress.training_seconds += time.perf_counter() - began
            evaluate_if_due()
            if after_step is not None:
                after_step(progress)
    model.eval()
    return progress


def take_step(
    model: Transformer, source: BatchSource, config: TrainingConfig, optimiser: torch.optim.Optimizer, step: int
) -> Tensor:
    """Take one step, counted from 0; give its mean loss in nats a token, on the model's device, unsynchronised."""
    for group in optimiser.param_groups:
        group["lr"] = config.lr_at(step)
    batch = source.batch(seed=config.seed, index=step, size=config.batch_size)
    loss = accumulate_gradients(model, batch, config, step)
    if config.clip is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return loss


def accumulate_gradients(model: Transformer, batch: Batch, config: TrainingConfig, step: int) -> Tensor:
    """Add the gradient of the batch's mean loss to the model's; give that loss, unsynchronised.

    With agreement_penalty there is its gradient too (training/agreement.py); the loss that is given leaves it out.

    The batch goes through in pieces, each forward and backward, so that what lies between stays in the cache. The
    unembedding runs only where a target counts.
    """
    device = model.embed.weight.device
    rows = max(1, config.piece_tokens // batch.inputs.shape[1])
    n_targets = max(1, int(batch.mask.sum()))  # on the host, where batches are made
    total = torch.zeros((), device=device)
    for start in range(0, len(batch.inputs), rows):
        piece = slice(start, start + rows)
        mask = batch.mask[piece]
        inputs = batch.inputs[piece].to(device, non_blocking=True)
        targets = batch.targets[piece][mask]
        refuse_targets(targets, model.config.vocab_size)
        targets = targets.to(device, non_blocking=True)
        draws = None
        if any((model.config.dropout_attention, model.config.dropout_residual, model.config.dropout_embedding)):
            draws = DropoutDraws(config.seed, step, range(start, start + len(inputs)), device)
        if config.agreement_penalty:
            x_bqm, agreement_b = hidden_and_agreement(model, inputs, draws=draws)
        else:
            x_bqm = model.hidden(inputs, draws=draws)
        x_nm = x_bqm.flatten(0, 1) if bool(mask.all()) else x_bqm[mask.to(device, non_blocking=True)]
        loss = loss_sum(model, x_nm, targets) / n_targets
        total += loss.detach()
        if config.agreement_penalty:
            loss = loss + config.agreement_penalty * agreement_b.sum() / len(batch.inputs)
        loss.backward()  # type: ignore[no-untyped-call]
    return total


def _mean_or_refuse(losses: list[Tensor], steps_done: int) -> float:
    """Give the mean of the last losses; raises NonFiniteLoss, naming the first step that has none."""
    if not losses:
        return math.nan
    values: list[float] = torch.stack(losses).tolist()
    for step, value in enumerate(values, start=steps_done - len(values) + 1):
        if not math.isfinite(value):
            raise NonFiniteLoss(f"the loss is {value} at step {step}")
    return sum(values) / len(values)


@contextmanager
def threads_set_to(count: int) -> Iterator[None]:
    """Let torch compute with so many threads inside, and with as many as before after."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
