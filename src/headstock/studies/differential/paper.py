"""What these studies share: the paper whose claims they try at a small size, and the set-up of all their arms.

Every arm has what the paper gives its own: RMSNorm before each sub-layer, SwiGLU without biases, RoPE. Arms are made
equal by the width of the feed-forward, by the same rule as in a comparison, and never by anything of the mixer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from headstock.comparison.matching import matched
from headstock.model.config import config_of

SOURCE = "“Differential Transformer” (Ye et al., 2024, arXiv 2410.05258)"

BLOCK: Mapping[str, Any] = {"norm": "rmsnorm", "feedforward": "swiglu", "feedforward_bias": False}
SETTINGS: Mapping[str, Any] = {**BLOCK, "position": "rope", "d_model": 64, "n_layers": 2, "n_heads": 4}
"""Of every arm."""
VERSIONS: Mapping[str, str] = {"differential": "version 1", "differential2": "version 2"}
"""Either mixer, and what claims call it: the paper's, and that of "Differential Transformer V2" (Ye et al., 2026)."""
ARMS = ("softmax", *VERSIONS)
SHAKESPEARE = "text,corpus=shakespeare,tokenizer=bpe:1024,context=128"
PYTHON_DOCS = "text,corpus=python-docs,tokenizer=bpe:1024,context=128"
STEPS: Mapping[str, Any] = {"steps": 500, "batch_size": 16, "lr": 4e-3, "evaluate_every": 125}
"""Of rows that learn text. The rate is the best of three (1.3e-3, 4e-3, 1.3e-2; two seeds, which no study uses) for
softmax and for either version alike."""
UNCHECKED = "The paper's figures of this table were written down from memory and are not checked against it yet."

GAIN = 0.025
"""Nats a token that the paper's 1.4B model is better by."""


def equal(
    variants: Sequence[str], by: str = "params", settings: Mapping[str, Any] = SETTINGS, context: int = 128
) -> dict[str, str]:
    """Give each variant with the feed-forward that makes it as large, or as dear a token, as the first.

    by: params (without embeddings) or flops. Raises UserError where no width does.
    """
    sizes = {"vocab_size": 1024, "context": context}  # of the vocabulary neither difference depends
    configs = [config_of(variant, **sizes, **settings) for variant in variants]
    made = matched(variants, configs, "flops" if by == "flops" else "params")
    return {variant: f"{variant},d_ff={config.d_ff}" for variant, config in zip(variants, made, strict=True)}
