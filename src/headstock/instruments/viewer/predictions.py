"""What a model expects after each token of a text, and what does come."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Prediction:
    """What is expected after one token."""

    top: tuple[tuple[str, float], ...]
    """The likeliest next tokens, as labels, with their probabilities."""
    probability: float | None
    """Of the token that does come next; None after the last one."""
    rank: int | None
    """Its place among all tokens, from 1; tokens that are as likely do not push it back. None where none is known."""

    @property
    def right(self) -> bool | None:
        """Whether the likeliest token is the one that comes; None where no rank is known."""
        return None if self.rank is None else self.rank == 1


def predictions(logits_qv: Tensor, ids: Sequence[int], label: Callable[[int], str], top: int) -> tuple[Prediction, ...]:
    """Read predictions off the logits (time, vocabulary) after each of the ids."""
    shares_qv = logits_qv.detach().float().softmax(-1)
    likeliest = shares_qv.topk(min(top, shares_qv.shape[-1]), dim=-1)
    nexts = torch.tensor([*ids[1:], 0], device=shares_qv.device)[:, None]
    known = shares_qv.gather(-1, nexts)
    ranks = 1 + (shares_qv > known).sum(-1)
    made = []
    rows = zip(likeliest.indices.tolist(), likeliest.values.tolist(), known[:, 0].tolist(), ranks.tolist(), strict=True)
    for place, (tokens, shares, share, rank) in enumerate(rows):
        listed = tuple((label(token), chance) for token, chance in zip(tokens, shares, strict=True))
        last = place == len(ids) - 1
        made.append(Prediction(listed, None if last else share, None if last or math.isnan(share) else rank))
    return tuple(made)


def mean_loss(found: Sequence[Prediction]) -> float | None:
    """Give the mean of −log probability of the tokens that come, in nats; None where there is none."""
    shares = [one.probability for one in found if one.probability is not None]
    if not shares:
        return None
    return math.fsum(math.inf if share == 0 else -math.log(share) for share in shares) / len(shares)
