"""What guessing gives: the best that can be said of a row by someone who saw its words in a bag, on the scored set."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headstock.tasks.drawn import Rows


@dataclass(frozen=True)
class Counts:
    """How often some tokens have come, up to every position of rows; of each row those alone that it has.

    tokens_bv: int64 (row, n), ascending, −1 in places without one. counts_bqv: int64 (row, time, n), 0 in those.
    """

    tokens_bv: Tensor
    counts_bqv: Tensor


def commonest(rows: Rows, among: Sequence[int]) -> float:
    """Give the accuracy of naming, at each target that counts, the commonest of some tokens up to there.

    Of those as common the one with the lowest id is named.
    """
    counts = counts_to_here(rows, among)
    return _right(rows, among, counts, counts.counts_bqv)


def as_common(rows: Rows, among: Sequence[int]) -> float:
    """Give the accuracy of naming that of some tokens which came as often, before, as the token that asks.

    With none as often the nearest; of those as near the commonest, and then the one with the lowest id, is named.
    """
    counts = counts_to_here(rows, among)
    same_bqk = rows.inputs[:, :, None] == rows.inputs[:, None, :]
    times_bq = same_bqk.tril(-1).sum(2)
    near_bqv = -(counts.counts_bqv - times_bq[:, :, None]).abs() * rows.inputs.shape[1] + counts.counts_bqv
    return _right(rows, among, counts, near_bqv)


def counts_to_here(rows: Rows, among: Sequence[int]) -> Counts:
    """Count each of some tokens up to every position, its own included."""
    counted_bq = torch.isin(rows.inputs, torch.tensor(among))
    sorted_bq = rows.inputs.masked_fill(~counted_bq, -1).sort(1).values
    again_bq = torch.nn.functional.pad(sorted_bq[:, 1:] == sorted_bq[:, :-1], (1, 0), value=False)
    tokens_bv = sorted_bq.masked_fill(again_bq, -1)
    there_bqv = (rows.inputs[:, :, None] == tokens_bv[:, None, :]) & (tokens_bv >= 0)[:, None, :]
    return Counts(tokens_bv, there_bqv.cumsum(1))


def _right(rows: Rows, among: Sequence[int], counts: Counts, scores_bqv: Tensor) -> float:
    # The first of the highest; argmax leaves open which of equals it gives. With none shown yet, the first of all.
    scores_bqv = scores_bqv.masked_fill(counts.counts_bqv == 0, -(2**40))
    places = torch.arange(scores_bqv.shape[2])
    highest_bqv = scores_bqv == scores_bqv.amax(2, keepdim=True)
    best_bq = torch.where(highest_bqv, places, len(places) - 1).amin(2)
    guesses_bq = counts.tokens_bv.gather(1, best_bq)
    guesses_bq = torch.where((counts.counts_bqv > 0).any(2), guesses_bq, min(among))
    return float((guesses_bq == rows.targets)[rows.mask].double().mean())
