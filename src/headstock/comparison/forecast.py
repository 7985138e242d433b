"""What a comparison would be, were it run: its arms, its runs, the minutes it takes and what it could claim.

Writes nothing. The minutes are an estimate: a few steps and one evaluation of every arm are timed here and now, by
themselves, and runs that go on at the same time are taken not to slow each other down.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headstock.comparison.compare import cores, default_folder, plan_for
from headstock.comparison.plan import Cell, Plan, TaskPlan
from headstock.comparison.request import Request
from headstock.comparison.store import Store, refuse_foreign
from headstock.comparison.timing import seconds_per_evaluation, seconds_per_step
from headstock.errors import UserError


@dataclass(frozen=True)
class ArmForecast:
    """One arm on one task."""

    label: str
    variant: str
    """Complete: the line that makes its config."""
    floor: bool
    steps: int
    d_ff: int
    parameters: int
    non_embedding: int
    flops_per_token: int
    cache_bytes: int
    seconds_per_step: float
    seconds_per_evaluation: float


@dataclass(frozen=True)
class TaskForecast:
    """One task and its arms; the first is the baseline."""

    name: str
    spec: str
    evaluate_every: int
    arms: list[ArmForecast]


@dataclass(frozen=True)
class Forecast:
    """A plan and what is known of it beforehand."""

    folder: str
    tasks: list[TaskForecast]
    matching: list[str]
    reach: list[str]
    exploratory: bool
    look: int
    seeds: int
    runs: int
    """Tuning runs included."""
    known: int
    """Runs of these that the folder holds already."""
    jobs: int
    seconds: float
    """Estimated, of the runs that are missing."""

    def to_dict(self) -> dict[str, Any]:
        """Give everything as JSON's values."""
        return asdict(self)


def forecast(request: Request, *, out: Path | None = None, jobs: int | None = None, fresh: bool = False) -> Forecast:
    """Work the request out as `run_comparison` would, and run nothing.

    Raises UserError for whatever `run_comparison` would refuse.
    """
    if jobs is not None and jobs < 1:
        raise UserError(f"jobs is {jobs}: give 1 or more.")
    folder = default_folder(request) if out is None else out
    refuse_foreign(folder)
    plan = plan_for(request, None if fresh else folder)
    # A store writes only where there is no plan yet, so it is opened only where there is one.
    store = Store(folder, plan) if (folder / "plan.json").exists() and not fresh else None
    timed = [(on, seconds_per_step(plan, on), seconds_per_evaluation(plan, on)) for on in plan.tasks]
    seconds_of = {
        (on.task.spec, arm.label): (step, evaluation)
        for on, steps, evaluations in timed
        for arm, step, evaluation in zip(on.arms, steps, evaluations, strict=True)
    }
    wanted = _cells(plan)
    missing = [choices[0] for choices in wanted if store is None or not any(map(store.is_over, choices))]
    jobs = min(jobs or cores(), max(1, len(missing)))
    look = store.look_number(request.seeds) if store is not None else 1
    reach = plan.reach(look)
    return Forecast(
        folder=str(folder),
        tasks=[_on_task(*one) for one in timed],
        matching=plan.matching(),
        reach=list(reach.sentences),
        exploratory=reach.exploratory,
        look=look,
        seeds=request.seeds,
        runs=len(wanted),
        known=len(wanted) - len(missing),
        jobs=jobs,
        seconds=sum(_seconds(cell, *seconds_of[cell.task.spec, cell.label]) for cell in missing) / jobs,
    )


def _cells(plan: Plan) -> list[list[Cell]]:
    """Give every run; one that waits for its learning rate to be chosen, as one of several cells."""
    rates = plan.rates() or [plan.request.lr]
    reported = [
        [plan.cell(on, arm, seed, lr) for lr in rates]
        for seed in range(plan.request.seeds)
        for on in plan.tasks
        for arm in on.arms
        if not (arm.frozen and seed)  # one run for all seeds
    ]
    return [[cell] for cell in plan.tuning_cells()] + reported


def _seconds(cell: Cell, step: float, evaluation: float) -> float:
    evaluations = -(-cell.training.steps // cell.training.evaluate_every) + 1  # the training split, at the end
    return cell.training.steps * step + evaluations * evaluation


def _on_task(on: TaskPlan, steps: list[float], evaluations: list[float]) -> TaskForecast:
    arms = [
        ArmForecast(
            label=arm.label,
            variant=arm.variant,
            floor=arm.floor,
            steps=arm.steps,
            d_ff=arm.model.d_ff if arm.model.feedforward != "none" else 0,
            **asdict(arm.sizes),
            seconds_per_step=step,
            seconds_per_evaluation=evaluation,
        )
        for arm, step, evaluation in zip(on.arms, steps, evaluations, strict=True)
    ]
    return TaskForecast(on.label, on.task.spec, on.evaluate_every, arms)
