"""Seeing that a model cannot look ahead, before anything it scores is believed."""

import torch

from headstock.errors import UserError
from headstock.model.config import ModelConfig
from headstock.model.shapes import Ids
from headstock.model.transformer import Transformer


def refuse_bidirectional(config: ModelConfig) -> None:
    """Raise UserError where a model sees all tokens by its own choice: foretelling them would prove nothing."""
    if not config.causal:
        raise UserError(
            "causal=false sees the very tokens that it would be asked to foretell: leave it out to train a model or "
            "to score it."
        )


@torch.no_grad()
def refuse_looking_ahead(model: Transformer, ids_bq: Ids) -> None:
    """Raise UserError where another last token changes what the model makes of the tokens before it, or would.

    Two forward passes; a model of one token or one word is let pass, for it has nothing to look at.
    """
    refuse_bidirectional(model.config)
    vocabulary = model.config.vocab_size
    if vocabulary < 2 or ids_bq.shape[1] < 2:
        return
    another = ids_bq.clone()
    another[:, -1] = (another[:, -1] + 1) % vocabulary
    was_training = model.training
    model.eval()
    try:
        before, after = (model.hidden(ids)[:, :-1] for ids in (ids_bq, another))
    finally:
        model.train(was_training)
    if not torch.allclose(before, after, rtol=1e-3, atol=1e-4, equal_nan=True):
        raise UserError(
            f"{model.config.mixer} looks ahead: another last token changes what comes before it; give hidden keys a "
            f"weight of exactly 0, as masked_softmax does."
        )
