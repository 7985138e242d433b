"""What of differential attention its gain comes from: one piece taken away, fixed or added at a time."""

from headstock.pictures.picture import Picture
from headstock.studies.base import Claim, Effort, Row, Study
from headstock.studies.differential.beside import differences
from headstock.studies.differential.paper import SETTINGS, SHAKESPEARE, SOURCE, STEPS, UNCHECKED, equal
from headstock.studies.figures import figure
from headstock.studies.results import StudyResult

HALF = "n_heads=2,d_head=32"
"""Half the heads, twice as wide: as many as differential attention has pairs."""
ROWS = {
    "softmax": ("softmax", "softmax attention", "3.087"),
    "half-heads": (f"softmax,{HALF}", "softmax, half the heads, twice as wide", "3.088"),
    "half-heads-norm": (f"softmax,{HALF},head_norm=rmsnorm", "the same with a norm of each head", "3.086"),
    "differential": ("differential", "version 1", "3.062"),
    "no-norm": ("differential,head_norm=none", "version 1 without the norm of a pair", "3.122"),
    "init-08": ("differential,lambda_init=0.8", "version 1, λ_init 0.8 in every layer", "3.065"),
    "init-05": ("differential,lambda_init=0.5", "version 1, λ_init 0.5 in every layer", "3.066"),
    "unscaled": ("differential,lambda_scale=false", "version 1 without × (1 − λ_init)", ""),
    "lambda-0": ("differential,lambdas=fixed,lambda_init=0", "version 1, λ fixed at 0: one map, with the norm", ""),
    "lambda-fixed": ("differential,lambdas=fixed", "version 1, λ fixed at λ_init", ""),
    "lambda-per-head": ("differential,lambdas=head", "version 1, one λ a pair", ""),
    "differential2": ("differential2", "version 2", ""),
}
"""Variant, what it is, and the loss of 1.4B parameters as published."""


def pictures(result: StudyResult) -> list[Picture]:
    """Give the loss of every row less softmax's."""
    return differences(
        result,
        {name: (name, "softmax") for name in ROWS if name != "softmax"},
        "loss",
        unit="nats a token more than softmax",
        title="What each piece changes: below zero is better than softmax",
        name="ablations",
    )


def _worse(says: str, row: str, than: str, published: str | None) -> Claim:
    return Claim(says, figure(row, "loss") - figure(than, "loss"), published, "the sign is the claim", at_least=0.0,
                 strict=True, unit="nats a token")  # fmt: skip


def _alike(says: str, row: str, than: str, published: str | None) -> Claim:
    return Claim(says, figure(row, "loss") - figure(than, "loss"), published,
                 "at most a hundredth of a nat on either side", -0.01, 0.01, unit="nats a token")  # fmt: skip


_EQUAL = equal([variant for variant, _, _ in ROWS.values()])

STUDY = Study(
    name="diff-ablations",
    title="Pieces of differential attention",
    asks="Which piece is differential attention's gain: the difference, the norm of each pair, the start of λ, that "
    "λ is learned, or half the heads?",
    source=f"{SOURCE}: table 6, 1.4B parameters",
    rows=tuple(Row(name, says, _EQUAL[variant], published={"loss": loss} if loss else {})
               for name, (variant, says, loss) in ROWS.items()),
    claims=(
        _worse("Softmax has a higher loss than version 1.", "softmax", "differential", "3.087 against 3.062"),
        _worse("So does softmax with half the heads.", "half-heads", "differential", "3.088 against 3.062"),
        _worse("So does softmax with half the heads and a norm of each.", "half-heads-norm", "differential",
               "3.086 against 3.062"),
        _worse("Without the norm of each pair version 1 has a higher loss.", "no-norm", "differential",
               "3.122 against 3.062"),
        _worse("Without it version 1 has a higher loss even than softmax.", "no-norm", "softmax",
               "3.122 against 3.087"),
        _alike("λ_init of 0.8 in every layer is as good.", "init-08", "differential", "3.065 against 3.062"),
        _alike("λ_init of 0.5 in every layer is as good.", "init-05", "differential", "3.066 against 3.062"),
        _worse("With one map alone, λ fixed at 0, version 1 has a higher loss.", "lambda-0", "differential", None),
        _worse("With λ fixed where it starts version 1 has a higher loss.", "lambda-fixed", "differential", None),
        _worse("Without × (1 − λ_init) version 1 has a higher loss.", "unscaled", "differential", None),
        _alike("One λ a pair is as good as one a layer.", "lambda-per-head", "differential", None),
        _alike("Version 2 is as good as version 1.", "differential2", "differential", None),
    ),
    efforts={"quick": Effort(3, {"steps": 60, "evaluate_every": 60}, minutes=1.5), "full": Effort(10, minutes=45)},
    task=SHAKESPEARE,
    settings={**SETTINGS, **STEPS},
    figures=("loss", "bits_per_byte", "parameters"),
    choices=("Two blocks of width 64, 500 steps of 16 rows of 128 tokens of Shakespeare, one rate for all.",
             "All rows have as many parameters, by the width of the feed-forward.",
             UNCHECKED),
    remarks=("No piece that is taken away moves the mean by more than 0.016 nats, and ten seeds exclude no more than "
             "0.04 to either side. The paper's largest effect, 0.06 nats without the norm of each pair, is not there: "
             "ours moves by 0.003, to the other side.",
             "Softmax with half the heads has a lower loss than version 1, by up to 0.037 nats: of the paper's figures "
             "the one that ten seeds decide, and against it. Whether subtracting is what costs, they do not: version 1 "
             "is 0.024 nats behind softmax in the mean, and 0.039 with λ fixed at 0, where nothing is subtracted.",
             "Version 2 has a lower loss than version 1, by 0.02 to 0.06 nats, and cannot be told from softmax."),
    pictures=pictures,
)  # fmt: skip
