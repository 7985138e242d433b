"""What is measured of a model and inside it, one file an instrument.

Each gives plain values, and can draw itself where people would rather look. A function is imported when it is first
used: `hs.instruments.attention_patterns(model, ids)`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headstock.instruments.ablation import ablate_heads, ablated
    from headstock.instruments.attribution import logit_attribution
    from headstock.instruments.composition import composition_scores
    from headstock.instruments.convex_hull import hull
    from headstock.instruments.few_bits import quantisation
    from headstock.instruments.gradient_log import gradients_in_training
    from headstock.instruments.gradients import gradient_norms
    from headstock.instruments.lambda_log import lambdas_in_training
    from headstock.instruments.lambdas import lambda_values
    from headstock.instruments.lens import logit_lens
    from headstock.instruments.looking_back import head_scores
    from headstock.instruments.losses import loss_by_position, loss_on_repeats
    from headstock.instruments.mass import attention_mass
    from headstock.instruments.near_zero import near_zero_weights
    from headstock.instruments.outliers import activation_outliers
    from headstock.instruments.output_sizes import head_sizes
    from headstock.instruments.patching import patch_heads, patch_positions
    from headstock.instruments.patterns import attention_patterns
    from headstock.instruments.quantising import quantised
    from headstock.instruments.reach import gradient_reach
    from headstock.instruments.redundancy import head_redundancy
    from headstock.instruments.sharpness import score_statistics
    from headstock.instruments.shot_orders import order_accuracy
    from headstock.instruments.spectrum import map_spectrum, residual_spectrum
    from headstock.instruments.viewer import inspected

__all__ = [
    "ablate_heads",
    "ablated",
    "activation_outliers",
    "attention_mass",
    "attention_patterns",
    "composition_scores",
    "gradient_norms",
    "gradient_reach",
    "gradients_in_training",
    "head_redundancy",
    "head_scores",
    "head_sizes",
    "hull",
    "inspected",
    "instrument_names",
    "lambda_values",
    "lambdas_in_training",
    "logit_attribution",
    "logit_lens",
    "loss_by_position",
    "loss_on_repeats",
    "map_spectrum",
    "near_zero_weights",
    "order_accuracy",
    "patch_heads",
    "patch_positions",
    "quantisation",
    "quantised",
    "residual_spectrum",
    "score_statistics",
]

_HOME = {
    "attention_patterns": "patterns",
    "inspected": "viewer",
    "attention_mass": "mass",
    "score_statistics": "sharpness",
    "near_zero_weights": "near_zero",
    "lambda_values": "lambdas",
    "lambdas_in_training": "lambda_log",
    "map_spectrum": "spectrum",
    "hull": "convex_hull",
    "head_sizes": "output_sizes",
    "residual_spectrum": "spectrum",
    "activation_outliers": "outliers",
    "quantised": "quantising",
    "quantisation": "few_bits",
    "gradient_norms": "gradients",
    "gradients_in_training": "gradient_log",
    "gradient_reach": "reach",
    "loss_by_position": "losses",
    "loss_on_repeats": "losses",
    "order_accuracy": "shot_orders",
    "logit_lens": "lens",
    "logit_attribution": "attribution",
    "ablated": "ablation",
    "ablate_heads": "ablation",
    "patch_positions": "patching",
    "patch_heads": "patching",
    "head_scores": "looking_back",
    "composition_scores": "composition",
    "head_redundancy": "redundancy",
}
"""In the order in which they are listed: weights, values, gradients, losses, what the logits are made of, circuits."""


def instrument_names() -> list[str]:
    """Give the name of every instrument, a function each; imports none."""
    return list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'headstock.instruments' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
