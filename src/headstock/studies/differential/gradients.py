"""How gradients and ranks run through depth before training, and what × (1 − λ_init) has to do with it."""

from functools import partial
from statistics import fmean

from headstock.instruments.gradients import gradient_norms
from headstock.instruments.spectrum import map_spectrum, residual_spectrum
from headstock.model.config import ModelConfig, config_of
from headstock.model.transformer import build_from
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture
from headstock.studies.base import Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.differential.paper import SETTINGS, SHAKESPEARE, SOURCE
from headstock.studies.figures import figure
from headstock.studies.results import StudyResult

N_LAYERS, WIDTH = 12, 128
ROWS = 8
VARIANTS = {
    "softmax": ("softmax attention", "softmax"),
    "version-1": ("differential, × (1 − λ_init)", "differential"),
    "version-1-unscaled": ("differential, without that factor", "differential,lambda_scale=false"),
    "version-1-no-norm": ("differential, without the norm of a pair", "differential,head_norm=none"),
    "version-2": ("differential2", "differential2"),
}
SIZES = {key: value for key, value in SETTINGS.items() if key in ModelConfig.model_fields}


def before_training(variant: str, opened: Opened, *, n_layers: int = N_LAYERS) -> Measured:
    """Measure gradient norms of the mixers by depth, ranks of maps, and how far apart tokens stay, before any step.

    Gradients are of 8 rows of the training split, another 8 for each seed; ranks and apart are of two of them.
    mean_gradient is the root of the mean square over blocks of the norm with respect to a mixer's parameters;
    last_over_first of the same norms. map_rank is the effective rank of a map, mean of heads, as a share of a uniform
    average's; apart the part of the residual that differs between tokens, after the last block.
    """
    assert opened.task is not None
    task = opened.task
    sizes = {**SIZES, "d_model": WIDTH, "n_layers": n_layers, "n_heads": 8}
    config = config_of(variant, **sizes, vocab_size=task.vocab_size, context=task.context)
    model = build_from(config, seed=opened.seed)
    batch = task.batch(seed=opened.seed, index=0, size=ROWS)
    mixers = gradient_norms(model, batch).mixers
    maps = map_spectrum(model, batch.inputs[:2])
    residual = residual_spectrum(model, batch.inputs[:2])
    ranks = (maps.effective_rank.mean(1) / maps.uniform_rank).tolist()
    return Measured(
        {
            "mean_gradient": float(mixers.square().mean().sqrt()),
            "last_over_first": float(mixers[-1] / mixers[0]),
            "map_rank": fmean(ranks),
            "apart": float(residual.apart[-1]),
        },
        {"mixers": mixers.tolist(), "ranks": ranks, "apart": residual.apart.tolist()},
    )


def pictures(result: StudyResult) -> list[Picture]:
    """Give gradient norms, map ranks and how far tokens stay apart, by depth."""
    drawn = []
    for key, y, title, first in (
        ("mixers", "norm of the loss's gradient, mixer alone", "Gradients of the mixers before training", 1),
        ("ranks", "effective rank of maps, times a uniform average's", "Ranks of the maps before training", 1),
        ("apart", "part of the residual that differs between tokens", "How far apart tokens stay", 0),
    ):
        series = {}
        for name in VARIANTS:
            read = [run.details[key] for run in result.row(name).finished if run.details]
            if read:
                means = [fmean(column) for column in zip(*read, strict=True)]
                series[name] = (list(range(first, first + len(means))), means)
        if series:
            drawn.append(
                lines(
                    series,
                    x="block" if first else "blocks before",
                    y=y,
                    title=title,
                    caption=f"{N_LAYERS} blocks of width {WIDTH}, 8 heads, 128 tokens of Shakespeare; mean of seeds.",
                    name=f"{key}-by-depth",
                )
            )
    return drawn


STUDY = Study(
    name="diff-gradients",
    title="Gradients and ranks of differential attention by depth",
    asks="Is the gradient of a differential block as large as softmax's because of × (1 − λ_init), and are its maps of "
    "higher rank?",
    source=f"{SOURCE}, appendix G; Naderi et al., “Mind the Gap” (2024), on rank",
    rows=tuple(Row(name, f"{says}, {N_LAYERS} blocks before training", task=SHAKESPEARE,
                   measure=partial(before_training, variant))
               for name, (says, variant) in VARIANTS.items()),
    claims=(
        Claim("With × (1 − λ_init) the mixers' gradients are as large as softmax's.",
              figure("version-1", "mean_gradient") / figure("softmax", "mean_gradient"), "similar gradient flow",
              "a factor of one and a half to either side, which curves would hardly show", 2 / 3, 1.5, unit="times"),
        Claim("Without it they are not.",
              figure("version-1-unscaled", "mean_gradient") / figure("softmax", "mean_gradient"),
              "the factor aligns the flow", "one and a half or more", 1.5, unit="times"),
        Claim("Gradients of version 1 are spread over depth as softmax's are.",
              figure("version-1", "last_over_first") / figure("softmax", "last_over_first"), "similar gradient flow",
              "a factor of one and a half to either side, which curves would hardly show", 2 / 3, 1.5, unit="times"),
        Claim("Maps of version 1 have a higher effective rank than softmax's.",
              figure("version-1", "map_rank") / figure("softmax", "map_rank"), "a balanced spectrum",
              "which is larger is the claim", at_least=1.0, strict=True, unit="times"),
        Claim("Tokens stay further apart after twelve blocks.",
              figure("version-1", "apart") / figure("softmax", "apart"), "no rank collapse",
              "which is larger is the claim", at_least=1.0, strict=True, unit="times"),
    ),
    efforts={"quick": Effort(4, minutes=0.5), "full": Effort(20, minutes=3)},
    figures=("mean_gradient", "last_over_first", "map_rank", "apart"),
    choices=("Twelve blocks of width 128 with 8 heads, before any step: the paper shows gradients in training.",),
    remarks=("Before training it is the norm of each pair, not the factor, that brings gradients to softmax's size: "
             "without the norm they are 0.18 of softmax's (0.086 against 0.482), with it and without the factor 1.07. "
             "The row without the norm was added after the others had been seen.",),
    pictures=pictures,
)  # fmt: skip
