"""How large the loss's gradient is in each block: before training, and while it runs."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headstock.errors import UserError
from headstock.instruments.passes import refuse_inference, undisturbed
from headstock.model.transformer import Block, Transformer
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture
from headstock.training.batch import Batch
from headstock.training.loss import loss_sum, refuse_targets


@dataclass(frozen=True)
class GradientNorms:
    """Euclidean norms of the gradient of one batch's mean loss, float64 where they are tensors."""

    blocks: Tensor
    """(layer,): with respect to all parameters of a block together, its norms included."""
    mixers: Tensor
    """(layer,): with respect to those of its mixer alone."""
    residual: Tensor
    """(layer + 1,): with respect to the residual that enters each block, and last to what leaves the last one; all
    tokens of the batch together."""
    embedding: float
    """With respect to the embedding and learned positions; a tied unembedding is the same parameter."""
    unembedding: float
    """With respect to the last norm and an untied unembedding; 0 where there is neither."""
    loss: float
    """Nats a token."""

    @property
    def total(self) -> float:
        """The norm with respect to all parameters, which is what clipping looks at."""
        return math.sqrt(float(self.blocks.square().sum()) + self.embedding**2 + self.unembedding**2)

    @property
    def last_over_first(self) -> float:
        """The last block's norm divided by the first one's: 1 where both learn alike."""
        return float(self.blocks[-1] / self.blocks[0])

    def draw(self) -> Picture:
        """Draw the norm of each block."""
        return lines(
            {"": (list(range(len(self.blocks))), self.blocks.tolist())},
            x="block",
            y="norm of the loss's gradient",
            title=f"The last block's gradient is {self.last_over_first:.3g} times the first one's",
            caption="All parameters of a block together, one batch.",
            name="gradient-norms",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


def gradient_norms(model: Transformer, batch: Batch) -> GradientNorms:
    """Give the norm of the loss's gradient in each block, at whatever point of training.

    The loss is the mean of one batch's targets that count. The model is taken in evaluation mode, without dropout.
    Frozen parameters are measured like all others; nobody's own .grad, nor what requires one, is changed. That a norm
    before each sub-layer keeps these norms alike over depth: Xiong et al., "On Layer Normalization in the Transformer
    Architecture" (2020).

    Raises UserError for a model without blocks, for a batch in which no target counts, and in torch.inference_mode().
    """
    refuse_inference()
    if not len(model.blocks):
        raise UserError("the model has no blocks, so no gradient has a depth: give one with n_layers ≥ 1.")
    device = model.embed.weight.device
    mask = batch.mask.to(device)
    if not bool(mask.any()):
        raise UserError("no target of the batch counts, so there is no loss: give one whose mask has some.")
    last = f"blocks.{len(model.blocks) - 1}.hook_resid_post"
    names = [*(f"blocks.{layer}.hook_resid_pre" for layer in range(len(model.blocks))), last]
    parameters = list(model.parameters())
    frozen = [parameter for parameter in parameters if not parameter.requires_grad]
    with undisturbed(model, gradients=True), model.collecting(names, with_gradients=True) as found:
        for parameter in frozen:
            parameter.requires_grad_(True)
        try:
            x_nm = model.hidden(batch.inputs.to(device))[mask]
            refuse_targets(batch.targets[batch.mask], model.config.vocab_size)
            loss = loss_sum(model, x_nm, batch.targets.to(device)[mask]) / len(x_nm)
            given = torch.autograd.grad(loss, [*parameters, *(found[name] for name in names)], allow_unused=True)
        finally:
            for parameter in frozen:
                parameter.requires_grad_(False)
    squares = [0.0 if gradient is None else float(gradient.double().square().sum()) for gradient in given]
    of = dict(zip(parameters, squares, strict=False))

    def norm(*modules: nn.Module | None) -> float:
        inside = {parameter for module in modules if module is not None for parameter in module.parameters()}
        return math.sqrt(sum(of[parameter] for parameter in inside))

    blocks = [block for block in model.blocks if isinstance(block, Block)]
    return GradientNorms(
        blocks=_tensor([norm(block) for block in blocks]),
        mixers=_tensor([norm(block.mixer) for block in blocks]),
        residual=_tensor([math.sqrt(square) for square in squares[len(parameters) :]]),
        embedding=norm(model.embed, model.position),
        unembedding=norm(model.final_norm, model.unembed),
        loss=loss.item(),
    )


def _tensor(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
