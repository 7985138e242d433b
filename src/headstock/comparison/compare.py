"""Comparing, from the request to the answer: plan, tune, run, look, judge."""

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headstock.checkpoints.files import read_json, write_json
from headstock.comparison.collecting import collected
from headstock.comparison.engine import Event, run_cells
from headstock.comparison.plan import Plan, make_plan
from headstock.comparison.request import Budget, Match, Request
from headstock.comparison.results import Comparison
from headstock.comparison.saved_models import compiled_arm
from headstock.comparison.store import ANOTHER_FOLDER, Store, held, put_aside, refuse_foreign
from headstock.comparison.timing import with_equal_time
from headstock.comparison.tuning import tuned
from headstock.errors import UserError
from headstock.tasks.base import hash_of

Watch = Callable[[Event, int, int], None]
"""Called with what happened, and how many cells of how many are over."""


def plan_for(request: Request, folder: Path | None = None) -> Plan:
    """Give the plan; steps matched by time are measured, or read from the folder's plan where they were before."""
    plan = make_plan(request)
    if request.match != "time":
        return plan
    if folder is not None and (folder / "plan.json").exists():
        return _with_steps_of(plan, read_json(folder / "plan.json", "the plan of a comparison", ANOTHER_FOLDER))
    return with_equal_time(plan)


def default_folder(request: Request) -> Path:
    """Give where a comparison goes that was given no folder: the same question again is the same folder again."""
    asked = hash_of(request.model_dump(mode="json", exclude={"seeds"}))
    return Path("runs") / f"compare-{asked[:8]}"


def run_comparison(
    request: Request,
    *,
    out: Path | None = None,
    jobs: int | None = None,
    fresh: bool = False,
    command: str = "",
    watch: Watch | None = None,
) -> Comparison:
    """Run what is missing of a comparison, judge it, and write comparison.json and report.html beside the runs.

    jobs: processes at a time; one a core where not given. fresh: put what the folder holds aside and start anew.
    Raises UserError for a request that cannot be run or a folder that holds something else; KeyboardInterrupt leaves
    a folder from which the same call goes on.
    """
    if jobs is not None and jobs < 1:
        raise UserError(f"jobs is {jobs}: give 1 or more.")
    folder = default_folder(request) if out is None else out
    make_plan(request)  # refused before anything is put aside or written
    refuse_foreign(folder)
    if fresh and folder.exists():
        with held(folder):  # not away from under a process that writes there
            put_aside(folder)
    with held(folder):
        plan = plan_for(request, folder)
        store = Store(folder, plan)
        jobs = jobs or cores()
        rates, tunings = tuned(plan, store, jobs, _counted(watch, len(plan.tuning_cells())))
        cells = plan.reported_cells(rates)
        run_cells(cells, store, jobs, _counted(watch, len(cells)))
        comparison = collected(plan, store, rates, tunings, command or _command_that_asks(request))
        store.count_look(request.seeds, [verdict.sentence for verdict in comparison.verdicts if verdict.claim])
        write_json(folder / "comparison.json", comparison.to_dict())
        comparison.report(folder / "report.html")
    return comparison


def cores() -> int:
    """Give how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compare(
    variants: Sequence[Any],
    *,
    task: str | Sequence[str] = "crossing",
    seeds: int = 8,
    steps: int | None = None,
    lr: float = 1e-3,
    batch_size: int = 32,
    budget: Budget = "quick",
    match: Match = "params",
    tune: int = 0,
    settings: dict[str, Any] | None = None,
    device: str = "cpu",
    jobs: int | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Comparison:
    """Compare ways of attending: train every variant on every task with every seed, and judge.

    variants: the first is the baseline; lines, mixer classes, and compiled programs, which are saved into the
    comparison's folder and trained on, or, as (compiled, "frozen=true"), scored as they are. task: one or several, as
    `headstock list tasks` writes them. settings: ModelConfig's and TrainingConfig's fields for all arms. The other
    options are those of `headstock compare`. Runs that the folder `out` already holds are not run again. Works from a
    script or a notebook alike.

    Raises UserError, in one sentence, for anything that cannot be compared.
    """
    if isinstance(variants, str):  # a line would be taken letter by letter
        raise UserError(f"{variants!r} is one line, not several: write [{variants!r}, ...].")
    programs = {place: found for place, variant in enumerate(variants) if (found := compiled_arm(variant))}
    names = [
        programs[place].placeholder if place in programs else _reference(variant)
        for place, variant in enumerate(variants)
    ]
    request = Request(
        variants=tuple(names),
        tasks=(task,) if isinstance(task, str) else tuple(task),
        settings=tuple(
            (key, str(value).lower() if isinstance(value, bool) else str(value))
            for key, value in (settings or {}).items()
            if value is not None  # which stands for the default
        ),
        seeds=seeds,
        steps=steps,
        budget=budget,
        lr=lr,
        batch_size=batch_size,
        match=match,
        tune=tune,
        device=device,
    )
    folder = None if out is None else Path(out)
    if programs:
        folder = default_folder(request) if folder is None else folder
        refuse_foreign(folder)
        with held(folder):
            if fresh:
                put_aside(folder)
                fresh = False
        lines = [programs[place].saved_in(folder) if place in programs else name for place, name in enumerate(names)]
        request = request.model_copy(update={"variants": tuple(lines)})
    return run_comparison(request, out=folder, jobs=jobs, fresh=fresh)


def _reference(variant: object) -> str:
    """Give the variant that names a class, where a class was given."""
    if isinstance(variant, str):
        return variant
    if isinstance(variant, type):
        return f"{variant.__module__}:{variant.__qualname__}"
    raise UserError(
        f"{variant!r} is no variant: give a line such as 'softmax+rope', a mixer class from a file, or a compiled "
        f"program."
    )


def _counted(watch: Watch | None, total: int) -> Callable[[Event], None]:
    over = 0

    def on_event(event: Event) -> None:
        nonlocal over
        over += event.kind in ("known", "finished", "failed")
        if watch is not None:
            watch(event, over, total)

    return on_event


def _with_steps_of(plan: Plan, held_plan: Any) -> Plan:
    """Give the plan with the steps that were measured when the folder's plan was made, where it is of the same arms."""
    try:
        steps = {(task["task"], arm["label"]): int(arm["steps"]) for task in held_plan["tasks"] for arm in task["arms"]}
        tasks = tuple(
            replace(on, arms=tuple(replace(arm, steps=steps[on.task.spec, arm.label]) for arm in on.arms))
            for on in plan.tasks
        )
    except (KeyError, TypeError, ValueError):
        return plan  # another plan's: the store says so
    return replace(plan, tasks=tasks)


def _command_that_asks(request: Request) -> str:
    """Write the command that asks the same."""
    words = ["headstock", "compare", *request.variants]
    for task in request.tasks:
        words += ["--task", task]
    for key, value in request.settings:
        words += ["--set", f"{key}={value}"]
    defaults = Request(variants=request.variants, tasks=request.tasks)
    for key, option in _OPTIONS.items():
        if getattr(request, key) != getattr(defaults, key):
            words += [option, str(getattr(request, key))]
    return shlex.join(words)


_OPTIONS = {
    "seeds": "--seeds",
    "steps": "--steps",
    "budget": "--budget",
    "lr": "--lr",
    "batch_size": "--batch",
    "match": "--match",
    "tune": "--tune",
    "device": "--device",
}
