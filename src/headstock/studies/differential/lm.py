"""Language modelling: both versions beside softmax at equal parameters, at equal FLOPs, and in equal time."""

from collections.abc import Iterator

from headstock.pictures.picture import Picture
from headstock.studies.base import Claim, Effort, Row, Study
from headstock.studies.differential.beside import differences
from headstock.studies.differential.paper import (
    ARMS,
    GAIN,
    PYTHON_DOCS,
    SETTINGS,
    SHAKESPEARE,
    SOURCE,
    STEPS,
    VERSIONS,
    equal,
)
from headstock.studies.figures import figure
from headstock.studies.results import StudyResult
from headstock.studies.writing import capital

CORPORA = {"shakespeare": SHAKESPEARE, "python-docs": PYTHON_DOCS}
SLOWER = {"differential": 1.11, "differential2": 1.21}
"""A training step's seconds beside softmax's, at equal parameters: medians of 15 turns of three steps each, on one
idle core of an AMD EPYC (another 15 turns: 1.10 and 1.21)."""
EQUAL = {"params": "parameters", "flops": "FLOPs a token", "time": "time"}


def arms() -> Iterator[tuple[str, str, str, float]]:
    """Give each arm's name, what it is, its variant and the share of the steps that it trains."""
    by = {how: equal(ARMS, how) for how in ("params", "flops")}
    yield "softmax", "softmax attention", by["params"]["softmax"], 1.0
    for version in VERSIONS:
        yield f"{version}-params", f"{version}, as many parameters", by["params"][version], 1.0
        if by["flops"][version] != by["params"][version]:
            yield f"{version}-flops", f"{version}, as many FLOPs a token", by["flops"][version], 1.0
        yield f"{version}-time", f"{version}, as long a training", by["params"][version], 1 / SLOWER[version]


def rows() -> Iterator[Row]:
    """Give the arms on either corpus."""
    for corpus, task in CORPORA.items():
        for name, says, variant, share in arms():
            yield Row(f"{name}-{corpus}", f"{corpus}: {says}", variant, task=task, steps_share=share)


def claims() -> Iterator[Claim]:
    """Say of each arm that it is better than softmax, as the paper says of the first version at equal parameters."""
    there = {row.name for row in rows()}
    for corpus in CORPORA:
        for version, name in VERSIONS.items():
            for how, words in EQUAL.items():
                row = f"{version}-{how}-{corpus}"
                if row not in there:
                    continue
                yield Claim(
                    f"{capital(name)} has a lower loss than softmax on {corpus} at equal {words}.",
                    figure(row, "loss") - figure(f"softmax-{corpus}", "loss"),
                    f"−{GAIN}" if (version, how) == ("differential", "params") else None,
                    f"below zero: the paper's −{GAIN} is of 1.4B parameters, and how much a small model gains is not "
                    f"said.",
                    at_most=0.0,
                    strict=True,
                    unit="nats a token",
                )


def pictures(result: StudyResult) -> list[Picture]:
    """Give the loss of every arm less softmax's, a picture a corpus."""
    drawn = []
    for corpus in CORPORA:
        pairs = {name: (f"{name}-{corpus}", f"softmax-{corpus}") for name, *_ in arms() if name != "softmax"}
        drawn += differences(
            result,
            pairs,
            "loss",
            unit="nats a token more than softmax",
            title=f"Held-out loss beside softmax's on {corpus}: below zero is better",
            name=f"gains-{corpus}",
        )
    return drawn


STUDY = Study(
    name="diff-lm",
    title="Differential attention as a language model",
    asks="Does subtracting two softmax maps lower the loss of a small language model, and is the answer the same at "
    "equal parameters, equal FLOPs and equal time?",
    source=f"{SOURCE}: language modelling, and the ablations' 3.062 against 3.087",
    rows=tuple(rows()),
    claims=tuple(claims()),
    efforts={
        "quick": Effort(5, {"steps": 100}, minutes=3),
        "full": Effort(10, minutes=45),
    },
    settings={**SETTINGS, **STEPS},
    figures=("loss", "bits_per_byte", "parameters"),
    choices=(
        "Two blocks of width 64, 500 steps of 16 rows of 128 tokens: what ten seeds of every arm can be had for.",
        "At equal parameters version 1 takes as many FLOPs a token as softmax: one row answers for both.",
    ),
    remarks=(
        "Version 1 is 0.20 nats behind softmax at step 125, on either corpus, and nearer at every look from then on: "
        "0.04 and 0.02 at step 375, 0.02 and 0.02 at the end. 500 steps end before it is seen whether it passes; "
        "after 1,000 it is level on Shakespeare (diff-scaling).",
        "Version 2 starts level with softmax. On Shakespeare it stays so; on python-docs it falls behind: by 0.02 nats "
        "at step 125 and 0.05 at the end at equal parameters, by 0.04 and 0.05 at equal FLOPs. Why is not known.",
        "In equal time version 1 takes 450 steps and version 2 takes 413 where softmax takes 500, and softmax's loss "
        "on Shakespeare still falls by 0.08 in its last 125 steps: most of what equal time costs is that.",
    ),
    pictures=pictures,
)
