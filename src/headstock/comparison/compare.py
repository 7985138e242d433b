"""Comparing, from the request to the answer: plan, tune, run, look, judge."""

import os
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch

from headstock.checkpoints.files import read_json, write_json
from headstock.checkpoints.native import load
from headstock.comparison.engine import Event, run_cells
from headstock.comparison.hypotheses import ArmResult, TaskResult, steps_to_solve
from headstock.comparison.plan import TUNING_SEEDS, ArmPlan, Cell, Plan, TaskPlan, make_plan
from headstock.comparison.request import Budget, Match, Request
from headstock.comparison.results import ArmOnTask, Attention, CellResult, Comparison, Cost, TaskOutcome, Tuning
from headstock.comparison.store import Store, held, put_aside, refuse_foreign
from headstock.comparison.timing import with_equal_time
from headstock.comparison.verdicts import judge
from headstock.errors import UserError
from headstock.tasks.base import Task, hash_of

LOSS_RESOLUTION = 1e-6
"""Bits or nats below which two mean losses in float32 do not differ."""

Watch = Callable[[Event, int, int], None]
"""Called with what happened, and how many cells of how many are over."""


def plan_for(request: Request, folder: Path | None = None) -> Plan:
    """Give the plan; steps matched by time are measured, or read from the folder's plan where they were before."""
    plan = make_plan(request)
    if request.match != "time":
        return plan
    if folder is not None and (folder / "plan.json").exists():
        return _with_steps_of(plan, read_json(folder / "plan.json", "the plan of a comparison"))
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
    if fresh:
        put_aside(folder)
    with held(folder):
        plan = plan_for(request, folder)
        store = Store(folder, plan)
        jobs = jobs or cores()
        rates, tunings = _tuned(plan, store, jobs, watch)
        cells = plan.reported_cells(rates)
        run_cells(cells, store, jobs, _counted(watch, len(cells)))
        look = store.count_look(request.seeds)
        comparison = _collected(plan, store, rates, tunings, look, command or _python_call(request))
        write_json(folder / "comparison.json", comparison.to_dict())
        comparison.report(folder / "report.html")
    return comparison


def cores() -> int:
    """Give how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compare(
    variants: Sequence[str],
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

    variants: the first is the baseline. task: one or several, as `headstock list tasks` writes them. settings:
    ModelConfig's and TrainingConfig's fields for all arms. The other options are those of `headstock compare`.
    Runs that the folder `out` already holds are not run again. Works from a script or a notebook alike.

    Raises UserError, in one sentence, for anything that cannot be compared.
    """
    names = [_reference(variant) for variant in variants]
    request = Request(
        variants=tuple(names),
        tasks=(task,) if isinstance(task, str) else tuple(task),
        settings=tuple(
            (key, str(value).lower() if isinstance(value, bool) else str(value))
            for key, value in (settings or {}).items()
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
    return run_comparison(request, out=None if out is None else Path(out), jobs=jobs, fresh=fresh)


def _reference(variant: object) -> str:
    """Give the variant that names a class, where a class was given."""
    if isinstance(variant, str):
        return variant
    if isinstance(variant, type):
        return f"{variant.__module__}:{variant.__qualname__}"
    raise UserError(f"{variant!r} is no variant: give a line such as 'softmax+rope', or a mixer class from a file.")


def _tuned(
    plan: Plan, store: Store, jobs: int, watch: Watch | None
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], Tuning]]:
    """Give the learning rate of every arm on every task, and how it was chosen."""
    arms = [(on, arm) for on in plan.tasks for arm in on.arms]
    if not plan.request.tune:
        return {(on.task.spec, arm.label): plan.request.lr for on, arm in arms}, {}
    cells = plan.tuning_cells()
    run_cells(cells, store, jobs, _counted(watch, len(cells)))
    tunings = {(on.task.spec, arm.label): _chosen(plan, on, arm, store) for on, arm in arms}
    return {key: tuning.chosen for key, tuning in tunings.items()}, tunings


def _chosen(plan: Plan, on: TaskPlan, arm: ArmPlan, store: Store) -> Tuning:
    values: list[float | None] = []
    for lr in plan.rates():
        found = [_primary(on.task, store, plan.cell(on, arm, seed, lr)) for seed in TUNING_SEEDS]
        known = [value for value in found if value is not None]
        values.append(fmean(known) if len(known) == len(found) else None)
    ranked = [(value, lr) for value, lr in zip(values, plan.rates(), strict=True) if value is not None]
    if not ranked:
        return Tuning(plan.rates(), values, plan.request.lr)
    best = min(ranked) if on.task.primary.better == "lower" else max(ranked)
    return Tuning(plan.rates(), values, best[1])


def _primary(task: Task, store: Store, cell: Cell) -> float | None:
    result = store.result(cell)
    return None if result is None or result.status == "failed" else result.metrics["held-out"][task.primary.name]


def _counted(watch: Watch | None, total: int) -> Callable[[Event], None]:
    over = 0

    def on_event(event: Event) -> None:
        nonlocal over
        over += event.kind in ("known", "finished", "failed")
        if watch is not None:
            watch(event, over, total)

    return on_event


