"""The feed-forward sub-layer: each position alone, out to a wider space and back."""

import torch.nn.functional as F
from torch import nn

from headstock.model.config import ModelConfig
from headstock.model.hooks import UNHOOKED, PassHooks
from headstock.model.shapes import Residual


class FeedForward(nn.Module):
    """x → W_out f(W_in x), with f ReLU or GELU (exact, by erf)."""

    hook_names = ("hook_pre", "hook_post")

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.act = F.relu if config.feedforward == "relu" else F.gelu
        self.into = nn.Linear(config.d_model, config.d_ff, bias=config.feedforward_bias)
        self.out = nn.Linear(config.d_ff, config.d_model, bias=config.feedforward_bias)

    def forward(self, x_bqm: Residual, hooks: PassHooks = UNHOOKED) -> Residual:
        """Each position alone."""
        pre = hooks("mlp.hook_pre", self.into(x_bqm))
        return self.out(hooks("mlp.hook_post", self.act(pre)))  # type: ignore[no-any-return]


class SwiGLU(nn.Module):
    """x → W_out (SiLU(W_gate x) · W_in x) (Shazeer, 2020)."""

    hook_names = ("hook_pre", "hook_pre_linear", "hook_post")

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.d_model, config.d_ff, bias=config.feedforward_bias)
        self.into = nn.Linear(config.d_model, config.d_ff, bias=config.feedforward_bias)
        self.out = nn.Linear(config.d_ff, config.d_model, bias=config.feedforward_bias)

    def forward(self, x_bqm: Residual, hooks: PassHooks = UNHOOKED) -> Residual:
        """Each position alone."""
        pre = hooks("mlp.hook_pre", self.gate(x_bqm))
        pre_linear = hooks("mlp.hook_pre_linear", self.into(x_bqm))
        return self.out(hooks("mlp.hook_post", F.silu(pre) * pre_linear))  # type: ignore[no-any-return]


def feedforward(config: ModelConfig) -> FeedForward | SwiGLU:
    """Give the sub-layer named by ModelConfig.feedforward, which is not "none"."""
    return SwiGLU(config) if config.feedforward == "swiglu" else FeedForward(config)
