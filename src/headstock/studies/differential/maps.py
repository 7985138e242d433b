"""What the two maps of differential attention become: how alike they are, how empty the difference, how far λ goes."""

from headstock.instruments.convex_hull import hull
from headstock.instruments.lambdas import lambda_values
from headstock.instruments.near_zero import near_zero_weights
from headstock.instruments.redundancy import head_redundancy
from headstock.pictures.bars import bars
from headstock.pictures.picture import Picture
from headstock.studies.base import Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.differential.beside import differences
from headstock.studies.differential.paper import ARMS, SETTINGS, SHAKESPEARE, SOURCE, STEPS, VERSIONS, equal
from headstock.studies.figures import figure
from headstock.studies.results import StudyResult
from headstock.studies.writing import capital

READ = 8
"""Held-out rows that maps are read on."""
EPSILON = 0.001
"""Part of a row's absolute sum below which a weight counts as near zero: an eighth of what a uniform average gives each
of 128 keys."""


def of_maps(opened: Opened) -> Measured:
    """Measure the weights of a trained model on held-out rows, over all layers and heads.

    near_zero and below_zero are parts of all visible weights; negative_mass of their absolute sum. outside is the part
    of outputs, before a head's norm, that no average of the values gives. Of two maps: their cosine, correlation
    and λ.
    """
    model, task = opened.trained
    ids = next(iter(task.evaluation(size=READ))).inputs
    small = near_zero_weights(model, ids, (EPSILON,))
    figures = {
        "near_zero": float(small.near_zero.mean()),
        "below_zero": float(small.below_zero.mean()),
        "negative_mass": float(small.negative_mass.mean()),
        "outside": float(hull(model, ids, most=32).outside.mean()),
    }
    if small.first is not None:
        alike = head_redundancy(model, ids)
        assert alike.map_cosine is not None
        assert alike.map_correlation is not None
        figures |= {
            "map_cosine": float(alike.map_cosine.mean()),
            "map_correlation": float(alike.map_correlation.nanmean()),
            "first_near_zero": float(small.first.near_zero.mean()),
            "lambda": float(lambda_values(model, ids).by_layer.mean()),
        }
    return Measured(figures)


def pictures(result: StudyResult) -> list[Picture]:
    """Give how much of the weights is near zero, and what a penalty on agreement does to the loss."""
    empty = {row.name: spread.mean for row in result.rows if (spread := row.spread("near_zero")) is not None}
    drawn = []
    if empty:
        drawn.append(
            bars(
                empty,
                unit=f"part of visible weights below {EPSILON:g} of their row's sum",
                title="How much of the weights is near zero",
                caption="Mean of the seeds; held-out rows of 128 tokens.",
                name="near-zero",
            )
        )
    pairs = {version: (f"{version}-apart", version) for version in VERSIONS}
    return drawn + differences(
        result,
        pairs,
        "loss",
        unit="nats a token more than without the penalty",
        title="A penalty on agreement of the maps: below zero is better",
        name="penalty",
    )


_EQUAL = equal(ARMS)
_PENALTY = {"agreement_penalty": 0.1}

STUDY = Study(
    name="do-the-maps-differ",
    title="Do the two maps differ?",
    asks="Do the two maps of a differential head look at different things, are the weights of their difference near "
    "zero, do outputs leave the convex hull of the values, does λ go to zero, and does a penalty on agreement help?",
    source=f"questions of readers of {SOURCE}",
    rows=(
        Row("softmax", "softmax", _EQUAL["softmax"], measure=of_maps),
        *(Row(version, version, _EQUAL[version], measure=of_maps) for version in VERSIONS),
        *(Row(f"{version}-apart", f"{version}, a penalty on agreement", _EQUAL[version], settings=_PENALTY,
              measure=of_maps) for version in VERSIONS),
    ),
    claims=(
        *(Claim(f"{capital(name)}'s two maps look at different things.", figure(version, "map_correlation"),
                None, "a correlation of at most a half: the same map twice, but for noise, would be nearer to one",
                at_most=0.5)
          for version, name in VERSIONS.items()),
        *(Claim(f"More of {name}'s weights are near zero than of softmax's.",
                figure(version, "near_zero") - figure("softmax", "near_zero"),
                "almost zero, or sparse" if version == "differential" else None,
                "the sign is the claim", at_least=0.0, strict=True) for version, name in VERSIONS.items()),
        Claim("More of version 1's weights are near zero than of its own first map's.",
              figure("differential", "near_zero") - figure("differential", "first_near_zero"),
              "subtracting makes them so", "the sign is the claim", at_least=0.0, strict=True),
        *(Claim(f"Outputs of {name} leave the convex hull of the values.",
                figure(version, "outside"), None, "more than half of them do",
                at_least=0.5) for version, name in VERSIONS.items()),
        Claim("λ of version 1 does not go to zero.", figure("differential", "lambda"), None,
              "above a tenth, where 0.2 and 0.36 are where its layers start", at_least=0.1),
        *(Claim(f"A penalty on agreement lowers the loss of {name}.",
                figure(f"{version}-apart", "loss") - figure(version, "loss"), None,
                "the sign is the claim", at_most=0.0, strict=True, unit="nats a token")
          for version, name in VERSIONS.items()),
        *(Claim(f"It makes {name}'s maps less alike.",
                figure(f"{version}-apart", "map_cosine") - figure(version, "map_cosine"), None,
                "the sign is the claim", at_most=0.0, strict=True) for version, name in VERSIONS.items()),
    ),
    efforts={"quick": Effort(3, {"steps": 100, "evaluate_every": 100}, minutes=1.5), "full": Effort(10, minutes=25)},
    task=SHAKESPEARE,
    settings={**SETTINGS, **STEPS},
    figures=("loss", "near_zero", "negative_mass", "outside", "map_cosine", "map_correlation", "lambda"),
    choices=("The models are those of diff-lm on Shakespeare, at equal parameters.",
             f"Near zero is below {EPSILON:g} of the sum of a row's absolute weights.",
             "The penalty is a tenth of the mean cosine of the two maps, added to the loss."),
    remarks=("The paper draws a difference that is almost zero but where it looks. It is not so here: "
             "26 % of version 1's visible weights are near zero and 18 % of version 2's, where 31 % of softmax's are "
             "(ten seeds decide that of version 2 alone) and 39 % of version 1's own first map. Two maps seldom give a "
             "token the same weight, and what is left of subtracting them has either sign (46 % of version 1's weights "
             "are below zero).",
             "With the penalty the maps part (cosine .33 to .02 and .72 to .05), and more weights are near zero (54 % "
             "and 32 %); whether the loss falls, ten seeds do not decide."),
    pictures=pictures,
)  # fmt: skip
