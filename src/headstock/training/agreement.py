"""A price on two maps that agree: a head that subtracts one map from another like it says little.

What is minimised is then the mean cross entropy of the scored targets, in nats, and agreement_penalty times the
agreement: the cosine of the two maps' weights of a query, mean over layers, heads (pairs in differential), rows and
all queries that see several keys, scored or not. Of one key both maps are 1, whatever is learnt. 1 is full agreement,
0 is maps that look at different keys. Losses that are recorded leave it out; `head_redundancy` measures it.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from headstock.errors import UserError
from headstock.model.config import ModelConfig
from headstock.model.mixers import mixer_class
from headstock.model.transformer import Transformer
from headstock.training.config import TrainingConfig

MAPS = ("attn.hook_pattern_1", "attn.hook_pattern_2")


def refuse_penalty(model: ModelConfig, training: TrainingConfig) -> None:
    """Raise UserError where agreement costs something and the model has no two maps that could agree."""
    penalty = f"agreement_penalty={training.agreement_penalty:g}"
    if not training.agreement_penalty:
        return
    if not (model.n_layers and mixer_class(model.mixer).subtracts_maps(model)):
        raise UserError(
            f"{penalty} needs heads that subtract one map from another, which {model.variant} has not: leave it out, "
            f"or choose differential or differential2."
        )
    if model.window == 1:
        raise UserError(f"{penalty} needs queries that see several keys: choose a window of 2 or more.")


def hidden_and_agreement(model: Transformer, ids_bq: Tensor, **reading: object) -> tuple[Tensor, Tensor]:
    """Give what `model.hidden` gives, and each row's mean agreement (batch,) with its gradient; 0 for rows of a token.

    Both maps are needed, so averages are taken plainly: memory grows with the square of the length.
    """
    names = [f"blocks.{layer}.{name}" for layer in range(model.config.n_layers) for name in MAPS]
    with model.collecting(names) as found:
        x_bqm = model.hidden(ids_bq, **reading)  # type: ignore[arg-type]
    several = slice(1, None) if model.config.causal else slice(None)
    cosines = [
        F.cosine_similarity(found[first][:, :, several], found[second][:, :, several], dim=-1)
        for first, second in zip(names[::2], names[1::2], strict=True)
    ]
    of_rows_bn = torch.cat([cosine_bhq.flatten(1) for cosine_bhq in cosines], dim=1)
    if ids_bq.shape[1] == 1:
        return x_bqm, x_bqm.new_zeros(len(x_bqm))
    return x_bqm, of_rows_bn.mean(1)
