"""What one attention layer costs as the sequence grows, with all scores stored and in tiles."""

from functools import partial

import torch

from headstock.instruments.cost import Cost, cost_by_length, longest_that_fits
from headstock.instruments.passes import undisturbed
from headstock.model.config import ModelConfig, config_of
from headstock.model.transformer import build_from
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture
from headstock.studies.base import Budget, Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.chapter.shared import SOURCE
from headstock.studies.figures import figure
from headstock.studies.results import StudyResult

LAYER = "softmax+none,d_model=512,n_heads=8,norm=none,feedforward=none,n_layers=1"
OUT_AT = 16_384
LENGTHS: dict[Budget, tuple[int, ...]] = {
    "quick": (128, 256, 512, 1024, 2048),
    "full": (128, 256, 512, 1024, 2048, 4096, 8192),
}
SECONDS: dict[Budget, float] = {"quick": 15.0, "full": 60.0}
MEMORY = 8 * 2**30
MB = 2**20
COMPARED = 1024
"""Tokens at which both evaluations' outputs are held against each other."""


def of_layer(plain: bool, opened: Opened, *, lengths: tuple[int, ...] = (), seconds: float = 0.0) -> Measured:
    """Measure seconds and bytes of the layer by length, and fit exponents to the four longest."""
    lengths = lengths or LENGTHS[opened.budget]
    config = _config(max(lengths))
    found = cost_by_length(
        {"layer": config},
        lengths,
        parts=("block", "projections", "mixing"),
        plain=plain,
        seconds=seconds or SECONDS[opened.budget],
    )
    figures = {}
    for name, part, quantity in (
        ("exponent_of_time", "block", "seconds"),
        ("exponent_of_memory", "block", "bytes"),
        ("exponent_of_projections", "projections", "seconds"),
    ):
        grown = found.exponent("layer", part, "forward", quantity)  # type: ignore[arg-type]
        if grown is not None:
            figures[name] = grown.exponent
    if plain:
        stored = found.weights_bytes["layer"]
        figures |= {f"matrix_mb_{length}": (held or 0) / MB for length, held in stored.items()}
        longest = max(lengths)
        figures[f"matrix_mb_{OUT_AT}"] = figures[f"matrix_mb_{longest}"] * (OUT_AT / longest) ** 2
        fits = longest_that_fits(found, {"layer": config}, MEMORY)
        figures["fits_8gb"] = next(one.tokens for one in fits if (one.holder, one.step) == ("block", "forward"))
    else:
        figures["apart"] = _apart(config.model_copy(update={"context": COMPARED}), opened.seed)
    return Measured(figures, _details(found))


def _config(context: int) -> ModelConfig:
    return config_of(LAYER, vocab_size=2, context=context)


@torch.no_grad()
def _apart(config: ModelConfig, seed: int) -> float:
    """Give how far the layer's outputs are apart, scores stored and not."""
    model = build_from(config, seed=seed)
    ids_bq = torch.randint(config.vocab_size, (1, config.context), generator=torch.Generator().manual_seed(seed))
    with undisturbed(model):
        model.plain = True
        stored_bqm = model.hidden(ids_bq)
        model.plain = False
        return float((model.hidden(ids_bq) - stored_bqm).abs().max())


def _details(found: Cost) -> dict[str, list[float]]:
    block = found.of("layer", "block", "forward")
    maps = found.of("layer", "projections", "forward")
    return {
        "lengths": [one.length for one in block],
        "seconds": [one.median_seconds for one in block],
        "peak_mb": [one.peak_bytes / MB for one in block],
        "projection_seconds": [one.median_seconds for one in maps],
    }


def pictures(result: StudyResult) -> list[Picture]:
    """Give seconds and memory by length, scores stored and in tiles."""
    said = {name: result.details(row) for name, row in (("stored", "stored"), ("in tiles", "tiles"))}
    known = {name: details for name, details in said.items() if details}
    if not known:
        return []
    drawn = []
    for quantity, key, unit, words in (
        ("memory", "peak_mb", "MB held at once", "exponent_of_memory"),
        ("time", "seconds", "seconds", "exponent_of_time"),
    ):
        series = {name: (details["lengths"], details[key]) for name, details in known.items()}
        if quantity == "time" and "stored" in known:
            series["projections alone"] = (known["stored"]["lengths"], known["stored"]["projection_seconds"])
        grown = result.row("stored").spread(words)
        drawn.append(
            lines(
                series,
                x="tokens",
                y=f"{unit}, forward",
                title=f"With all scores stored, {quantity} grows as n^{grown.mean:.2f}"
                if grown is not None
                else f"{quantity.capitalize()} by length",
                log_x=True,
                log_y=True,
                caption="One attention layer, width 512, 8 heads, one sequence, float32; exponent of the four longest.",
                name=f"{quantity}-by-length",
            )
        )
    return drawn


