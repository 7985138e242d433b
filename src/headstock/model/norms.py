"""Norms before, between or after sub-layers. Their statistics are float32, or float64 for a float64 model."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headstock.model.attention import wide


class LayerNorm(nn.LayerNorm):
    """Mean 0, variance 1, then a weight and a bias a number (Ba et al., 2016)."""

    def forward(self, x: Tensor) -> Tensor:
        """(…, m) → (…, m)"""
        if x.dtype in (torch.float32, torch.float64):
            return super().forward(x)
        return F.layer_norm(wide(x), self.normalized_shape, wide(self.weight), wide(self.bias), self.eps).to(x.dtype)


class RMSNorm(nn.Module):
    """Root mean square 1, then a weight a number (Zhang and Sennrich, 2019)."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """(…, m) → (…, m)"""
        return F.rms_norm(wide(x), self.weight.shape, wide(self.weight), self.eps).to(x.dtype)


def norm(kind: str, width: int, eps: float) -> nn.Module:
    """Give the norm named by ModelConfig.norm."""
    if kind == "layernorm":
        return LayerNorm(width, eps=eps)
    if kind == "rmsnorm":
        return RMSNorm(width, eps)
    return nn.Identity()
