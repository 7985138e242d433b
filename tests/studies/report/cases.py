"""Results as a report may meet them, made without running anything."""

import math
from dataclasses import replace
from typing import Any

from headstock.pictures.bars import bars
from headstock.pictures.picture import Picture
from headstock.studies.base import Claim, Effort, Row, Study
from headstock.studies.figures import figure, perplexity
from headstock.studies.judging import judge
from headstock.studies.results import StudyResult
from headstock.studies.runs import RowResult, RowRun

NAMES = ("no-context", "uniform-replacing-positions", "uniform-added", "one-head", "four-heads", "block", "two-blocks")
ENDS = (60.8, 249.9, 61.0, 46.2, 43.5, 38.4, 40.6)
PUBLISHED = ("59.71", "about 4 times row 1", "60.45", "about 46", "about 43", "38.07", "40.57")


def pictured(result: StudyResult) -> list[Picture]:
    values = {row.name: spread.mean for row in result.rows if (spread := row.spread("perplexity")) is not None}
    return [bars(values, unit="perplexity", title="Each piece but the second block helps")]


STUDY = Study(
    name="ladder",
    title="From an average to a block",
    asks="What does each piece of a Transformer block add to a plain average of the past?",
    source="a document, section 1",
    rows=tuple(
        Row(name, "one piece is added to the row above it, which stays", "softmax", published={"perplexity": said})
        for name, said in zip(NAMES, PUBLISHED, strict=True)
    ),
    claims=(
        Claim("A block reaches a perplexity of 38.", perplexity("block"), "38.07", "one point to either side.",
              37.0, 39.0, "perplexity", full_only=True),
        Claim("Four heads are 3 points better than one.", perplexity("one-head") - perplexity("four-heads"), "about 3",
              "a third to either side.", 2.0, 4.0, "points"),
        Claim("An average that replaces the token is four times worse than no context at all.",
              perplexity("uniform-replacing-positions") / perplexity("no-context"), "about 4", "a tenth.",
              3.6, 4.4, "times"),
        Claim("Two blocks are worse than one by five points or more, for they overfit.",
              perplexity("two-blocks") - perplexity("block"), "at least 5", "as printed.", at_least=5.0, unit="points"),
        Claim("An added average is no better than no context.", perplexity("no-context") - perplexity("uniform-added"),
              "0", "half a point.", at_most=0.5, unit="points"),
        Claim("A block has 38,597,376 numbers.", figure("block", "parameters"), "38,597,376", "a count.",
              38_597_376.0, 38_597_376.0, "parameters"),
        Claim("It never diverges.", figure("one-head", "absent"), "never", "as printed.", at_least=0.0),
    ),
    efforts={"quick": Effort(1), "full": Effort(3)},
    choices=("The start of training is torch's own.", "The rate is 100 % of what is <usual> & more."),
    remarks=("Our tokenizer has 459,792 tokens where theirs has 459,760.",),
    spread=0.008,
    spread_because="that of three seeds of the smallest row.",
    pictures=pictured,
)  # fmt: skip


def rows(seeds: int) -> list[RowResult]:
    made = []
    for place, (row, end) in enumerate(zip(STUDY.rows, ENDS, strict=True)):
        runs = []
        for seed in range(seeds):
            last = end * (1 + 0.002 * math.sin(10 * place + 7 * seed))
            curve = tuple(
                {
                    "step": float(step),
                    "train_loss": 3.0,
                    "loss": 3.0,
                    "perplexity": last * (1 + 2 * math.exp(-step / 600)),
                }
                for step in (500, 1000, 1500, 2000, 2500, 3000)
            )
            figures = {"perplexity": last, "parameters": 38_597_376.0}
            runs.append(
                RowRun(seed, "finished", figures=figures, curve=curve, folder=f"cells/text-{row.name}-seed{seed}")
            )
        made.append(RowResult(row.name, row.says, "softmax,n_heads=4", "text", 3000, row.published, tuple(runs)))
    return made


def result(found: list[RowResult], seeds: int, study: Study = STUDY, **more: Any) -> StudyResult:
    made = StudyResult(
        study=study,
        budget="full",
        steps=None,
        seeds=seeds,
        rows=tuple(found),
        judgements=tuple(judge(study, found, as_published=True)),
        notes=(),
        environment={"torch": ["2.13.0"], "processor": ["one", "another"]},
        command="headstock study ladder --budget full",
        date="2026-11-30",
        folder="runs/study-ladder-full",
    )
    return replace(made, **more)


def measured(name: str, published: dict[str, str], **figures: float) -> RowResult:
    run = RowRun(0, "finished", figures=figures, curve=(), folder=f"rows/{name}-seed0")
    return RowResult(name, "nothing is trained", "", "", 0, published, (run,))


def failed(row: RowResult) -> RowResult:
    runs = tuple(RowRun(run.seed, "failed", "the loss is nan at step 7", diverged=True) for run in row.runs)
    return replace(row, runs=runs)


def case(name: str) -> StudyResult:
    match name:
        case "three seeds":
            return result(rows(3), 3)
        case "one seed":
            return result(rows(1), 1)
        case "measured too":
            more = [
                measured("width-4", {"variance": "3.975"}, variance=3.945, frozen=0.0),
                measured("width-16", {}, variance=16.03, frozen=0.0115),
                measured("masks", {"weight": "0"}, weight=0.0),
            ]
            study = replace(STUDY, figures=("perplexity", "variance", "frozen", "weight"))
            return result(rows(1)[:3] + more + rows(1)[3:], 1, study)
        case "nothing run":
            missing = [replace(row, runs=(RowRun(0, "missing"),)) for row in rows(1)]
            return result(missing, 1, replace(STUDY, pictures=None))
        case "one diverged":
            found = rows(2)
            return result([*found[:3], failed(found[3]), *found[4:]], 2, budget="quick", steps=40)
        case "no claims":
            return result(rows(1), 1, replace(STUDY, claims=(), choices=(), remarks=()))
        case "some of its own":
            claims = tuple(replace(claim, published=None) if n % 2 else claim for n, claim in enumerate(STUDY.claims))
            return result(rows(3), 3, replace(STUDY, claims=claims))
        case "nasty words":
            nasty = "<script>alert(1)</script> | $x$ \x00 & 漢字"
            claims = tuple(replace(claim, says=nasty, published=nasty, unit="<b>") for claim in STUDY.claims)
            study = replace(STUDY, title=nasty, asks=nasty, claims=claims, remarks=(nasty,))
            return result([replace(row, says=nasty) for row in rows(1)], 1, study, notes=(nasty,))
    raise AssertionError(name)


CASES = (
    "three seeds",
    "one seed",
    "measured too",
    "nothing run",
    "one diverged",
    "no claims",
    "some of its own",
    "nasty words",
)
