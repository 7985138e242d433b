"""A study that runs in a second or two: a few steps of tiny models on crossing, and a row that trains nothing."""

from headstock.studies.base import Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.figures import figure, perplexity

TINY = {"d_model": 8, "n_layers": 1, "n_heads": 2, "feedforward": "none"}


def biggest_weight(opened: Opened) -> Measured:
    """Give a number that only the trained model has, and a list beside it."""
    model, _ = opened.trained
    sizes = [float(tensor.detach().abs().max()) for tensor in model.parameters()]
    return Measured({"biggest": max(sizes)}, {"sizes": sizes})


def a_third(opened: Opened) -> Measured:
    """Give something that follows from a formula."""
    return Measured({"third": 1 / 3})


STUDY = Study(
    name="toy",
    title="A toy",
    asks="Does anything happen?",
    source="nowhere, made up for the tests",
    rows=(
        Row("average", "a plain average", "uniform", published={"perplexity": "60"}),
        Row("softmax", "attention by softmax", "softmax", measure=biggest_weight, published={"biggest": "about 1"}),
        Row("formula", "nothing is trained", measure=a_third, published={"third": "0.333"}),
    ),
    claims=(
        Claim("The average is no better than guessing among all words.", perplexity("average"), "60", "wide on purpose",
              at_least=1.0, at_most=1e6),
        Claim("Softmax is a thousand times worse than the average.", perplexity("softmax") / perplexity("average"),
              "1000", "made up", at_least=900.0, unit="times"),
        Claim("Softmax ends below 2.", perplexity("softmax"), "1.9", "made up", at_most=2.0, full_only=True),
        Claim("A third is a third.", figure("formula", "third"), "0.333", "to three digits", 0.3325, 0.3335),
    ),
    efforts={
        "quick": Effort(seeds=2, settings={"steps": 4, "batch_size": 4, "evaluate_every": 2}),
        "full": Effort(seeds=3, settings={"steps": 6, "batch_size": 4, "evaluate_every": 3}),
    },
    task="crossing",
    settings=TINY,
    figures=("perplexity", "biggest"),
    choices=("The size of the models is ours.",),
    remarks=("Nothing differs, for nothing was published.",),
)  # fmt: skip
