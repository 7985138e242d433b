"""Choosing a learning rate for every arm alike, on seeds that are not reported."""

from collections.abc import Callable
from statistics import fmean

from headstock.comparison.engine import Event, run_cells
from headstock.comparison.plan import TUNING_SEEDS, ArmPlan, Cell, Plan, TaskPlan
from headstock.comparison.results import Tuning
from headstock.comparison.store import Store
from headstock.tasks.base import Task

Rates = dict[tuple[str, str], float]
"""The learning rate of each (task spec, label)."""
Tunings = dict[tuple[str, str], Tuning]


def tuned(plan: Plan, store: Store, jobs: int, on_event: Callable[[Event], None]) -> tuple[Rates, Tunings]:
    """Give the learning rate of every arm on every task, and how it was chosen."""
    arms = [(on, arm) for on in plan.tasks for arm in on.arms]
    untuned = {(on.task.spec, arm.label): plan.request.lr for on, arm in arms}
    if not plan.request.tune:
        return untuned, {}
    run_cells(plan.tuning_cells(), store, jobs, on_event)
    tunings = {(on.task.spec, arm.label): _chosen(plan, on, arm, store) for on, arm in arms if not arm.frozen}
    return {**untuned, **{key: tuning.chosen for key, tuning in tunings.items()}}, tunings


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
