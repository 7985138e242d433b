"""What a model's numbers are before training: a function of (config, seed), each parameter drawn on its own.

A parameter's draw follows from the seed and its name. So two variants with the same seed share every number whose
name and shape they share, which is what pairs the arms of a comparison.
"""

import math

import torch
from torch import nn

from headstock.model.dropout import seed_from
from headstock.model.mixers.base import Mixer
from headstock.model.positions import LearnedPositions

STD = 0.02


def initialise(model: nn.Module, kind: str, n_layers: int, seed: int) -> None:
    """Fill every parameter in place, as ModelConfig.init names it (gpt2: Radford et al., 2019)."""
    for name, module in model.named_modules():
        generator = torch.Generator().manual_seed(seed_from("init", seed, name))
        with torch.no_grad():
            if isinstance(module, nn.Linear):
                into_residual = name.endswith((".mixer.output", ".feedforward.out"))
                std = STD / math.sqrt(2 * n_layers) if into_residual else STD
                _fill_linear(module, kind, std, generator)
            elif isinstance(module, nn.Embedding | LearnedPositions):
                nn.init.normal_(module.weight, std=STD if kind == "gpt2" else 1.0, generator=generator)
            elif isinstance(module, Mixer):
                module.initialise(generator)


def _fill_linear(linear: nn.Linear, kind: str, std: float, generator: torch.Generator) -> None:
    if kind == "gpt2":
        nn.init.normal_(linear.weight, std=std, generator=generator)
        if linear.bias is not None:
            nn.init.zeros_(linear.bias)
        return
    bound = 1 / math.sqrt(linear.in_features)  # what torch's nn.Linear does
    nn.init.uniform_(linear.weight, -bound, bound, generator=generator)
    if linear.bias is not None:
        nn.init.uniform_(linear.bias, -bound, bound, generator=generator)
