"""Scoring a model on a fixed set: every scored target once, so no figure depends on how the set is cut."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headstock.model.attention import wide
from headstock.model.transformer import Transformer
from headstock.training.batch import Batch, BatchSource, Split
from headstock.training.loss import CHUNK_NUMBERS, refuse_targets


def evaluate(model: Transformer, source: BatchSource, split: Split = "held-out", *, size: int = 64) -> dict[str, float]:
    """Give the metrics of a split, as `score` does; bits_per_byte for text."""
    return score(model, source.evaluation(split, size=size), source.bytes_per_token)


@torch.no_grad()
def score(model: Transformer, batches: Iterable[Batch], bytes_per_token: Tensor | None = None) -> dict[str, float]:
    """Give loss (nats a token), perplexity, accuracy (0 to 1) and, where tokens stand for bytes, bits_per_byte.

    Sums run in float64 on the host. The model is put in evaluation mode and left as it was.
    """
    device = model.embed.weight.device
    nats, right, tokens, text_bytes = 0.0, 0, 0, 0.0
    was_training = model.training
    model.eval()
    try:
        for batch in batches:
            losses_n, right_n = _score(model, batch, device)
            nats += losses_n.double().sum().item()
            right += int(right_n.sum())
            tokens += len(losses_n)
            if bytes_per_token is not None:
                text_bytes += bytes_per_token[batch.targets[batch.mask]].sum().item()
    finally:
        model.train(was_training)
    loss = nats / tokens
    metrics = {"loss": loss, "perplexity": math.exp(min(loss, 700.0)), "accuracy": right / tokens}
    if bytes_per_token is not None:
        metrics["bits_per_byte"] = nats / math.log(2) / text_bytes
    return metrics


def _score(model: Transformer, batch: Batch, device: torch.device) -> tuple[Tensor, Tensor]:
    """Give the loss in nats and whether the likeliest token is right, one of each a scored target."""
    mask = batch.mask.to(device)
    x_nm = model.hidden(batch.inputs.to(device))[mask]
    targets_n = batch.targets.to(device)[mask]
    refuse_targets(batch.targets[batch.mask], model.config.vocab_size)
    losses, rights = [], []
    rows = max(1, CHUNK_NUMBERS // model.config.vocab_size)
    for start in range(0, len(x_nm), rows):
        logits_cv, targets_c = model.logits(x_nm[start : start + rows]), targets_n[start : start + rows]
        losses.append(cross_entropy(wide(logits_cv), targets_c, reduction="none"))
        rights.append(logits_cv.argmax(-1) == targets_c)
    return torch.cat(losses), torch.cat(rights)
