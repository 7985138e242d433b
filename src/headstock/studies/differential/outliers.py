"""Outliers in attention logits and hidden states, and what rounding to few bits costs because of them."""

import math
from itertools import islice

from headstock.instruments.few_bits import quantisation
from headstock.instruments.outliers import HIDDEN, LOGITS, activation_outliers
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture
from headstock.studies.base import Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.differential.paper import (
    ARMS,
    SETTINGS,
    SHAKESPEARE,
    SOURCE,
    STEPS,
    UNCHECKED,
    VERSIONS,
    equal,
)
from headstock.studies.figures import figure
from headstock.studies.results import StudyResult

READ = 16
"""Held-out rows that outliers are looked for in."""
BATCHES = 4
"""Held-out batches of 64 rows that quality is measured on."""
BITS = (16, 8, 6, 5, 4)
DRAWN = 8
"""The most bits of a picture: with 16 nothing is lost that a scale by factors could show."""
ROUNDED = {"logits": ("attention logits",), "all": ("weights", "activations")}


def of_outliers(opened: Opened) -> Measured:
    """Measure the largest |x| of attention logits and hidden states of all layers, and the loss with few bits.

    logits_top and hidden_top are the largest; _median and _kurtosis say of what. logits_rise_N and all_rise_N are the
    nats a token that rounding attention logits alone, or weights and activations, to N bits adds: absmax, one scale a
    tensor.
    """
    model, task = opened.trained
    found = activation_outliers(model, next(iter(task.evaluation(size=READ))).inputs)
    extremes = {one.name: one for one in found.over_all}
    figures: dict[str, float] = {}
    for short, name in (("logits", LOGITS), ("hidden", HIDDEN)):
        one = extremes[name]
        figures |= {f"{short}_top": float(one.top[0]), f"{short}_median": one.median, f"{short}_kurtosis": one.kurtosis}
    curves = {}
    for short, of in ROUNDED.items():
        quality = quantisation(model, islice(task.evaluation(), BATCHES), BITS, of)  # type: ignore[arg-type]
        curves[short] = quality.loss_change.tolist()
        figures |= {f"{short}_rise_{bits}": rise for bits, rise in zip(BITS, curves[short], strict=True)}
    return Measured(figures, {"bits": list(BITS), **curves})


def pictures(result: StudyResult) -> list[Picture]:
    """Give the loss that few bits add, of attention logits alone and of weights and activations."""
    drawn = []
    for short, words in (("logits", "attention logits alone"), ("all", "weights and activations")):
        series = {}
        for row in result.rows:
            spreads = [row.spread(f"{short}_rise_{bits}") for bits in BITS]
            if all(spread is not None and math.isfinite(spread.mean) for spread in spreads):
                pairs = sorted(zip(BITS, (spread.mean for spread in spreads if spread is not None), strict=True))
                few = [(float(bits), rise) for bits, rise in pairs if bits <= DRAWN]
                series[row.name] = ([bits for bits, _ in few], [rise for _, rise in few])
        if series:
            by_factors = all(rise > 0 for _, rises in series.values() for rise in rises)
            drawn.append(
                lines(
                    series,
                    x="bits",
                    y="nats a token more than as it is" + ", by factors" * by_factors,
                    log_y=by_factors,
                    title=f"What few bits cost: {words}",
                    caption="Absmax, one scale a tensor; mean of the seeds.",
                    name=f"bits-{short}",
                )
            )
    return drawn


_EQUAL = equal(ARMS)
_PUBLISHED = {
    "softmax": {"logits_top": "318.0", "logits_median": "5.4", "hidden_top": "3608.6", "hidden_median": "0.6"},
    "differential": {"logits_top": "38.8", "logits_median": "3.3", "hidden_top": "1688.2", "hidden_median": "1.2"},
}

STUDY = Study(
    name="diff-outliers",
    title="Outliers and few bits",
    asks="Has differential attention smaller outliers, and does it lose less when attention logits, or weights and "
    "activations, are rounded to few bits?",
    source=f"{SOURCE}: table 5 and figure 8, 3B parameters",
    rows=tuple(Row(variant, f"{variant}, RoPE, trained on Shakespeare", _EQUAL[variant], measure=of_outliers,
                   published=_PUBLISHED.get(variant, {})) for variant in ARMS),
    claims=(
        *(Claim(f"The largest attention logit of {name} is less than half of softmax's.",
                figure(version, "logits_top") / figure("softmax", "logits_top"),
                "38.8 against 318.0, or 0.12" if version == "differential" else None, "at most a half",
                at_most=0.5, unit="times") for version, name in VERSIONS.items()),
        *(Claim(f"The largest hidden state of {name} is smaller than softmax's.",
                figure(version, "hidden_top") / figure("softmax", "hidden_top"),
                "1688.2 against 3608.6, or 0.47" if version == "differential" else None, "which is larger is the claim",
                at_most=1.0, strict=True, unit="times") for version, name in VERSIONS.items()),
        *(Claim(f"Rounding {words} to four bits costs {name} less than softmax.",
                figure(version, f"{short}_rise_4") - figure("softmax", f"{short}_rise_4"),
                "with 4 bits as good as softmax with 6 bits" if (version, short) == ("differential", "logits")
                else None, "the sign is the claim", at_most=0.0, strict=True, unit="nats a token")
          for version, name in VERSIONS.items()
          for short, words in (("logits", "attention logits"), ("all", "weights and activations"))),
        Claim("Rounding attention logits to four bits costs version 1 no more than six bits cost softmax.",
              figure("differential", "logits_rise_4") - figure("softmax", "logits_rise_6"),
              "comparable accuracy on HellaSwag", "at most a hundredth of a nat more", at_most=0.01,
              unit="nats a token"),
    ),
    efforts={"quick": Effort(4, {"steps": 100, "evaluate_every": 100}, minutes=2.5), "full": Effort(10, minutes=13)},
    task=SHAKESPEARE,
    settings={**SETTINGS, **STEPS},
    figures=("logits_top", "logits_kurtosis", "hidden_top", "hidden_kurtosis", "logits_rise_4", "all_rise_4"),
    choices=("The models are those of diff-lm on Shakespeare, at equal parameters.",
             "Quality is the loss on text where the paper counts answers on HellaSwag.",
             "What is rounded is rounded as it is computed, to the nearest of 2^N − 1 values, one scale a tensor.",
             UNCHECKED),
    remarks=("The largest attention logit is 22 to 27 here, 318 in the paper's softmax: two blocks after 500 steps "
             "have no outliers yet that a difference of maps could do away with.",
             "So few bits cost all alike: four-bit attention logits 0.06 to 0.07 nats, four-bit weights and "
             "activations 0.45 to 0.48. Six-bit logits cost softmax 0.003, which four bits cannot reach."),
    pictures=pictures,
)  # fmt: skip
