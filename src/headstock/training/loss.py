"""Cross entropy of the next token, straight from the residual: logits of a few rows at a time, never all of them."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from headstock.errors import UserError
from headstock.model.attention import wide
from headstock.model.transformer import Transformer

CHUNK_NUMBERS = 1 << 18
"""Logits alive at once: 1 MiB in float32, which a core's own cache holds."""


def plain_loss_sum(model: Transformer, x_nm: Tensor, targets_n: Tensor) -> Tensor:
    """Give the summed cross entropy in nats, every logit in memory: the truth that `loss_sum` is held to."""
    return F.cross_entropy(wide(model.logits(x_nm)), targets_n, reduction="sum")


def loss_sum(model: Transformer, x_nm: Tensor, targets_n: Tensor) -> Tensor:
    """Give the summed cross entropy, a scalar in nats, of the final residual (row, model) against targets (row,).

    Gradients are worked out with the loss, chunk by chunk, so a large vocabulary costs no memory. float32 inside, or
    float64 for a float64 model.
    """
    weight, bias = (model.embed.weight, None) if model.unembed is None else (model.unembed.weight, model.unembed.bias)
    result: Tensor = _ChunkedLoss.apply(x_nm, weight, bias, targets_n)  # type: ignore[no-untyped-call]
    return result


def refuse_targets(targets_n: Tensor, vocab_size: int) -> None:
    """Raise UserError where a target that counts is no token: torch would leave −100 out, or read past the end."""
    if targets_n.numel():
        low, high = (int(end) for end in targets_n.aminmax())
        if low < 0 or high >= vocab_size:
            raise UserError(
                f"a target that counts is {low if low < 0 else high}, and ids go from 0 to {vocab_size - 1}: let the "
                f"mask be False where there is no target."
            )


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_nm: Tensor, weight_vm: Tensor, bias_v: Tensor | None, targets_n: Tensor) -> Tensor:
        exact = torch.float64 if x_nm.dtype == torch.float64 else torch.float32
        training = any(ctx.needs_input_grad)
        total = x_nm.new_zeros((), dtype=exact)
        d_x, d_weight = (torch.empty_like(x_nm), torch.zeros_like(weight_vm)) if training else (None, None)
        d_bias = None if bias_v is None else torch.zeros_like(bias_v)
        rows = max(1, CHUNK_NUMBERS // weight_vm.shape[0])
        for start in range(0, len(x_nm), rows):
            x_cm, targets_c = x_nm[start : start + rows], targets_n[start : start + rows, None]
            logits_cv = F.linear(x_cm, weight_vm, bias_v).to(exact)
            log_p_cv = logits_cv.log_softmax(-1)
            total -= log_p_cv.gather(1, targets_c).sum()
            if d_x is not None and d_weight is not None:
                d_logits = log_p_cv.exp_()  # p − [v is the target]
                d_logits.scatter_add_(1, targets_c, torch.full_like(targets_c, -1, dtype=exact))
                d_logits = d_logits.to(x_nm.dtype)
                torch.mm(d_logits, weight_vm, out=d_x[start : start + rows])
                d_weight.addmm_(d_logits.T, x_cm)
                if d_bias is not None:
                    d_bias += d_logits.sum(0)
        ctx.gradients = d_x, d_weight, d_bias
        return total

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if d is None else d.mul_(scale.to(d.dtype)) for d in ctx.gradients]
        return *scaled, None
