"""Where in a sequence a model loses: by position, and on what has stood before in the context against the rest."""

import math
from collections.abc import Collection, Iterable, Sequence, Sized
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headstock.errors import UserError
from headstock.instruments.passes import each, undisturbed
from headstock.instruments.row_means import RowMeans
from headstock.model.attention import wide
from headstock.model.transformer import Transformer
from headstock.pictures.bars import bars
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture
from headstock.training.batch import Batch
from headstock.training.loss import CHUNK_NUMBERS, refuse_targets


def token_losses(model: Transformer, batch: Batch) -> Tensor:
    """Give the cross entropy of each target in nats, float64 (batch, time) on the CPU; 0 where it does not count.

    The model is taken as it is: put it at rest before.
    """
    return token_scores(model, batch)[0]


def token_scores(model: Transformer, batch: Batch) -> tuple[Tensor, Tensor]:
    """Give what `token_losses` gives, and whether each target has the largest logit, bool; False where none counts."""
    device = model.embed.weight.device
    mask = batch.mask.to(device)
    x_nm, targets_n = model.hidden(batch.inputs.to(device))[mask], batch.targets.to(device)[mask]
    refuse_targets(batch.targets[batch.mask], model.config.vocab_size)
    rows = max(1, CHUNK_NUMBERS // model.config.vocab_size)
    losses_bq = torch.zeros(batch.mask.shape, dtype=torch.float64)
    right_bq = torch.zeros(batch.mask.shape, dtype=torch.bool)
    if len(x_nm):
        losses, rights = [], []
        for x_cm, targets_c in zip(torch.split(x_nm, rows), torch.split(targets_n, rows), strict=True):
            logits_cv = wide(model.logits(x_cm))
            losses.append(cross_entropy(logits_cv, targets_c, reduction="none"))
            rights.append(logits_cv.argmax(-1) == targets_c)
        losses_bq[batch.mask.cpu()] = torch.cat(losses).double().cpu()
        right_bq[batch.mask.cpu()] = torch.cat(rights).cpu()
    return losses_bq, right_bq


@dataclass(frozen=True)
class LossByPosition:
    """The loss of the token after each position; a longer context should help, so it should fall."""

    mean: Tensor
    """float64 (time,), nats a token; not a number where no target counts."""
    standard_error: Tensor
    """float64 (time,), of that mean, rows being independent; not a number below two targets."""
    count: Tensor
    """int64 (time,): targets that count."""

    @property
    def overall(self) -> float:
        """The mean over all tokens, in nats."""
        known = self.count > 0
        total = (self.mean[known] * self.count[known]).sum().item()
        return total / int(self.count.sum()) if bool(known.any()) else math.nan

    def draw(self) -> Picture:
        """Draw it with a band of two standard errors."""
        places = list(range(len(self.mean)))
        spread = 2 * self.standard_error.nan_to_num(0.0)
        return lines(
            {"": (places, self.mean.tolist())},
            x="position",
            y="nats per token",
            title="Loss by position",
            bands={"": ((self.mean - spread).tolist(), (self.mean + spread).tolist())},
            band="two standard errors",
            name="loss-by-position",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


def loss_by_position(model: Transformer, batches: Iterable[Batch]) -> LossByPosition:
    """Give the mean loss at each position of the batches' rows, counted from 0 where a row begins.

    Every target that counts is counted once; sums run in float64. Raises UserError where none counts.
    """
    count = torch.zeros(0, dtype=torch.int64)
    mean = apart = torch.zeros(0, dtype=torch.float64)
    with undisturbed(model):
        for batch in each(batches):
            losses_bq, mask = token_losses(model, batch), batch.mask.cpu()
            here = mask.sum(0)
            missing = max(0, len(here) - len(count))
            count, mean, apart = (torch.cat([x, x.new_zeros(missing)]) for x in (count, mean, apart))
            here = torch.cat([here, here.new_zeros(len(count) - len(here))])
            mean_here, apart_here = torch.zeros_like(mean), torch.zeros_like(apart)
            width = losses_bq.shape[1]
            mean_here[:width] = losses_bq.sum(0) / here[:width].clamp(min=1)
            apart_here[:width] = ((losses_bq - mean_here[:width]).square() * mask).sum(0)
            # Means and squares of two samples join without a difference of large sums (Chan et al., 1979).
            both, further = (count + here).clamp(min=1), mean_here - mean
            apart = apart + apart_here + further.square() * count * here / both
            mean = mean + further * here / both
            count = count + here
    if not bool(count.any()):
        raise UserError("no target of these batches counts, so there is no loss: give batches whose mask has some.")
    mean = mean.masked_fill(count == 0, math.nan)
    error = (apart / (count - 1).clamp(min=1) / count.clamp(min=1)).sqrt().masked_fill(count < 2, math.nan)
    return LossByPosition(mean, error, count)


@dataclass(frozen=True)
class MeanLoss:
    """Nats a token."""

    mean: float
    """Not a number where there are no tokens."""
    standard_error: float
    """Rows being independent, tokens of one row not; not a number where fewer than two rows have tokens."""
    count: int
    """Tokens."""


@dataclass(frozen=True)
class LossOnRepeats:
    """The loss on tokens that end an n-gram which stood before in the context, and on all others."""

    n: int
    repeated: MeanLoss
    others: MeanLoss
    everything: MeanLoss

    @property
    def share(self) -> float:
        """The part of the tokens that are repeated, 0 to 1."""
        return self.repeated.count / self.everything.count

    def draw(self) -> Picture:
        """Draw both as bars, with two standard errors."""
        gram = "token" if self.n == 1 else f"{self.n}-gram"
        named = {f"{gram} seen before": self.repeated, "other tokens": self.others}
        values = {
            f"{name} ({one.count:,})": (one.mean, one.mean - 2 * one.standard_error, one.mean + 2 * one.standard_error)
            for name, one in named.items()
        }
        return bars(
            values,
            unit="nats per token",
            title=f"Loss on tokens whose {gram} stood before in the context",
            interval="two standard errors",
            name="loss-on-repeats",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


def loss_on_repeats(
    model: Transformer, batches: Iterable[Batch], n: int = 2, *, but_not: Collection[Sequence[int]] = ()
) -> LossOnRepeats:
    """Give the loss on targets that a model can copy from its context, and on the others.

    A target is repeated where the n−1 tokens before it and itself stood side by side among the inputs up to there:
    with n=2, [A][B] … [A] → [B], "associative recall hits" (Arora et al., "Zoology", 2023). n=1 asks for the token
    alone. but_not: n-grams that count with the others although they stood before; Zoology leaves out those that are
    frequent in training, which a model knows by heart. Every target that counts is counted once; the context of a row
    begins with it.

    Raises UserError for n below 1, for what is no n-gram, and where no target counts.
    """
    if n < 1:
        raise UserError(f"n={n} makes no n-gram: choose 1 for the token alone, 2 for it and the one before it.")
    for gram in but_not:
        if not isinstance(gram, Sized) or len(gram) != n:
            raise UserError(f"but_not holds {gram}, which is no {n}-gram: give {n} ids each.")
    repeated, others, everything = RowMeans(), RowMeans(), RowMeans()
    with undisturbed(model):
        for batch in each(batches):
            losses_bq, mask = token_losses(model, batch), batch.mask.cpu()
            seen_bq = repeats(batch.inputs.cpu(), batch.targets.cpu(), n, but_not) & mask
            for means, these in ((repeated, seen_bq), (others, mask & ~seen_bq), (everything, mask)):
                means.add((losses_bq * these).sum(1), these.sum(1))
    if not everything.count:
        raise UserError("no target of these batches counts, so there is no loss: give batches whose mask has some.")
    return LossOnRepeats(n, *(MeanLoss(x.mean, x.standard_error, x.count) for x in (repeated, others, everything)))


def repeats(inputs_bq: Tensor, targets_bq: Tensor, n: int, but_not: Collection[Sequence[int]] = ()) -> Tensor:
    """bool (batch, time): whether the n-gram that each target ends stood whole among the inputs up to its position."""
    batch, time = inputs_bq.shape
    if time < n or not batch:
        return torch.zeros(batch, time, dtype=torch.bool)
    windows_bgn = inputs_bq.unfold(1, n, 1)  # n-gram g ends at position g + n − 1
    ended_bgn = torch.cat([windows_bgn[..., 1:], targets_bq[:, n - 1 :, None]], dim=-1)
    # An n-gram whose first token lies at the row's very start ends at position n − 2: nothing stood before it.
    row = torch.arange(batch)[:, None, None].expand(-1, windows_bgn.shape[1], 1)
    keys = torch.cat([torch.cat([row, grams], dim=-1).flatten(0, 1) for grams in (windows_bgn, ended_bgn)])
    _, number = torch.unique(keys, dim=0, return_inverse=True)
    stood, asked = number.chunk(2)
    ends = torch.arange(n - 1, time).expand(batch, -1).flatten()
    first_end = torch.full((int(number.max()) + 1,), time).scatter_reduce(0, stood, ends, "amin")
    seen = (first_end[asked] <= ends).view(batch, -1)
    for gram in but_not:
        seen &= (ended_bgn != torch.tensor(list(gram))).any(-1)
    return torch.cat([torch.zeros(batch, n - 1, dtype=torch.bool), seen], dim=1)