_MATRIX = {128: "0.5", 256: "2.0", 512: "8.0", 1024: "32.0", 2048: "128.0", 4096: "512.0", 8192: "2048.0"}

STUDY = Study(
    name="cost",
    title="What attention costs as the sequence grows",
    asks="Do time and memory of a layer that stores its scores grow with the square of the sequence, does everything "
    "else grow in proportion, and does the same result come without storing them?",
    source=f"{SOURCE}: the cost",
    rows=(
        Row("stored", "all scores in memory", measure=partial(of_layer, True), threads=None,
            published={"exponent_of_time": "1.91", "exponent_of_memory": "1.87",
                       **{f"matrix_mb_{length}": written for length, written in _MATRIX.items()},
                       f"matrix_mb_{OUT_AT}": "8192.0", "fits_8gb": "8192 and not 16384"}),
        Row("tiles", "in tiles, as torch's fused kernel does", measure=partial(of_layer, False), threads=None),
    ),
    claims=(
        Claim("The matrix of weights is 0.5 MB at 128 tokens.", figure("stored", "matrix_mb_128"), "0.5",
              "counts are exact", 0.5, 0.5, unit="MB", exact=True),
        Claim("It is 128 MB at 2,048.", figure("stored", "matrix_mb_2048"), "128.0", "counts are exact", 128, 128,
              unit="MB", exact=True),
        Claim("It is 2,048 MB at 8,192.", figure("stored", "matrix_mb_8192"), "2048.0", "counts are exact", 2048, 2048,
              unit="MB", full_only=True, exact=True),
        Claim("It would be 8,192 MB at 16,384.", figure("stored", f"matrix_mb_{OUT_AT}"), "8192.0", "counts are exact",
              8192, 8192, unit="MB", exact=True),
        Claim("Eight gigabytes have room for 8,192 tokens and not for 16,384.", figure("stored", "fits_8gb"),
              "out of memory at 16384", "between the two", 8192, 16_383, unit="tokens", exact=True),
        Claim("Memory grows nearly with the square.", figure("stored", "exponent_of_memory"), "1.87",
              "from 1.75 to just above 2: how much that is no matrix is held beside it differs", 1.75, 2.05,
              exact=True),
        Claim("So does time.", figure("stored", "exponent_of_time"), "1.91",
              "from 1.6 to 2.3: caches and threads are other ones", 1.6, 2.3, full_only=True),
        Claim("The time of projections grows in proportion.", figure("stored", "exponent_of_projections"),
              "ten times for eight times as many", "from 0.85 to 1.25; as published it is 1.11", 0.85, 1.25,
              full_only=True),
        Claim("In tiles the result is the same.", figure("tiles", "apart"), "the same result",
              "the same sums in another order, in float32", at_most=1e-5, exact=True),
        Claim("In tiles memory grows in proportion.", figure("tiles", "exponent_of_memory"),
              "without ever storing the matrix", "from 0.8 to 1.2", 0.8, 1.2, exact=True),
    ),
    efforts={"quick": Effort(3, minutes=2), "full": Effort(1, minutes=9)},
    figures=("exponent_of_time", "exponent_of_memory", "exponent_of_projections", "fits_8gb"),
    choices=(
        "Forward alone, without gradients; which pass the chapter measured is not said.",
        "Memory is what is held at once beyond inputs and parameters; the chapter's includes them.",
        "A processor and its memory here, a laptop's GPU there: seconds say nothing of each other, exponents do.",
        "Whether 8 GB have room is foreseen from the memory measured at the longest lengths.",
    ),
    remarks=(
        "Time grows faster than the chapter's (2.48; 1.91). Two thirds of what 8,192 tokens take are no sums: 3.1 "
        "core-seconds are the layer's own and 6.7 the system's, which gives it fresh memory in 2.7 million pages of 4 "
        "KiB; what is the layer's own grows with the power 1.74 to 1.79 from 1,024 tokens, and seconds with 2.07 and "
        "2.08 (`python benchmarks/fresh_pages.py`, twice). Why the study, where passes with gradients stand between "
        "those without, needs 8.1 seconds at 8,192 tokens and that script 5.5 is not known.",
        "Memory grows with the power 1.98 and not 1.87 as in the chapter's, which has inputs and parameters in it.",
    ),
    spread=0.03,
    spread_because="exponents are of timings on a machine that does other things too; a guess",
    pictures=pictures,
)  # fmt: skip
