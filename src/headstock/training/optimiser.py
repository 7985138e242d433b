"""AdamW with decay on matrices alone."""

import torch
from torch import nn

from headstock.training.config import TrainingConfig


def adamw(model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """Give AdamW (Loshchilov and Hutter, 2019) over the model's parameters, decaying those with two axes or more.

    A norm's weight, a bias or a mixer's vector (such as the λ's of differential attention) has one and never decays.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=config.lr,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        fused=True,
    )
