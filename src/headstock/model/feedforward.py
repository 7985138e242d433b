"""The feed-forward sub-layer: each position alone, out to a wider space and back."""

import torch.nn.functional as F
from torch import nn

from headstock.model.config import ModelConfig
from headstock.model.shapes import Residual


class FeedForward(nn.Module):
    """x → W_out f(W_in x), with f ReLU or GELU (exact, by erf)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.act = F.relu if config.feedforward == "relu" else F.gelu
        self.into = nn.Linear(config.d_model, config.d_ff, bias=config.feedforward_bias)
        self.out = nn.Linear(config.d_ff, config.d_model, bias=config.feedforward_bias)

    def forward(self, x_bqm: Residual) -> Residual:
        """Each position alone."""
        return self.out(self.act(self.into(x_bqm)))  # type: ignore[no-any-return]


class SwiGLU(nn.Module):
    """x → W_out (SiLU(W_gate x) · W_in x) (Shazeer, 2020)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.d_model, config.d_ff, bias=config.feedforward_bias)
        self.into = nn.Linear(config.d_model, config.d_ff, bias=config.feedforward_bias)
        self.out = nn.Linear(config.d_ff, config.d_model, bias=config.feedforward_bias)

    def forward(self, x_bqm: Residual) -> Residual:
        """Each position alone."""
        return self.out(F.silu(self.gate(x_bqm)) * self.into(x_bqm))  # type: ignore[no-any-return]


def feedforward(config: ModelConfig) -> nn.Module:
    """Give the sub-layer named by ModelConfig.feedforward, which is not "none"."""
    return SwiGLU(config) if config.feedforward == "swiglu" else FeedForward(config)
