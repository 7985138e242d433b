"""Late in the context and beyond the trained length: where a map without noise should pay most."""

import torch

from headstock.instruments.losses import loss_by_position
from headstock.model.transformer import build_from
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture
from headstock.studies.base import Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.differential.beside import differences
from headstock.studies.differential.paper import ARMS, SETTINGS, SHAKESPEARE, SOURCE, STEPS, VERSIONS, equal
from headstock.studies.figures import figure
from headstock.studies.results import StudyResult
from headstock.studies.writing import capital
from headstock.tasks import get

TRAINED, READ = 128, 512
EARLY, LATE = slice(8, 32), slice(96, 128)
"""Positions within the trained length whose losses are means."""
BEYOND = {"to_256": slice(128, 256), "to_512": slice(256, 512)}
SMOOTHED = 16
"""Positions that the picture takes the mean of."""


def by_position(opened: Opened) -> Measured:
    """Measure the loss by position in windows of 512 tokens of a model that was trained at 128.

    RoPE has no parameters, so a model reads on as it is. early and late are means of positions 8 to 31 and 96 to 127;
    to_256 and to_512 of the tokens from 128 and from 256 on.
    """
    model, task = opened.trained
    further = build_from(model.config.model_copy(update={"context": READ}))
    further.load_state_dict(model.state_dict())
    held_out = get(task.name, **{**task.options(), "context": READ}).evaluation(size=8)
    mean_q = loss_by_position(further, held_out).mean
    parts = {"early": EARLY, "late": LATE, **BEYOND}
    return Measured(
        {f"loss_{name}": float(mean_q[part].mean()) for name, part in parts.items()}, {"by_position": mean_q.tolist()}
    )


def pictures(result: StudyResult) -> list[Picture]:
    """Give the loss by position of every arm, and what each differs from softmax by, part by part."""
    series = {}
    for row in result.rows:
        read = [run.details["by_position"] for run in row.finished if run.details]
        if read:
            mean_q = torch.tensor(read, dtype=torch.float64).mean(0)
            means = mean_q.view(-1, SMOOTHED).mean(1).tolist()
            series[row.name] = ([SMOOTHED * (place + 0.5) for place in range(len(means))], means)
    drawn = []
    if series:
        drawn.append(
            lines(
                series,
                x="position, in windows of 512",
                y="held-out nats a token",
                title=f"Loss by position; trained at {TRAINED} tokens",
                caption=f"Means of {SMOOTHED} positions and of all seeds.",
                zero=False,
                name="loss-by-position",
            )
        )
    for part, words in (("late", "positions 96 to 127"), ("to_512", "positions 256 to 511, beyond the trained 128")):
        drawn += differences(
            result,
            {version: (version, "softmax") for version in VERSIONS},
            f"loss_{part}",
            unit="nats a token more than softmax",
            title=f"At {words}: below zero is better",
            name=f"gain-{part}",
        )
    return drawn


_EQUAL = equal(ARMS)

STUDY = Study(
    name="diff-long",
    title="Differential attention late in a context and beyond the trained length",
    asks="Does a difference of two maps gain more where the context is long, and does it go on where training ended?",
    source=f"{SOURCE}: long-context evaluation, to 64K tokens in training's own length",
    rows=tuple(Row(variant, f"{variant}, RoPE, trained at 128 tokens", _EQUAL[variant], measure=by_position)
               for variant in ARMS),
    claims=(
        *(Claim(f"{capital(name)} gains more late in the context than early in it.",
                (figure(version, "loss_late") - figure("softmax", "loss_late"))
                - (figure(version, "loss_early") - figure("softmax", "loss_early")),
                "loss falls faster with position" if version == "differential" else None,
                "the sign is the claim", at_most=0.0, strict=True, unit="nats a token")
          for version, name in VERSIONS.items()),
        *(Claim(f"{capital(name)} has a lower loss than softmax at {words} the trained length.",
                figure(version, f"loss_{part}") - figure("softmax", f"loss_{part}"), None,
                "the sign is the claim", at_most=0.0, strict=True, unit="nats a token")
          for version, name in VERSIONS.items() for part, words in (("to_256", "twice"), ("to_512", "four times"))),
    ),
    efforts={"quick": Effort(4, {"steps": 100, "evaluate_every": 100}, minutes=1), "full": Effort(10, minutes=11)},
    task=SHAKESPEARE,
    settings={**SETTINGS, **STEPS},
    figures=("loss_early", "loss_late", "loss_to_256", "loss_to_512"),
    choices=("The paper trains at the length it reads; here 128 tokens are trained, and up to 512 are read.",
             "The models are those of diff-lm on Shakespeare, at equal parameters."),
    remarks=("All read worse beyond the trained length than at its end, by 0.25 to 0.34 nats at twice the length and "
             "0.64 to 0.73 at four times. Both versions have a lower loss there in the mean, by 0.04 to 0.10, but "
             "softmax's seeds lie 0.1 nats apart, so that ten do not decide it.",),
    pictures=pictures,
)  # fmt: skip
