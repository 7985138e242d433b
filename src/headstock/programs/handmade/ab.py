"""(ab)* by no head at all: after a comes b, and after anything else a, so neither position nor attention is needed.

The embedding says which token it is, and each logit reads the other token's column.

Source: named as too easy in Vogel, "I made a transformer by hand (no training!)" (2023).
"""

from headstock.model.transformer import Transformer
from headstock.programs.blueprint import Blueprint
from headstock.programs.handmade.builder import by_hand


def blueprint(context: int = 1) -> Blueprint:
    """Give the model on paper: two one-hot tokens, no positions, no layers; any context will do."""
    made = by_hand(["token a", "token b"], vocabulary="ab", context=context)
    made.token("a", "token a").token("b", "token b")
    made.logit("a", "token b").logit("b", "token a")
    return made.blueprint()


def model(context: int = 1) -> Transformer:
    """Give the model."""
    return blueprint(context).build()


def rule(text: str) -> str:
    """Say what comes after a text of a and b, as the model does."""
    return "b" if text[-1] == "a" else "a"
