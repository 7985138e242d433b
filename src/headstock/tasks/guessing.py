"""What guessing gives: the best that can be said of a row by someone who saw its words in a bag, on the scored set."""

from collections.abc import Sequence

import torch
from torch import Tensor

from headstock.tasks.drawn import Rows


def commonest(rows: Rows, among: Sequence[int]) -> float:
    """Give the accuracy of naming, at each target that counts, the commonest of some tokens up to there.

    Of those as common the one with the lowest id is named.
    """
    return _right(rows, among, counts_to_here(rows, among))


def as_common(rows: Rows, among: Sequence[int]) -> float:
    """Give the accuracy of naming that of some tokens which came as often, before, as the token that asks.

    With none as often the nearest; of those as near the commonest, and then the one with the lowest id, is named.
    """
    counts_bqv = counts_to_here(rows, among)
    same_bqk = rows.inputs[:, :, None] == rows.inputs[:, None, :]
    times_bq = same_bqk.tril(-1).sum(2)
    absent = counts_bqv == 0
    near_bqv = -(counts_bqv - times_bq[:, :, None]).abs() * rows.inputs.shape[1] + counts_bqv
    return _right(rows, among, near_bqv.masked_fill(absent, -(2**40)))


def counts_to_here(rows: Rows, among: Sequence[int]) -> Tensor:
    """Count each of some tokens up to every position, its own included: int64 (row, time, token)."""
    return (rows.inputs[:, :, None] == torch.tensor(among)).cumsum(1)


def _right(rows: Rows, among: Sequence[int], scores_bqv: Tensor) -> float:
    # The first of the highest; argmax leaves open which of equals it gives.
    places = torch.arange(scores_bqv.shape[2])
    highest_bqv = scores_bqv == scores_bqv.amax(2, keepdim=True)
    guesses_bq = torch.tensor(among)[torch.where(highest_bqv, places, len(places)).amin(2)]
    return float((guesses_bq == rows.targets)[rows.mask].double().mean())
