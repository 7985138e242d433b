"""What a model expects after each token of a text, and what does come."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headstock.model.attention import wide


@dataclass(frozen=True)
class Prediction:
    """What is expected after one token."""

    top: tuple[tuple[str, float], ...]
    """The likeliest next tokens, as labels, with their probabilities."""
    probability: float | None
    """Of the token that does come next; None after the last one."""
    loss: float | None
    """Nats: −log of that probability, where it is below the numbers that there are too; None where it is not known."""
    rank: int | None
    """Its place among all tokens, from 1; tokens that are as likely do not push it back. None where none is known."""

    @property
    def right(self) -> bool | None:
        """Whether the likeliest token is the one that comes; None where no rank is known."""
        return None if self.rank is None else self.rank == 1


def predictions(logits_qv: Tensor, ids: Sequence[int], label: Callable[[int], str], top: int) -> tuple[Prediction, ...]:
    """Read predictions off the logits (time, vocabulary) after each of the ids."""
    # Logarithms, for the probability of what a sure model rules out is below the smallest number.
    logits_qv = wide(logits_qv.detach())
    logs_qv = logits_qv.log_softmax(-1)
    likeliest_qt = logits_qv.topk(min(top, logits_qv.shape[-1]), dim=-1).indices
    nexts_q1 = torch.tensor([*ids[1:], 0], device=logits_qv.device)[:, None]
    known_q = logs_qv.gather(-1, nexts_q1)[:, 0].tolist()
    ranks = 1 + (logits_qv > logits_qv.gather(-1, nexts_q1)).sum(-1)
    made = []
    rows = zip(likeliest_qt.tolist(), logs_qv.gather(-1, likeliest_qt).exp().tolist(), strict=True)
    for place, (tokens, shares) in enumerate(rows):
        listed = tuple((label(token), chance) for token, chance in zip(tokens, shares, strict=True))
        log = known_q[place]
        if place == len(ids) - 1:
            made.append(Prediction(listed, None, None, None))
        elif math.isnan(log):
            made.append(Prediction(listed, log, None, None))
        else:
            made.append(Prediction(listed, math.exp(log), -log, int(ranks[place])))
    return tuple(made)


def mean_loss(found: Sequence[Prediction]) -> float | None:
    """Give the mean loss of the tokens that come, in nats; None where there is none, NaN where one is not known."""
    known = [one for one in found if one.probability is not None]
    if not known:
        return None
    return math.fsum(math.nan if one.loss is None else one.loss for one in known) / len(known)
