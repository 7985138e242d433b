"""What is asked of logits, as one number: the logit of one answer less that of another, or a function of one's own."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.row_means import as_numbers

Token: TypeAlias = int | Sequence[int] | Tensor
"""A token id, or one a row."""
Metric: TypeAlias = Callable[[Tensor], Tensor | float] | tuple[Token, Token]
"""logits (batch, time, vocabulary) → one number, or two answers (right, wrong): see `logit_difference`."""


def logit_difference(right: Token, wrong: Token, *, position: Token = -1) -> Callable[[Tensor], Tensor]:
    """Give the metric logit of `right` less logit of `wrong` at a position, mean over rows; each one, or one a row."""

    def difference(logits_bqv: Tensor) -> Tensor:
        rows = torch.arange(len(logits_bqv), device=logits_bqv.device)
        at, one, other = (torch.as_tensor(x, device=logits_bqv.device) for x in (position, right, wrong))
        for what, given in (("answer", one), ("answer", other), ("position", at)):
            if given.dtype not in (torch.int64, torch.int32) or given.shape not in ((), rows.shape):
                raise UserError(f"give one {what}, an integer, or one for each of the {len(rows)} rows.")
        vocabulary, time = logits_bqv.shape[2], logits_bqv.shape[1]
        ends = (("answer", one, 0, vocabulary), ("answer", other, 0, vocabulary), ("position", at, -time, time))
        for what, given, low, high in ends:
            if bool(((given < low) | (given >= high)).any()):
                raise UserError(f"there is no {what} {given.tolist()}: choose from {low} to {high - 1}.")
        return (logits_bqv[rows, at, one] - logits_bqv[rows, at, other]).mean()

    return difference


def measuring(metric: Metric) -> Callable[[Tensor], float]:
    """Give what measures a pass; it raises UserError where it does not come to one finite number."""
    measure = metric if callable(metric) else None
    if measure is None:
        if not (isinstance(metric, tuple) and len(metric) == 2):
            raise UserError("the metric is neither a function of the logits nor two answers: give (right, wrong) ids.")
        measure = logit_difference(*metric)

    def measured(logits_bqv: Tensor) -> float:
        given = as_numbers(measure(logits_bqv))
        if given.numel() != 1 or not bool(given.isfinite()):
            raise UserError(
                f"the metric gave {given.tolist() if given.numel() == 1 else f'shape {tuple(given.shape)}'}: it has to "
                f"make one finite number of the logits (batch, time, vocabulary)."
            )
        return float(given)

    return measured
