"""A study of one's own: rows to train and measure, claims to hold them to.

headstock study ./examples/my_study.py:STUDY
"""

import torch

from headstock.studies.base import Claim, Effort, Measured, Row, Study
from headstock.studies.figures import figure, perplexity


def own_weight(opened):
    """Measure how much of its attention a token gives to itself, mean over heads, layers and one held-out sentence."""
    model, task = opened.trained
    ids, _ = task.telling_example()
    with torch.no_grad():
        weights = model.weights(torch.tensor([ids]))
    by_layer = [layer_bhqk.diagonal(dim1=-2, dim2=-1).mean().item() for layer_bhqk in weights]
    return Measured({"own_weight": sum(by_layer) / len(by_layer)}, {"by_layer": by_layer})


STUDY = Study(
    name="my-study",
    title="Choosing what to average",
    asks="Does it help a model of one block to choose the weights of its average?",
    source="nowhere: the figures are a guess that was written down beforehand",
    task="crossing",
    settings={"n_layers": 1, "d_model": 32, "n_heads": 2},
    rows=(
        Row("average", "every token of the past weighs the same", "uniform", measure=own_weight),
        Row(
            "chosen",
            "weights by softmax of scores",
            "softmax",
            measure=own_weight,
            published={"perplexity": "below 5"},
        ),
    ),
    claims=(
        Claim(
            "A model that chooses ends at a perplexity below 5.",
            perplexity("chosen"),
            published="below 5",
            because="as it was guessed.",
            at_most=5.0,
        ),
        Claim(
            "Choosing takes the perplexity down by a tenth or more.",
            perplexity("average") / perplexity("chosen"),
            published="1.1 times or more",
            because="as it was guessed.",
            at_least=1.1,
            unit="times",
        ),
        Claim(
            "A token that may choose looks mostly at itself.",
            figure("chosen", "own_weight"),
            published="more than half",
            because="mostly is more than half.",
            at_least=0.5,
        ),
    ),
    efforts={
        "quick": Effort(seeds=4, settings={"steps": 500, "evaluate_every": 100}),
        "full": Effort(seeds=8, settings={"steps": 1500, "evaluate_every": 250}),
    },
    figures=("perplexity", "own_weight"),
    choices=("One block of width 32, for it takes seconds.",),
)
