"""What a difference of two maps costs: seconds and memory of a block, and bytes that a decoded token leaves."""

from typing import Any

from headstock.instruments.cost import cost_by_length
from headstock.model.accounting import cache_bytes
from headstock.model.config import config_of
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture
from headstock.studies.base import Budget, Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.differential.paper import ARMS, BLOCK, SOURCE, VERSIONS, equal
from headstock.studies.figures import figure
from headstock.studies.results import StudyResult

SIZE: dict[str, Any] = {**BLOCK, "position": "rope", "d_model": 512, "n_layers": 1, "n_heads": 8}
LENGTHS: dict[Budget, tuple[int, ...]] = {"quick": (256, 1024), "full": (256, 512, 1024, 2048, 4096)}
SECONDS: dict[Budget, float] = {"quick": 40.0, "full": 300.0}


def of_blocks(opened: Opened, *, lengths: tuple[int, ...] = (), seconds: float = 0.0) -> Measured:
    """Measure a block of each arm, as many parameters each, in turns of one run; ratios are to softmax's.

    time_N, mixing_N and memory_N are of forward and backward at N tokens, by arm: medians of turns, and most bytes held
    at once. forward_N is of the forward pass alone. cache is the bytes a token leaves for those after it.
    """
    lengths = lengths or LENGTHS[opened.budget]
    made = equal(ARMS, settings=SIZE, context=max(lengths))
    sizes = {"vocab_size": 2, "context": max(lengths)}
    configs = {variant: config_of(made[variant], **sizes, **SIZE) for variant in ARMS}
    found = cost_by_length(configs, lengths, parts=("block", "mixing"), seconds=seconds or SECONDS[opened.budget])
    figures: dict[str, float] = {}
    details: dict[str, list[float]] = {"lengths": list(lengths)}
    for variant in ARMS:
        figures[f"{variant}_cache"] = float(cache_bytes(configs[variant])) / cache_bytes(configs["softmax"])
        for what, part, step in (
            ("time", "block", "training"), ("forward", "block", "forward"), ("mixing", "mixing", "training")
        ):  # fmt: skip
            measured = found.of(variant, part, step)  # type: ignore[arg-type]
            base = found.of("softmax", part, step)  # type: ignore[arg-type]
            for one, softmax in zip(measured, base, strict=True):
                assert one.ratio is not None
                figures[f"{variant}_{what}_{one.length}"] = one.ratio.median
                if what == "time":
                    figures[f"{variant}_memory_{one.length}"] = one.peak_bytes / softmax.peak_bytes
            details[f"{variant}_{what}"] = [one.median_seconds for one in measured]
        grown = found.exponent(variant, "mixing", "training", "bytes")
        if grown is not None:
            figures[f"{variant}_memory_exponent"] = grown.exponent
    return Measured(figures, details)


def pictures(result: StudyResult) -> list[Picture]:
    """Give the seconds of a training step of a block by length."""
    details = result.details("blocks")
    if not details:
        return []
    return [
        lines(
            {variant: (details["lengths"], details[f"{variant}_{what}"]) for variant in ARMS},
            x="tokens",
            y=f"seconds, {words}",
            title=f"{title} by length",
            log_x=True,
            log_y=True,
            caption="One block of width 512, 8 heads, batch 1, float32, as many parameters each.",
            name=f"{what}-by-length",
        )
        for what, words, title in (
            ("time", "forward and backward", "A block's training step"),
            ("mixing", "forward and backward", "Mixing alone"),
        )
    ]


def _ratio(variant: str, what: str) -> Any:
    return figure("blocks", f"{variant}_{what}")


def _of_the_paper(variant: str, said: str) -> str | None:
    return said if variant == "differential" else None


STUDY = Study(
    name="diff-cost",
    title="What differential attention costs",
    asks="How much time, memory and cache does a difference of two maps take beside softmax, in blocks of as many "
    "parameters?",
    source=f"{SOURCE}: throughput, and the fast path that this workbench sets itself",
    rows=(
        Row("blocks", "a block of softmax and of either version, 256 to 4,096 tokens", measure=of_blocks,
            threads=None, published={"differential_time_1024": "about 1.1"}),
    ),
    claims=(
        *(Claim(f"A training step of {name} takes at most 1.15 times softmax's at 1,024 tokens.",
                _ratio(variant, "time_1024"), _of_the_paper(variant, "about 10 % less throughput, on a GPU"),
                "1.15 was set as the aim", at_most=1.15, unit="times")
          for variant, name in VERSIONS.items()),
        *(Claim(f"A decoded token of {name} leaves as many bytes as softmax's.", _ratio(variant, "cache"),
                _of_the_paper(variant, "the same keys and values"), "counts are exact", 1.0, 1.0,
                unit="times", exact=True)
          for variant, name in VERSIONS.items()),
        *(Claim(f"Memory of mixing in {name} grows linearly with the tokens.", _ratio(variant, "memory_exponent"),
                _of_the_paper(variant, "FlashAttention can be reused"), "one, and a fifth to either side",
                0.8, 1.2, exact=True, full_only=True)
          for variant, name in VERSIONS.items()),
    ),
    efforts={"quick": Effort(3, minutes=2.5), "full": Effort(3, minutes=17)},
    figures=("differential_time_1024", "differential2_time_1024", "differential_mixing_1024",
             "differential2_mixing_1024", "differential_memory_1024", "differential2_memory_1024"),
    choices=("One block of width 512 with 8 heads, float32 on a processor; the paper's are GPUs in bfloat16.",
             "Seeds are repetitions of the measurement on one machine."),
    remarks=("Machines differ more than repetitions: other idle AMD EPYCs took 1.04 to 1.12 times softmax's step for "
             "version 1 at 1,024 tokens, where this one took 1.00 (docs/performance.md).",
             "Version 2 subtracts its maps before it reads the values, as version 1 does. Before it did, by one fused "
             "call for all its queries, this study found 1.19 on another machine, mixing 2.00.",),
    pictures=pictures,
)  # fmt: skip
