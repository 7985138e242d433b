"""`headstock train`: one run."""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from headstock.cli.by_difficulty import probes_table
from headstock.cli.layout import columns, print_json, results_alone
from headstock.cli.options import (
    AsJson,
    BatchSize,
    Device,
    Rate,
    Settings,
    Steps,
    Whole,
    device_named,
    refuse_settings_among,
    settings_of,
)
from headstock.cli.progress import RunProgress


def train(
    variant: Annotated[
        str, Parameter(help="MIXER[+POSITION][,key=value...], as `headstock list variants` names them.")
    ],
    /,
    *,
    task: Annotated[str, Parameter(help="NAME[,key=value...], as `headstock list tasks` names them.")] = "text",
    settings: Settings = None,
    seed: Annotated[Whole, Parameter(help="Fixes the order of the data and every number drawn.")] = 0,
    steps: Steps = None,
    lr: Rate = 1e-3,
    batch_size: BatchSize = 32,
    out: Annotated[
        Path | None, Parameter(help="Folder of the run [default: a name in runs/, the same for the same run].")
    ] = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> int:
    """Train one model, in a folder that anyone can read.

    The defaults are those of `headstock compare`, so that a run is the one a comparison would make. A run that was
    stopped goes on by the same command, and ends with the same numbers. Exit status 1 says that training failed.
    """
    refuse_settings_among([variant])
    pairs = settings_of(settings)

    from headstock.comparison.request import Request
    from headstock.comparison.single import single_cell, train_cell

    request = Request(
        variants=(variant,),
        tasks=(task,),
        settings=pairs,
        steps=steps,
        lr=lr,
        batch_size=batch_size,
        match="none",
        device=device_named(device),
    )
    with results_alone():
        cell = single_cell(request, seed)
    folder = Path("runs") / cell.folder_name if out is None else out
    with RunProgress(cell.training.steps, cell.task.primary.name) as watch, results_alone():
        result = train_cell(cell, folder, on_progress=watch)
    if result.status == "failed":
        print(f"headstock: the run failed: {result.reason}", file=sys.stderr)
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "status": result.status,
                "reason": result.reason,
                "steps": result.steps_done,
                "seconds_per_step": result.seconds_per_step,
                "metrics": result.metrics,
                "curve": result.curve,
                "probes": result.probes,
            }
        )
    elif result.metrics:
        print(
            f"{cell.label} on {cell.task.spec}, {result.steps_done} steps, {1000 * result.seconds_per_step:.1f} ms each"
        )
        print(metrics_table(result.metrics))
        if result.probes:
            print(probes_table(result.probes, cell.task.primary.name))
        print(f"Run: {folder}")
    return 0 if result.status == "finished" else 1


def metrics_table(metrics: dict[str, dict[str, float]]) -> str:
    """Set metrics by split side by side."""
    splits = list(metrics)
    names = list(metrics[splits[0]])
    rows: list[list[Any]] = [["", *splits]]
    rows += [[name.replace("_", " "), *(f"{metrics[split][name]:.4f}" for split in splits)] for name in names]
    return columns(rows, indent="  ", numbers=range(1, len(splits) + 1))
