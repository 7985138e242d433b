"""Where the models of an arm look for their answer: weight on the answer and on what distracts, over its seeds."""

from collections.abc import Sequence
from pathlib import Path

from headstock.checkpoints.native import load
from headstock.comparison.results import Mass, SpanMass
from headstock.instruments.mass import attention_mass
from headstock.model.mixers import mixer_class, told_of
from headstock.pictures.spreads import finite, spread_of
from headstock.tasks.base import Marks, Task

MOST_ROWS = 64


def mass_over_seeds(task: Task, folders: Sequence[Path]) -> Mass | None:
    """Give an arm's attention mass by span, mean over its models in these folders, each read on a few marked rows.

    A folder whose model is not there any more is left out, and counted. None where the task marks nothing, where no
    model is left, and where models have no weights.
    """
    marks = task.marks()
    if marks is None:
        return None
    few = Marks(
        marks.inputs[:MOST_ROWS],
        marks.queries[:MOST_ROWS],
        {name: span[:MOST_ROWS] for name, span in marks.spans.items()},
    )
    found = []
    there = [folder for folder in folders if (folder / "model.safetensors").exists()]
    for folder in there:
        model = load(folder)
        if not model.config.n_layers or mixer_class(model.config.mixer).weights_are == "none":
            return None
        with told_of(model.config.mixer):
            found.append(attention_mass(model, few))
    if not found:
        return None
    spans = []
    for span, uniform in found[0].uniform.items():
        shares = [finite(one.by_span()[span]) for one in found]
        sums = spread_of(one.by_span("sums")[span] for one in found)
        spread = spread_of(shares)
        spans.append(
            SpanMass(
                span=span,
                shares=shares,
                mean=spread.mean if spread else None,
                deviation=spread.deviation if spread else None,
                sum=sums.mean if sums else None,
                uniform=uniform,
            )
        )
    return Mass(spans, found[0].rows, found[0].weights_are, lacking=len(folders) - len(there))
