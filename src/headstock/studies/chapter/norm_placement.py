"""Twelve blocks with their norms before each sub-layer or after it, with and without a warm-up."""

import math
from collections.abc import Sequence
from functools import partial
from statistics import fmean

from headstock.model.config import ModelConfig, config_of
from headstock.model.transformer import Transformer, build_from
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture
from headstock.studies.base import Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.chapter.shared import BLOCK, OPTIMISER, SCATTER, SETTINGS, SOURCE, START, TEXT, TOKENIZER
from headstock.studies.figures import figure, perplexity
from headstock.studies.results import StudyResult
from headstock.tasks import parse
from headstock.training.config import TrainingConfig
from headstock.training.loop import accumulate_gradients

PRE = f"softmax,{BLOCK}"
POST = f"{PRE},norm_placement=post"
WARM = {"warmup_steps": 200}
N_LAYERS = 12
DRAWS = 8
"""Initialisations that a gradient's figures are means of."""
MAPS = ("mixer.query.weight", "mixer.key.weight", "mixer.value.weight")


def gradients(variant: str, opened: Opened, *, draws: int = DRAWS, rows: int = 16, task: str = TEXT) -> Measured:
    """Measure the gradient of the loss in each block before any step, over some initialisations with a batch each.

    Norms are given of all parameters of a block and of its maps of queries, keys and values alone.
    """
    source = parse(task)
    sizes = {key: value for key, value in SETTINGS.items() if key in ModelConfig.model_fields}
    whole, maps = [], []
    for seed in range(opened.seed * draws, (opened.seed + 1) * draws):
        config = config_of(
            variant, **{**sizes, "n_layers": N_LAYERS, "vocab_size": source.vocab_size, "context": source.context}
        )
        model = build_from(config, seed=seed)
        batch = source.batch(seed=seed, index=0, size=rows)
        accumulate_gradients(model, batch, TrainingConfig(steps=1, batch_size=rows), 0)
        whole.append(_norms(model, ()))
        maps.append(_norms(model, MAPS))
    return Measured(
        {
            "maps_first": fmean(norms[0] for norms in maps),
            "maps_last": fmean(norms[-1] for norms in maps),
            "maps_last_over_first": fmean(norms[-1] / norms[0] for norms in maps),
            "block_first": fmean(norms[0] for norms in whole),
            "block_last": fmean(norms[-1] for norms in whole),
            "block_last_over_first": fmean(norms[-1] / norms[0] for norms in whole),
        },
        {"maps": maps, "blocks": whole},
    )


def _norms(model: Transformer, names: Sequence[str]) -> list[float]:
    """Give the norm of the gradient of each block, of the parameters that are named or of all."""
    return [
        math.sqrt(
            sum(
                float(parameter.grad.double().square().sum())
                for name, parameter in block.named_parameters()
                if parameter.grad is not None and (not names or name in names)
            )
        )
        for block in model.blocks
    ]


def pictures(result: StudyResult) -> list[Picture]:
    """Give the gradient of each block before training, one line each placement."""
    series = {}
    for label, row in (("norms before", "start-pre"), ("norms after", "start-post")):
        starts = [norms for run in result.row(row).finished for norms in run.details["maps"]]
        if starts:
            means = [fmean(of_block) for of_block in zip(*starts, strict=True)]
            series[label] = (list(range(1, len(means) + 1)), means)
            drawn = len(starts)
    if len(series) < 2:
        return []
    ratio = fmean(series["norms after"][1]) / fmean(series["norms before"][1])
    return [
        lines(
            series,
            x="block",
            y="norm of the loss's gradient",
            title=f"Before any step, gradients are {ratio:.1f} times as large with norms after",
            caption=f"Of the maps of queries, keys and values, all entries together; mean of {drawn} initialisations.",
            name="gradient-before-training",
        )
    ]


