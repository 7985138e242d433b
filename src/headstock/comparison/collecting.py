"""Gathering what a comparison's runs found into one value, and handing its figures to the statistics."""

import time
from dataclasses import asdict
from pathlib import Path
from statistics import median

import torch

from headstock.checkpoints.files import read_json
from headstock.checkpoints.native import load
from headstock.comparison.difficulties import distinct, found_at
from headstock.comparison.looking import mass_over_seeds
from headstock.comparison.plan import ArmPlan, Cell, Plan, TaskPlan
from headstock.comparison.results import ArmOnTask, Attention, CellResult, Comparison, Cost, OnProbe, TaskOutcome
from headstock.comparison.statistics.hypotheses import ArmResult, TaskResult, steps_to_solve
from headstock.comparison.statistics.verdicts import judge
from headstock.comparison.store import Store
from headstock.comparison.tuning import Rates, Tunings
from headstock.errors import UserError
from headstock.model.mixers import mixer_class, told_of
from headstock.pictures.spreads import finite, spread_of
from headstock.tasks.base import Task
from headstock.training.run import RunResult

LOSS_RESOLUTION = 1e-6
"""Bits or nats below which two mean losses in float32 do not differ."""


def collected(
    plan: Plan,
    store: Store,
    rates: Rates,
    tunings: Tunings,
    command: str,
) -> Comparison:
    """Give the comparison of a plan whose every cell has a result, judged at the level of this look."""
    look = store.look_number(plan.request.seeds)
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
        earlier_claims=store.earlier_claims(plan.request.seeds),
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
    rates: Rates,
    tunings: Tunings,
) -> TaskOutcome:
    task, card = on.task, on.task.card()
    arms = []
    for arm in on.arms:
        lr = rates[task.spec, arm.label]
        seeds = range(plan.request.seeds)
        results = [_cell_result(on, store, plan.cell(on, arm, seed, lr), seed) for seed in seeds]
        arms.append(
            ArmOnTask(
                label=arm.label,
                variant=arm.variant,
                floor=arm.floor,
                lr=lr,
                steps=arm.steps,
                cost=_cost(arm, results, store),
                cells=results,
                attention=_attention(task, results, store),
                tuning=tunings.get((task.spec, arm.label)),
                probes=_on_probes(task, results[:1] if arm.frozen else results, store),
                mass=mass_over_seeds(task, _folders(results[:1] if arm.frozen else results, store)),
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


def _cell_result(on: TaskPlan, store: Store, cell: Cell, seed: int) -> CellResult:
    result = store.result(cell)
    assert result is not None, "every cell has a result once run_cells has returned"
    fixed = cell.start is not None and cell.start.frozen
    solved_after = None
    if on.task.solved_at is not None and result.status == "finished" and not fixed:  # which has no steps to solve
        curve = [(int(entry["step"]), entry[on.task.primary.name]) for entry in result.curve]
        solved_after = steps_to_solve(curve, on.task.solved_at, on.task.primary.better)
    return CellResult(
        seed=seed,
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
        path = store.folder / finished[0].folder / "environment.json"
        environment = read_json(path, "a run's environment")
        if not isinstance(environment, dict) or not isinstance(environment.get("kernel"), str):
            raise UserError(f"{path} is not a run's environment: delete the run's folder to run it again.")
        kernel = environment["kernel"]
    return Cost(
        d_ff=arm.model.d_ff if arm.model.feedforward != "none" else 0,
        **asdict(arm.sizes),
        seconds_per_step=None if arm.frozen or not finished else median(cell.seconds_per_step for cell in finished),
        kernel=kernel,
    )


def _attention(task: Task, results: list[CellResult], store: Store) -> Attention | None:
    """Look where the first seed's model attends, at the position that decides the task's telling example."""
    finished = [result for result in results if result.status == "finished"]
    if not finished:
        return None
    model = load(store.folder / finished[0].folder)
    kind = mixer_class(model.config.mixer)
    if not model.config.n_layers or kind.weights_are == "none":
        return None
    ids, position = task.telling_example()
    seen = ids[: position + 1] if task.causal else ids
    read = torch.tensor([seen])
    with torch.no_grad(), told_of(model.config.mixer):
        weights = model.weights(read)
        predicted = int(model(read)[0, position].argmax())
    return Attention(
        labels=task.token_labels(seen),
        position=position,
        weights=[layer[0, :, position].double().tolist() for layer in weights],
        weights_are=kind.weights_are,
        prediction=task.token_labels([predicted])[0],
        target=task.token_labels([task.telling_target()])[0],
    )


def _folders(results: list[CellResult], store: Store) -> list[Path]:
    return [store.folder / result.folder for result in results if result.status == "finished"]


def _on_probes(task: Task, results: list[CellResult], store: Store) -> list[OnProbe]:
    """Give the primary metric at each difficulty that a run of these was scored at; a run from before has none."""
    runs = [RunResult.read(store.folder / result.folder) for result in results]
    said = [[] if run is None else run.probes for run in runs]
    found: list[OnProbe] = []
    for at in distinct([probe["at"] for probes in said for probe in probes]):
        scores = [found_at(probes, at) for probes in said]
        values = [None if score is None else finite(score["metrics"].get(task.primary.name)) for score in scores]
        spread = spread_of(values)
        mean, deviation = (spread.mean, spread.deviation) if spread else (None, None)
        found.append(OnProbe(at, values, mean, deviation))
    return found


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
        budget_steps=max([arm.steps for arm in outcome.arms if arm.steps] or [on.steps]),
        resolution=resolution,
        arms=[
            ArmResult(
                label=arm.label,
                floor=arm.floor,
                values={
                    cell.seed: cell.metrics["held-out"][outcome.metric] if cell.metrics else None for cell in arm.cells
                },
                steps_to_solve={cell.seed: cell.steps_to_solve for cell in arm.cells},
                fixed=not arm.trained,
            )
            for arm in outcome.arms
        ],
    )
