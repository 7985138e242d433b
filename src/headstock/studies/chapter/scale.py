"""Why scores are divided by √d: variances, what a softmax makes of them, and training without the division."""

import math
from functools import partial

import torch

from headstock.instruments.sharpness import FROZEN, SATURATED, score_statistics
from headstock.model.transformer import build_from
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture
from headstock.studies.base import Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.chapter.shared import (
    BLOCK,
    FOUR_HEADS,
    OPTIMISER,
    PLAIN,
    SCATTER,
    SOURCE,
    START,
    STEPS,
    TEXT,
    TOKENIZER,
)
from headstock.studies.figures import figure, perplexity
from headstock.studies.results import StudyResult

WIDTHS = (4, 16, 64, 256, 1024)
TRAINED = (32, 128, 256, 1024)
PAIRS, ROWS_DRAWN, SCORES = 20_000, 2_000, 64
READ = 16
"""Held-out rows that a trained model's scores are measured on."""


def of_width(width: int, opened: Opened) -> Measured:
    """Measure the variance of q·k over drawn pairs, and what a softmax makes of rows of 64 scores, drawn likewise.

    A row of scores is one query's with 64 keys. Entries of queries and keys are N(0, 1).
    """
    draws = torch.Generator().manual_seed(1000 * opened.seed + width)
    variance = float(torch.cat([_products(width, 1000, draws) for _ in range(PAIRS // 1000)]).var())
    figures = {"variance": variance, "variance_over_d": variance / width, "std": math.sqrt(variance)}
    scores = []
    for _ in range(ROWS_DRAWN // 100):
        q_rd = torch.randn(100, 1, width, generator=draws)
        k_rkd = torch.randn(100, SCORES, width, generator=draws)
        scores.append((q_rd @ k_rkd.mT)[:, 0])
    scores_rk = torch.cat(scores).double()
    for how, divided_rk in (("divided", scores_rk / math.sqrt(width)), ("undivided", scores_rk)):
        w_rk = divided_rk.softmax(-1)
        trace_r = (w_rk * (1 - w_rk)).sum(-1)
        figures |= {
            f"{how}_effective_tokens": float(torch.exp(-torch.xlogy(w_rk, w_rk).sum(-1)).mean()),
            f"{how}_trace": float(trace_r.mean()),
            f"{how}_frozen": float((trace_r < FROZEN).double().mean()),
            f"{how}_saturated": float((w_rk.amax(-1) > SATURATED).double().mean()),
        }
    return Measured(figures)


def _products(width: int, pairs: int, draws: torch.Generator) -> torch.Tensor:
    q_pd, k_pd = torch.randn(2, pairs, width, generator=draws)
    products_p: torch.Tensor = (q_pd * k_pd).sum(-1).double()
    return products_p


def of_scores(opened: Opened) -> Measured:
    """Measure the scores of the first block before training and after it, on held-out rows."""
    model, task = opened.trained
    ids = next(iter(task.evaluation(size=READ))).inputs
    figures = {}
    for when, one in (("start", build_from(model.config, seed=opened.seed)), ("end", model)):
        found = score_statistics(one, ids)
        for name, values in (
            ("score_std", found.score_std),
            ("entropy", found.entropy),
            ("saturated", found.saturated),
            ("frozen", found.frozen),
        ):
            figures[f"{name}_{when}"] = float(values[0].mean())
    return Measured(figures)


def pictures(result: StudyResult) -> list[Picture]:
    """Give effective tokens and frozen rows by width, and what the division is worth in training."""
    series: dict[str, tuple[list[int], list[float]]] = {}
    for how in ("divided", "undivided"):
        spreads = [result.row(f"width-{width}").spread(f"{how}_effective_tokens") for width in WIDTHS]
        if all(spread is not None for spread in spreads):
            series[how] = (list(WIDTHS), [spread.mean for spread in spreads if spread is not None])
    drawn = []
    if len(series) == 2:
        drawn.append(
            lines(
                series,
                x="width of queries and keys, d",
                y="effective tokens of 64",
                title=f"Undivided, a row at d=256 averages {series['undivided'][1][3]:.1f} tokens; divided, "
                f"{series['divided'][1][3]:.0f}",
                log_x=True,
                caption=f"exp of a row's entropy, mean of {ROWS_DRAWN:,} drawn rows.",
                name="effective-tokens",
            )
        )
    trained: dict[str, tuple[list[int], list[float]]] = {}
    there = {row.name for row in result.rows}
    for how, suffix in (("divided", ""), ("undivided", "-undivided")):
        known = [
            (width, spread.mean)
            for width in TRAINED
            if f"head-{width}{suffix}" in there
            and (spread := result.row(f"head-{width}{suffix}").spread("perplexity")) is not None
        ]
        if len(known) > 1:
            trained[how] = ([width for width, _ in known], [value for _, value in known])
    if len(trained) == 2:
        lost = trained["undivided"][1][-1] - trained["divided"][1][-1]
        drawn.append(
            lines(
                trained,
                x="width of the one head",
                y="held-out perplexity",
                title=f"Without the division a head of {trained['divided'][0][-1]} ends {lost:.1f} points higher",
                log_x=True,
                zero=False,
                name="trained-without-division",
            )
        )
    return drawn


FOUR = f"softmax,{FOUR_HEADS}"
UNDIVIDED = "scale_scores=false"
WAYS = (("", "divided", ""), ("-undivided", "undivided", f",{UNDIVIDED}"))


def _one_head(width: int) -> str:
    return f"softmax,n_heads=1,d_head={width},output_bias=true"


def _as_wide(width: int) -> str:
    return f"softmax,n_heads=1,output_map=false,d_model={width}"


_VARIANCES = {4: "3.975", 16: "16.071", 64: "64.249", 256: "253.065", 1024: "1015.562"}
_STDS = {4: "1.994", 16: "4.009", 64: "8.016", 256: "15.908", 1024: "31.868"}
_FOUND: dict[int, dict[str, str]] = {
    256: {"undivided_effective_tokens": "1", "divided_trace": "0.96"},
    1024: {"undivided_frozen": "7 in 10", "divided_trace": "0.96"},
}
_SCORES: dict[str, dict[str, str]] = {
    "head-1024-undivided": {"score_std_start": "21", "score_std_end": "5147", "entropy_end": "0",
                            "saturated_end": "99.9 %", "perplexity": "17 above"},
    "head-1024": {"score_std_end": "3.44"},
    "head-256-undivided": {"perplexity": "18 above"},
    "four-heads-undivided": {"perplexity": "nothing lost"},
    "block-undivided": {"perplexity": "nothing lost"},
}  # fmt: skip

ROWS = (
    *(
        Row(f"width-{width}", f"drawn queries and keys of {width} numbers", measure=partial(of_width, width),
            published={"variance": _VARIANCES[width], "std": _STDS[width],
                       **_FOUND.get(width, {"divided_trace": "0.96"})})
        for width in WIDTHS
    ),
    *(
        Row(f"{name}{suffix}", f"{says}, {how}", f"{variant}{more}", settings=STEPS, measure=of_scores,
            published=_SCORES.get(f"{name}{suffix}", {}))
        for name, says, variant in (
            ("four-heads", "four heads of 32, no norm", FOUR),
            ("block", "four heads of 32 in a whole block", f"softmax,{BLOCK}"),
        )
        for suffix, how, more in WAYS
    ),
    *(
        Row(f"head-{width}{suffix}", f"one head of {width}, {how}", f"{_one_head(width)}{more}", measure=of_scores,
            published=_SCORES.get(f"head-{width}{suffix}", {}))
        for width in TRAINED
        for suffix, how, more in WAYS
    ),
    # How wide those models are is not said.
    *(
        Row(f"wide-{width}{suffix}", f"a model as wide as its one head, {width}, {how}", f"{_as_wide(width)}{more}",
            measure=of_scores, published=_SCORES.get(f"head-{width}{suffix}", {}))
        for width in TRAINED[1:]
        for suffix, how, more in WAYS
    ),
)  # fmt: skip


STUDY = Study(
    name="scale",
    title="Why scores are divided by √d",
    asks="How large are dot products, what does a softmax make of them, and does a model that is trained without the "
    "division pay for it?",
    source=f"{SOURCE}: √d",
    rows=ROWS,
    claims=(
        *(
            Claim(f"The variance of q·k is d, at d={width}.", figure(f"width-{width}", "variance_over_d"),
                  f"{_VARIANCES[width]}, or {float(_VARIANCES[width]) / width:.3f}",
                  "four standard errors of a variance of 20,000 numbers, and a spare", 0.95, 1.05, unit="times d",
                  exact=True)
            for width in WIDTHS
        ),
        Claim("Undivided, a row at d=256 averages one token of 64.",
              figure("width-256", "undivided_effective_tokens"), "1",
              "a mean over rows where one was shown: a row now and then is undecided between two", 1.0, 1.5,
              exact=True),
        *(
            Claim(f"Divided, Σ w(1 − w) is 0.96 at d={width}.", figure(f"width-{width}", "divided_trace"), "0.96",
                  "the second digit", 0.945, 0.975, exact=True)
            for width in (16, 64, 256, 1024)
        ),
        Claim("Undivided, seven rows in ten are frozen at d=1024.", figure("width-1024", "undivided_frozen"), "7 in 10",
              "the threshold is not said, here 0.01 for Σ w(1 − w); seven points on either side", 0.63, 0.77,
              exact=True),
        Claim("By the other reading, one token above 0.99, too.", figure("width-1024", "undivided_saturated"),
              "7 in 10", "seven points on either side, as above", 0.63, 0.77, exact=True),
        Claim("At a head of 32 nothing is lost without the division.",
              perplexity("four-heads-undivided") - perplexity("four-heads"), "nothing",
              "one and a half points on either side", -1.5, 1.5, unit="points", full_only=True),
        Claim("Nor in a whole block.", perplexity("block-undivided") - perplexity("block"), "nothing",
              "one and a half points on either side", -1.5, 1.5, unit="points", full_only=True),
        Claim("At 256 it costs 18 points.", perplexity("head-256-undivided") - perplexity("head-256"), "18",
              "a third on either side: the model's width is not said", 12.0, 24.0, unit="points", full_only=True),
        Claim("At 1,024 it costs 17.", perplexity("head-1024-undivided") - perplexity("head-1024"), "17",
              "a third on either side: the model's width is not said", 11.3, 22.7, unit="points", full_only=True),
        Claim("It costs something at 1,024, however short the training.",
              perplexity("head-1024-undivided") / perplexity("head-1024"), "17 points", "a twentieth or more", 1.05),
        Claim("Before training an undivided head of 1,024 has scores of a standard deviation of 21.",
              figure("head-1024-undivided", "score_std_start"), "21", "a tenth on either side", 18.9, 23.1),
        Claim("Training makes it run away.", figure("head-1024-undivided", "score_std_end"), "5147",
              "the order of magnitude: where it ends depends on every step", 1000.0, 25_000.0, full_only=True),
        Claim("All but every thousandth of its rows choose one token.", figure("head-1024-undivided", "saturated_end"),
              "99.9 %", "99 in 100 or more", 0.99, full_only=True),
        Claim("A divided one ends at 3.44.", figure("head-1024", "score_std_end"), "3.44",
              "half to twice: which width it is of is not said", 1.72, 6.88, full_only=True),
        Claim("In a model as wide as its one head, 256, it costs 18 points.",
              perplexity("wide-256-undivided") - perplexity("wide-256"), "18",
              "a third on either side: the model's width is not said", 12.0, 24.0, unit="points", full_only=True),
        Claim("And at 1,024 it costs 17.", perplexity("wide-1024-undivided") - perplexity("wide-1024"), "17",
              "a third on either side: the model's width is not said", 11.3, 22.7, unit="points", full_only=True),
        Claim("In such a model training makes the undivided head of 1,024 run away.",
              figure("wide-1024-undivided", "score_std_end"), "5147",
              "the order of magnitude: where it ends depends on every step", 1000.0, 25_000.0, full_only=True),
        Claim("All but every thousandth of its rows choose one token there.",
              figure("wide-1024-undivided", "saturated_end"), "99.9 %", "99 in 100 or more", 0.99, full_only=True),
        Claim("The divided one ends at 3.44 there.", figure("wide-1024", "score_std_end"), "3.44",
              "half to twice: which width it is of is not said", 1.72, 6.88, full_only=True),
    ),
    efforts={
        "quick": Effort(
            3,
            {"steps": 200, "batch_size": 16, "evaluate_every": 50},
            rows=(
                *(f"width-{width}" for width in WIDTHS),
                *(f"head-{width}{suffix}" for width in TRAINED for suffix in ("", "-undivided")),
            ),
            minutes=6,
        ),
        "full": Effort(1, {"steps": 1500, "batch_size": 32, "evaluate_every": 250}, minutes=70),
    },
    task=TEXT,
    settings=PLAIN,
    figures=("variance", "undivided_effective_tokens", "undivided_frozen", "perplexity", "score_std_end",
             "saturated_end"),
    choices=(
        "Heads of 32 are the ladder's four heads, 3,000 steps of 64 rows, once alone and once in a whole block; heads "
        "of 32, 128, 256 and 1,024 stand alone, 1,500 steps of 32 rows, no norm before the maps.",
        "The width of those models is not said: 128 with an output map from the head into it, or as wide as the head "
        "without one, as the ladder's one head is. Both are run and judged.",
        "What counts as frozen is not said: both readings are measured.",
        TOKENIZER,
        START,
        OPTIMISER,
    ),
    remarks=(
        "The chapter's figures are met by models as wide as their head: there the undivided head of 1,024 ends with "
        "scores of a standard deviation of 5,511 (5147) and 99.8 % of rows on one token (99.9 %), the divided one at "
        "3.55 (3.44), and the division is worth 19.1 and 16.9 points at 256 and 1,024 (18 and 17). In a model of 128 "
        "it is worth 15.5 and 19.6, but the undivided head ends at 214 and 95 %.",
        "At a head of 32 what is lost is small after 3,000 steps (0.2 points, 0.5 in a whole block) and 3.0 after the "
        "shorter training of one head alone.",
    ),
    **SCATTER,
    spread_of=("perplexity",),
    pictures=pictures,
)  # fmt: skip
