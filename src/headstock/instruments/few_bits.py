"""What a model loses in fewer bits: loss and accuracy at each bit width, beside the model as it is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headstock.errors import UserError, near_name
from headstock.instruments.losses import token_scores
from headstock.instruments.passes import each, undisturbed
from headstock.instruments.quantising import Quantised, kinds_of, quantised
from headstock.instruments.rounding import Per, refuse_rounding
from headstock.instruments.row_means import RowMeans
from headstock.model.transformer import Transformer
from headstock.pictures.lines import lines
from headstock.pictures.numbers import count
from headstock.pictures.picture import Picture
from headstock.training.batch import Batch

BITS = (16, 8, 6, 5, 4)
_UNITS = {"loss": "nats per token", "accuracy": "accuracy, 0 to 1"}


@dataclass(frozen=True)
class Quality:
    """Loss and accuracy of one model over all targets that count."""

    loss: float
    """Nats a token."""
    accuracy: float
    """0 to 1: the target has the largest logit."""


@dataclass(frozen=True)
class Quantisation:
    """Loss and accuracy by bits, float64 (bit width,), of targets that count."""

    bits: tuple[int, ...]
    loss: Tensor
    """Nats a token."""
    accuracy: Tensor
    """0 to 1."""
    loss_error: Tensor
    """Standard error of the loss less the whole model's, pair by pair, rows being independent; not a number with fewer
    than two rows."""
    accuracy_error: Tensor
    """The same of the accuracy."""
    whole: Quality
    """The model as it is."""
    of: tuple[str, ...]
    """What was rounded."""
    per: str
    """What shares one scale: tensor or row."""
    targets: int
    """How many count."""

    @property
    def loss_change(self) -> Tensor:
        """By how many nats a token the loss is higher than the whole model's."""
        return self.loss - self.whole.loss

    @property
    def accuracy_change(self) -> Tensor:
        """The accuracy less the whole model's."""
        return self.accuracy - self.whole.accuracy

    def draw(self, what: str = "loss") -> Picture:
        """Draw loss or accuracy against bits, beside the model as it is. Raises UserError for anything else."""
        if what not in _UNITS:
            raise UserError(f"quality has no {what!r}: {near_name(what, _UNITS)}")
        values, errors = getattr(self, what), getattr(self, f"{what}_error")
        whole = getattr(self.whole, what)
        order = sorted(range(len(self.bits)), key=lambda place: self.bits[place])
        xs, ys = [float(self.bits[place]) for place in order], values[order].tolist()
        known = bool(errors.isfinite().all())
        edges = [(values + sign * errors)[order].tolist() for sign in (-2, 2)]
        return lines(
            {"": (xs, ys)},
            x="bits",
            y=_UNITS[what],
            title=f"{what.capitalize()} {ys[0]:.3g} with {count(int(xs[0]), 'bit')} of {' and '.join(self.of)}, "
            f"{whole:.3g} as it is",
            bands={"": (edges[0], edges[1])} if known else None,
            band="two standard errors of the change" if known else "",
            levels={"as it is": whole},
            caption=f"Absmax, one scale a {self.per}; {self.targets:,} targets.",
            name=f"quantisation-{what}",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


def quantisation(
    model: Transformer,
    batches: Iterable[Batch],
    bits: int | Sequence[int] = BITS,
    of: Quantised | Sequence[Quantised] = "attention logits",
    *,
    per: Per = "tensor",
) -> Quantisation:
    """Give loss and accuracy with attention logits, weights or activations rounded to so many bits: see `quantised`.

    Every target that counts is counted once; one pass for every bit width and batch, and one for the model as it is, in
    evaluation mode. Ye et al., "Differential Transformer" (2024), do so for attention logits, 16 to 4 bits. Raises
    UserError as `quantised` does, and where nothing is to be measured.
    """
    kinds, widths = kinds_of(of), tuple(bits) if isinstance(bits, Iterable) else (bits,)
    for width in widths:
        refuse_rounding(width, per)
    if not widths or len(set(widths)) < len(widths):
        raise UserError(f"bits={widths} names no bit width, or one twice: choose different ones, such as {BITS}.")
    whole = _Sums()
    by_width = {width: _Sums() for width in widths}
    given = list(each(batches))
    with undisturbed(model):
        plain = [token_scores(model, batch) for batch in given]
        for batch, (losses_bq, right_bq) in zip(given, plain, strict=True):
            whole.add(losses_bq, right_bq, batch.mask)
        if not whole.loss.count:
            raise UserError("no target of these batches counts, so none is lost: give batches whose mask has some.")
        for width, sums in by_width.items():
            with quantised(model, width, kinds, per=per):
                for batch, (losses_bq, right_bq) in zip(given, plain, strict=True):
                    fewer_bq, fewer_right_bq = token_scores(model, batch)
                    sums.add(fewer_bq - losses_bq, fewer_right_bq.double() - right_bq.double(), batch.mask)
    changes = [
        torch.tensor([getattr(getattr(sums, what), figure) for sums in by_width.values()], dtype=torch.float64)
        for what in ("loss", "accuracy")
        for figure in ("mean", "standard_error")
    ]
    quality = Quality(whole.loss.mean, whole.accuracy.mean)
    return Quantisation(
        bits=widths,
        loss=quality.loss + changes[0],
        accuracy=quality.accuracy + changes[2],
        loss_error=changes[1],
        accuracy_error=changes[3],
        whole=quality,
        of=kinds,
        per=per,
        targets=whole.loss.count,
    )


class _Sums:
    """Means of what tokens score, or change by."""

    def __init__(self) -> None:
        self.loss, self.accuracy = RowMeans(), RowMeans()

    def add(self, losses_bq: Tensor, right_bq: Tensor, mask_bq: Tensor) -> None:
        self.loss.add(losses_bq.sum(1), mask_bq.sum(1))
        self.accuracy.add(right_bq.sum(1), mask_bq.sum(1))
