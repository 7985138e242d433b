"""(aab)* by one head, every weight chosen by hand: a GPT-2 without norm and feed-forward that was never trained.

The head attends half and half to the last two tokens, whose values are 1 for a and −1 for b. An average of 1 means aa,
after which comes b; 0 means ab or ba, after which comes a. What it writes is far larger than what the residual held.

Source: Vogel, "I made a transformer by hand (no training!)" (2023).
"""

from headstock.model.transformer import Transformer
from headstock.programs.blueprint import Blueprint
from headstock.programs.handmade.builder import by_hand

CONTEXT = 5
LARGE = 1024
"""So much a score of the two tokens that are looked for, and so much the head writes, over a residual of ones."""


def blueprint(context: int = CONTEXT) -> Blueprint:
    """Give the model on paper: `context` one-hot positions, two one-hot tokens, and one column of scratch space.

    Scores are divided by √d_head as GPT-2 does, which changes nothing here.
    """
    positions = [f"position {index}" for index in range(context)]
    columns = [*positions, "token a", "token b", "scratch"]
    made = by_hand(
        columns, vocabulary="ab", context=context, d_head=len(columns), divide_scores=True, tied=True, biases="always"
    )
    made.token("a", "token a").token("b", "token b")
    for index, position in enumerate(positions):
        made.place(index, position)
    made.head(
        0,
        "the last two tokens",
        looks_for=[  # the i-th number: is position i here, or just before here?
            dict.fromkeys(positions[index : index + 2], LARGE) for index in range(context)
        ],
        offers=positions,
        carries=[*[{} for _ in columns[1:]], {"token a": 1, "token b": -1}],
        writes=[*[{} for _ in columns[1:]], {"token a": -LARGE, "token b": LARGE}],
    )
    made.adds(0, {"token a": LARGE}, by="heads")
    return made.blueprint()


def model(context: int = CONTEXT) -> Transformer:
    """Give the model."""
    return blueprint(context).build()


def rule(text: str) -> str:
    """Say what comes after a text of a and b, as the model does: b, unless there is a b among the last two."""
    return "a" if "b" in text[-2:] else "b"
