"""What a model's numbers are before training: a function of (config, seed), each parameter drawn on its own.

A parameter's draw follows from the seed and its name. So two variants with the same seed share every number whose
name and shape they share, which is what pairs the arms of a comparison.

    fan-in   maps N(0, 1/(3·inputs)), the variance of torch's own; biases 0; tokens N(0, 0.3²), places N(0, 0.02²)
    gpt2     all N(0, 0.02²), outputs into the residual divided by √(2·n_layers); biases 0 (Radford et al., 2019)
    torch    each module as torch makes it: maps and biases uniform in ±1/√inputs, tokens and places N(0, 1)

fan-in is the default because it alone does well at small widths both on text and on tasks of a few tokens: LOG.md
has the trial.
"""

import math

import torch
from torch import nn

from headstock.model.dropout import seed_from
from headstock.model.mixers.base import Mixer
from headstock.model.positions import LearnedPositions

TOKEN_STD = {"fan-in": 0.3, "gpt2": 0.02, "torch": 1.0}
PLACE_STD = {"fan-in": 0.02, "gpt2": 0.02, "torch": 1.0}
INTO_RESIDUAL = (".mixer.output", ".feedforward.out")


def initialise(model: nn.Module, kind: str, n_layers: int, seed: int) -> None:
    """Fill every parameter in place, as ModelConfig.init names it."""
    for name, module in model.named_modules():
        generator = torch.Generator().manual_seed(seed_from("init", seed, name))
        with torch.no_grad():
            if isinstance(module, nn.Linear):
                shrink = math.sqrt(2 * n_layers) if name.endswith(INTO_RESIDUAL) else 1.0
                _fill_linear(module, kind, shrink, generator)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=TOKEN_STD[kind], generator=generator)
            elif isinstance(module, LearnedPositions):
                nn.init.normal_(module.weight, std=PLACE_STD[kind], generator=generator)
            elif isinstance(module, Mixer):
                module.initialise(generator)


def _fill_linear(linear: nn.Linear, kind: str, shrink: float, generator: torch.Generator) -> None:
    bound = 1 / math.sqrt(linear.in_features)
    if kind == "torch":
        nn.init.uniform_(linear.weight, -bound, bound, generator=generator)
        if linear.bias is not None:
            nn.init.uniform_(linear.bias, -bound, bound, generator=generator)
        return
    std = 0.02 / shrink if kind == "gpt2" else bound / math.sqrt(3)
    nn.init.normal_(linear.weight, std=std, generator=generator)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
