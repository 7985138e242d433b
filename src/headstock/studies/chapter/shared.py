"""What the chapter's studies share: the chapter whose figures they rerun, and the set-up that it gives all its models.

"Attention and the transformer block, derived from an average" (in Greek) trains each model at width 128 and context
128, for 3,000 steps of AdamW at a rate of 1e-3, 64 rows a step, on a megabyte of Shakespeare in 1,024 byte-level BPE
tokens. What it leaves out is torch's own default here: AdamW's β₂ and decay, where training starts, biases.
"""

from collections.abc import Mapping
from typing import Any

SOURCE = "the chapter “Attention and the transformer block, derived from an average” (in Greek)"

TEXT = "text,corpus=shakespeare,tokenizer=bpe:1024,context=128"
WIDTH = 128
SETTINGS: Mapping[str, Any] = {
    "d_model": WIDTH,
    "n_layers": 1,
    "unembed_bias": True,
    "init": "torch",
    "beta2": 0.999,
    "weight_decay": 0.01,
}
"""Of every trained row."""
PLAIN: Mapping[str, Any] = {**SETTINGS, "norm": "none", "feedforward": "none"}
"""Of rows that add one piece after another to a model without norm and feed-forward."""
STEPS: Mapping[str, Any] = {"steps": 3000, "batch_size": 64, "evaluate_every": 500}

FOUR_HEADS = "n_heads=4,output_bias=true"
BLOCK = f"{FOUR_HEADS},feedforward=gelu,norm=layernorm"
"""One whole block, as the chapter ends with."""

TOKENIZER = (
    "The tokenizer is a byte-level BPE of 1,024 tokens trained here on the same text with GPT-2's split pattern: "
    "459,792 tokens where the chapter has 459,760, and a perplexity depends on its tokenizer."
)
START = (
    "Where training starts is not said; torch's own defaults are taken: maps and biases uniform in ±1/√inputs, "
    "tokens and places N(0, 1). The chapter's spread of scores before training, 21 at d=1024, is what they give."
)
SCATTER: Mapping[str, Any] = {
    "spread": 0.012,
    "spread_alike": 0.0089,
    "spread_because": "so do the perplexities of the ladder's four rows with four heads, over five seeds, and that "
    "others scatter no more than they do is assumed",
}
"""What a study with one seed takes figures to scatter by."""
OPTIMISER = "AdamW's other numbers are not said; torch's own are taken: β₂ = 0.999, a decay of 0.01, on matrices alone."
