"""`headstock eval`: score a model."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from headstock.cli.by_difficulty import probes_table
from headstock.cli.layout import print_json, results_alone
from headstock.cli.options import AsJson, Device, device_named
from headstock.cli.train import metrics_table
from headstock.errors import UserError


def evaluate(
    folder: Annotated[Path, Parameter(name="DIR", help="Folder of a run, or of a saved model.")],
    /,
    *,
    task: Annotated[
        str | None, Parameter(help="NAME[,key=value...] [default: the task that the run was trained on].")
    ] = None,
    split: Annotated[
        Literal["held-out", "train"] | None, Parameter(help="One split alone [default: both, side by side].")
    ] = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> int:
    """Score a model on a task's fixed held-out set, and on as much of what was trained on.

    Every target counts once, so that no figure depends on how the set is cut into batches. Where the task knows of
    difficulties, such as a depth or a length, each is scored by itself too, on held-out rows.
    """
    from headstock.comparison.fitting import refuse_misfit
    from headstock.comparison.single import open_model, task_of
    from headstock.model.mixers import told_of
    from headstock.programs.saving.vocabulary import holds_program
    from headstock.tasks import parse
    from headstock.training import evaluation
    from headstock.training.run import probed

    if task is None and holds_program(folder):
        raise UserError(
            f"{folder} holds a compiled program, which no task was set: run it by headstock run, or name a task."
        )
    splits: tuple[Literal["held-out", "train"], ...] = ("held-out", "train") if split is None else (split,)
    with results_alone():
        model = open_model(folder, device_named(device))
        made = parse(task) if task is not None else task_of(folder)
        refuse_misfit(folder, model, made)
        with told_of(model.config.mixer):
            metrics: dict[str, dict[str, float]] = {one: evaluation.evaluate(model, made, one) for one in splits}
            probes = probed(model, made.probes(), made.bytes_per_token) if "held-out" in splits else []
    if as_json:
        told = {"folder": str(folder), "task": made.spec, "task_hash": made.content_hash}
        print_json({**told, "metrics": metrics, "probes": probes})
    else:
        print(f"{model.config.variant} on {made.spec}")
        print(metrics_table(metrics))
        if probes:
            print(probes_table(probes, made.primary.name))
    return 0
