"""`headstock compare`: the main job."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from headstock.cli.layout import columns, filled, print_json, results_alone
from headstock.cli.options import (
    AsJson,
    BatchSize,
    Device,
    Flag,
    Rate,
    Settings,
    Steps,
    Tasks,
    Whole,
    command_again,
    device_named,
    refuse_settings_among,
    settings_of,
)
from headstock.cli.progress import ComparisonProgress

if TYPE_CHECKING:
    from headstock.comparison.forecast import Forecast, TaskForecast
    from headstock.comparison.results import Comparison

DEFAULT_TASKS = ["crossing", "text"]


def compare(
    *variants: Annotated[
        str,
        Parameter(
            help="MIXER[+POSITION][,key=value...], as `headstock list variants` names them; the first is the baseline."
        ),
    ],
    task: Tasks = None,
    settings: Settings = None,
    seeds: Annotated[Whole, Parameter(help="Runs of every arm; the same seed pairs the arms.")] = 8,
    steps: Steps = None,
    lr: Rate = 1e-3,
    batch_size: BatchSize = 32,
    budget: Annotated[
        Literal["quick", "full"], Parameter(help="How long a task trains where --steps says nothing.")
    ] = ("quick"),
    match: Annotated[
        Literal["params", "flops", "time", "none"],
        Parameter(help="What is made equal between the arms before they are compared."),
    ] = "params",
    tune: Annotated[
        Whole, Parameter(help="Learning rates tried for every arm alike, on seeds that are not reported; 0 for none.")
    ] = 0,
    jobs: Annotated[Whole | None, Parameter(help="Runs at a time [default: one a core].")] = None,
    device: Device = "auto",
    out: Annotated[
        Path | None, Parameter(help="Folder of the comparison [default: runs/compare-..., the same for the same plan].")
    ] = None,
    fresh: Annotated[bool, Flag, Parameter(help="Put what the folder holds aside, and start anew.")] = False,
    dry_run: Annotated[
        bool, Flag, Parameter(help="Print the plan, the minutes it takes and what it could claim; write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Compare ways of attending: train every variant on every task with every seed, and judge.

    Without --task the tasks are crossing and text. A comparison that was stopped, in whatever way, goes on by the same
    command; asking again with more seeds adds them, and is counted as another look. Exit status 1 says that the answer
    stands but that some runs failed.
    """
    refuse_settings_among(variants)
    pairs = settings_of(settings)

    from headstock.comparison.request import Request

    request = Request(
        variants=variants,
        tasks=tuple(task or DEFAULT_TASKS),
        settings=pairs,
        seeds=seeds,
        steps=steps,
        budget=budget,
        lr=lr,
        batch_size=batch_size,
        match=match,
        tune=tune,
        device=device_named(device),
    )
    if dry_run:
        from headstock.comparison.forecast import forecast

        with results_alone():
            foreseen = forecast(request, out=out, jobs=jobs, fresh=fresh)
        if as_json:
            print_json(foreseen.to_dict())
        else:
            print(_plan(foreseen))
        return 0

    from headstock.comparison.compare import run_comparison

    with ComparisonProgress() as watch, results_alone():
        comparison = run_comparison(request, out=out, jobs=jobs, fresh=fresh, command=command_again(), watch=watch)
    if as_json:
        print_json(comparison.to_dict())
    else:
        print(comparison.table())
        print(f"Report: {Path(comparison.folder) / 'report.html'}")
    return _failed_runs(comparison)


def _failed_runs(comparison: "Comparison") -> int:
    """Say how many runs failed; give the exit status."""
    cells = [cell for task in comparison.tasks for arm in task.arms for cell in arm.cells]
    failed = [cell for cell in cells if cell.status == "failed"]
    if not failed:
        return 0
    said = " ".join((failed[0].reason or "").split())
    print(f"headstock: {len(failed)} of {len(cells)} runs failed, the first because {said}", file=sys.stderr)
    return 1


def _plan(foreseen: "Forecast") -> str:
    blocks = [_task(task) for task in foreseen.tasks]
    blocks.append("Made equal, and what still differs\n" + "\n".join(filled(said, "  ") for said in foreseen.matching))
    blocks.append("What can be claimed\n" + "\n".join(filled(said, "  ") for said in foreseen.reach))
    blocks.append(filled(_work(foreseen)))
    return "\n\n".join(blocks)


def _task(task: "TaskForecast") -> str:
    rows = [["arm", "steps", "d_ff", "parameters", "FLOPs/token", "cache bytes", "ms/step"]]
    rows += [
        [
            arm.label + (" (floor)" if arm.floor else ""),
            f"{arm.steps:,}" if arm.steps else "not trained",
            f"{arm.d_ff:,}",
            f"{arm.parameters:,}",
            f"{arm.flops_per_token:,}",
            f"{arm.cache_bytes:,}",
            f"{1000 * arm.seconds_per_step:.1f}" if arm.steps else "—",
        ]
        for arm in task.arms
    ]
    said = f"{task.name}: evaluated every {task.evaluate_every} steps"
    return f"{said}\n{columns(rows, indent='  ', numbers=range(1, 7))}"


def _work(foreseen: "Forecast") -> str:
    missing = foreseen.runs - foreseen.known
    known = f", of which {foreseen.folder} holds {foreseen.known}" if foreseen.known else ""
    if not missing:
        return f"{foreseen.runs} runs{known}: nothing is left to run."
    minutes = foreseen.seconds / 60
    about = "less than a minute" if minutes < 1 else f"about {minutes:.0f} minutes"
    return (
        f"{foreseen.runs} runs{known}: {about}, {foreseen.jobs} at a time. That is an estimate: a few steps of every "
        f"arm were timed on this machine just now, one arm at a time. Nothing was written."
    )