def _collected(
    plan: Plan,
    store: Store,
    rates: dict[tuple[str, str], float],
    tunings: dict[tuple[str, str], Tuning],
    look: int,
    command: str,
) -> Comparison:
    outcomes = [_outcome(plan, on, store, rates, tunings) for on in plan.tasks]
    reach = plan.reach(look)
    first = plan.cell(
        plan.tasks[0], plan.tasks[0].arms[0], 0, rates[plan.tasks[0].task.spec, plan.tasks[0].arms[0].label]
    )
    environment_file = store.cell_folder(first) / "environment.json"
    return Comparison(
        title=f"{', '.join(arm.label for arm in plan.tasks[0].arms)} on {' and '.join(on.label for on in plan.tasks)}",
        command=command,
        date=time.strftime("%Y-%m-%d"),
        look=look,
        seeds=plan.request.seeds,
        match=plan.request.match,
        matching=plan.matching(),
        reach=list(reach.sentences),
        exploratory=reach.exploratory,
        verdicts=judge([_task_result(on, outcome) for on, outcome in zip(plan.tasks, outcomes, strict=True)], look),
        tasks=outcomes,
        environment=read_json(environment_file, "a run's environment") if environment_file.exists() else {},
        plan_hash=store.plan_hash,
        folder=str(store.folder),
    )


def _outcome(
    plan: Plan,
    on: TaskPlan,
    store: Store,
    rates: dict[tuple[str, str], float],
    tunings: dict[tuple[str, str], Tuning],
) -> TaskOutcome:
    task, card = on.task, on.task.card()
    arms = []
    for arm in on.arms:
        lr = rates[task.spec, arm.label]
        cells = [plan.cell(on, arm, seed, lr) for seed in range(plan.request.seeds)]
        results = [_cell_result(on, store, cell) for cell in cells]
        arms.append(
            ArmOnTask(
                label=arm.label,
                variant=arm.model.variant,
                floor=arm.floor,
                lr=lr,
                steps=arm.steps,
                cost=_cost(arm, results, store),
                cells=results,
                attention=_attention(task, results, store),
                tuning=tunings.get((task.spec, arm.label)),
            )
        )
    return TaskOutcome(
        name=on.label,
        spec=task.spec,
        title=card.title,
        metric=task.primary.name,
        unit=task.primary.unit,
        better=task.primary.better,
        solved_at=task.solved_at,
        chance=card.chance,
        content_hash=task.content_hash,
        context=task.context,
        batch_size=plan.request.batch_size,
        arms=arms,
    )


def _cell_result(on: TaskPlan, store: Store, cell: Cell) -> CellResult:
    result = store.result(cell)
    assert result is not None, "every cell has a result once run_cells has returned"
    solved_after = None
    if on.task.solved_at is not None and result.status == "finished":
        curve = [(int(entry["step"]), entry[on.task.primary.name]) for entry in result.curve]
        solved_after = steps_to_solve(curve, on.task.solved_at, on.task.primary.better)
    return CellResult(
        seed=cell.training.seed,
        lr=cell.training.lr,
        status=result.status,
        reason=result.reason,
        folder=str(store.cell_folder(cell).relative_to(store.folder)),
        metrics=result.metrics,
        curve=result.curve,
        steps_to_solve=solved_after,
        seconds_per_step=result.seconds_per_step,
    )


def _cost(arm: ArmPlan, results: list[CellResult], store: Store) -> Cost:
    finished = [result for result in results if result.status == "finished"]
    kernel = None
    if finished:
        kernel = read_json(store.folder / finished[0].folder / "environment.json", "a run's environment")["kernel"]
    return Cost(
        d_ff=arm.model.d_ff if arm.model.feedforward != "none" else 0,
        **asdict(arm.sizes),
        seconds_per_step=median(result.seconds_per_step for result in finished) if finished else None,
        kernel=kernel,
    )


def _attention(task: Task, results: list[CellResult], store: Store) -> Attention | None:
    """Look where the first seed's model attends, at the position that decides the task's telling example."""
    finished = [result for result in results if result.status == "finished"]
    if not finished:
        return None
    model = load(store.folder / finished[0].folder)
    if not model.config.n_layers:
        return None
    ids, position = task.telling_example()
    read = torch.tensor([ids[: position + 1]])
    with torch.no_grad():
        weights = model.weights(read)
        predicted = int(model(read)[0, -1].argmax())
    return Attention(
        labels=task.token_labels(ids[: position + 1]),
        position=position,
        weights=[layer[0, :, -1].double().tolist() for layer in weights],
        weights_are=model.blocks[0].mixer.weights_are,  # type: ignore[union-attr, arg-type]
        prediction=task.token_labels([predicted])[0],
        target=task.token_labels([ids[position + 1]])[0],
    )


def _task_result(on: TaskPlan, outcome: TaskOutcome) -> TaskResult:
    """Hand a task's figures to the statistics."""
    resolution = LOSS_RESOLUTION
    if outcome.metric == "accuracy":
        resolution = 1 / sum(int(batch.mask.sum()) for batch in on.task.evaluation())
    return TaskResult(
        task=outcome.name,
        metric=outcome.metric,
        unit=outcome.unit,
        better=outcome.better,
        solved_at=outcome.solved_at,
        budget_steps=max(arm.steps for arm in outcome.arms),
        resolution=resolution,
        arms=[
            ArmResult(
                label=arm.label,
                floor=arm.floor,
                values={
                    cell.seed: cell.metrics["held-out"][outcome.metric] if cell.metrics else None for cell in arm.cells
                },
                steps_to_solve={cell.seed: cell.steps_to_solve for cell in arm.cells},
            )
            for arm in outcome.arms
        ],
    )


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


def _python_call(request: Request) -> str:
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