STUDY = Study(
    name="norm-placement",
    title="Norms before each sub-layer or after it",
    asks="Does a model of twelve blocks whose norms stand on the residual path itself need a warm-up of the rate, and "
    "does one whose norms stand before each sub-layer not?",
    source=f"{SOURCE}: where the norm sits; after Xiong et al., “On Layer Normalization in the Transformer "
    "Architecture” (2020)",
    rows=(
        Row("pre", "norms before, full rate from the first step", PRE, published={"perplexity": "37.82"}),
        Row("pre-warm-up", "norms before, 200 steps of warm-up", PRE, settings=WARM, published={"perplexity": "37.62"}),
        Row("post", "norms after, full rate from the first step", POST, published={"perplexity": "308.05"}),
        Row("post-warm-up", "norms after, 200 steps of warm-up", POST, settings=WARM,
            published={"perplexity": "37.88"}),
        Row("pre-64", "as the first, 64 rows a step", PRE, settings={"batch_size": 64}),
        Row("start-pre", "gradients before training, norms before", measure=partial(gradients, PRE),
            published={"maps_first": "0.0498", "maps_last": "0.0657", "maps_last_over_first": "1.32"}),
        Row("start-post", "gradients before training, norms after", measure=partial(gradients, POST),
            published={"maps_first": "0.0977", "maps_last": "0.1613", "maps_last_over_first": "1.65"}),
    ),
    claims=(
        Claim("Without a warm-up, norms after are several times worse than norms before.",
              perplexity("post") / perplexity("pre"), "308.05 against 37.82, or 8.1",
              "several: two or more; how far the other falls depends on width and batch, which are not said", 2.0,
              unit="times", divergence_counts=True),
        Claim("With 200 steps of it they are as good.", perplexity("post-warm-up") / perplexity("pre-warm-up"),
              "37.88 against 37.62, or 1.007", "eight parts in a hundred on either side", 0.92, 1.08,
              unit="times", full_only=True),
        Claim("Norms before need none.", perplexity("pre") / perplexity("pre-warm-up"), "37.82 against 37.62, or 1.005",
              "eight parts in a hundred on either side", 0.92, 1.08, unit="times", full_only=True),
        Claim("Norms before end at 37.82.", perplexity("pre"), "37.82",
              "a tenth on either side; the batch was chosen so that this holds", 34.0, 41.6, full_only=True),
        Claim("Before any step, gradients grow from the first block to the last, norms before.",
              figure("start-pre", "maps_last_over_first"), "1.32",
              "of 64 initialisations 56 lie there, each by itself, and theirs is one", 1.0, 1.6, unit="times"),
        Claim("Norms after, they do as well.", figure("start-post", "maps_last_over_first"), "1.65",
              "of 64 initialisations 53 lie there, each by itself, and theirs is one", 1.2, 2.0, unit="times"),
        Claim("They grow more with norms after than with norms before.",
              figure("start-post", "maps_last_over_first") / figure("start-pre", "maps_last_over_first"),
              "1.65 against 1.32, or 1.25", "more at all", 1.0, unit="times"),
        Claim("In the first block they are twice as large, norms after.",
              figure("start-post", "maps_first") / figure("start-pre", "maps_first"), "0.0977 against 0.0498, or 1.96",
              "a quarter on either side", 1.5, 2.5, unit="times"),
        Claim("The gradient of a whole block grows so too, norms before.", figure("start-pre", "block_last_over_first"),
              "1.32", "as above", 1.0, 1.6, unit="times"),
        Claim("And norms after.", figure("start-post", "block_last_over_first"), "1.65", "as above", 1.2, 2.0,
              unit="times"),
    ),
    efforts={
        "quick": Effort(
            3,
            {"steps": 250, "batch_size": 8, "evaluate_every": 50},
            rows=("pre", "pre-warm-up", "post", "post-warm-up", "start-pre", "start-post"),
            minutes=8,
        ),
        "full": Effort(1, {"steps": 1000, "batch_size": 32, "evaluate_every": 100},
                       seeds_of={"start-pre": 8, "start-post": 8}, minutes=50),
    },
    task=TEXT,
    settings={**SETTINGS, "n_layers": N_LAYERS, "lr": 3e-3},
    figures=("perplexity", "train_perplexity", "maps_last_over_first", "block_last_over_first"),
    choices=(
        "Width and batch are not said: 128 as elsewhere in the chapter, and 32 rows of 128 tokens, because with 64, as "
        "in its ladder, norms before pass their best on the way: row `pre-64`.",
        "With norms after there is no further norm at the end, for the last block ends in one.",
        "Which parameters “gradient norm per block” is of is not said. Those of queries, keys and values "
        "alone come out "
        "at the published size (0.05 and 0.10 in the first block), those of a whole block four times as "
        "large: both are "
        "measured, and the published figures stand beside the former.",
        TOKENIZER,
        START,
        OPTIMISER,
    ),
    remarks=(
        "With norms after and the full rate from the first step nothing but how frequent each token is is learnt: 313 "
        "after 100 steps, 308.1 after 1,000 (the chapter has 308.05), or 3.55 bits a byte, where the task's card has "
        "3.54 for one who knows only how often each token comes. With a warm-up it is as good as the other.",
        "All three that learn end two to three parts in a hundred below the chapter's (36.9, 36.9, 37.1; 37.82, 37.62,"
        " 37.88).",
        "The batch decides what a thousand steps come to. With 64 rows norms before are at 36.3 after 500 steps, then "
        "learn the training text (8.8 at the end, having read it twenty times) and end at 49.8.",
        "Gradients before training grow from the first block to the last as the chapter's do if they are those of "
        "queries, keys and values (1.30 and 1.51 times, means of 64; 1.32 and 1.65 in the chapter); those of whole "
        "blocks do not with norms before (0.92) and hardly with norms after (1.07).",
    ),
    **SCATTER,
    spread_of=("perplexity",),
    pictures=pictures,
)  # fmt: skip
