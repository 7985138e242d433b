"""One run by itself: planned as a comparison would plan it, and opened again later.

Knows nothing of how a run is asked for or shown.
"""

from collections.abc import Callable
from pathlib import Path

from headstock.checkpoints.files import read_json
from headstock.checkpoints.native import load
from headstock.comparison.plan import Cell, make_plan
from headstock.comparison.request import Request
from headstock.errors import UserError
from headstock.model.mixers import told_of
from headstock.model.transformer import Transformer
from headstock.tasks import parse
from headstock.tasks.base import Task
from headstock.training.loop import Progress
from headstock.training.run import RunResult, run


def single_cell(request: Request, seed: int) -> Cell:
    """Give the run that a comparison of one variant on one task would make with a seed.

    Raises UserError for whatever in it cannot be run.
    """
    plan = make_plan(request)
    on = plan.tasks[0]
    return plan.cell(on, on.arms[0], seed, request.lr)


def train_cell(cell: Cell, folder: Path, on_progress: Callable[[Progress], None] | None = None) -> RunResult:
    """Train it in a folder, going on where an earlier call stopped. Raises UserError as `training.run.run` does."""
    with told_of(cell.model.mixer):
        return run(
            folder,
            cell.model,
            cell.training,
            cell.task,
            # A run that stands alone says where its data came from; a comparison's runs have its plan for that.
            {**cell.description(), "task_spec": _spec(cell, folder)},
            device=cell.device,
            tokenizer=cell.task.tokenizer,
            may_look_ahead=not cell.task.causal,
            start=cell.start,
            probes=cell.task.probes(),
            on_progress=on_progress,
        )


def _spec(cell: Cell, folder: Path) -> str:
    """Give the task's spec; in a folder that already holds the run, the one there: the same text may have moved."""
    if (folder / "run.json").exists():
        held = read_json(folder / "run.json", "the description of a run")
        if isinstance(held, dict) and held.get("task_hash") == cell.task.content_hash and "task_spec" in held:
            return str(held["task_spec"])
    return cell.task.spec


def open_model(folder: Path, device: str = "cpu") -> Transformer:
    """Give the model that a run or `headstock.save` left in a folder.

    Raises UserError where there is none: no folder, a comparison, a run that has not finished, a damaged model.
    """
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: give that of a run or of a saved model.")
    if (folder / "plan.json").exists():
        plan = read_json(folder / "plan.json", "a plan")
        what = "study" if isinstance(plan, dict) and "study" in plan else "comparison"
        example = next(iter(sorted((folder / "cells").glob("*/config.json"))), None)
        such = f", such as {example.parent}" if example is not None else ""
        raise UserError(f"{folder} holds a {what}, which has many models: give one of its runs{such}.")
    if (folder / "run.json").exists():
        result = RunResult.read(folder)
        if result is None:
            raise UserError(f"{folder} holds a run that has not finished: let it finish first, by the command it had.")
        if result.status == "failed":
            raise UserError(f"{folder} holds a run that failed, so it has no model: {result.reason}.")
    return load(folder, device=device)


def task_of(folder: Path) -> Task:
    """Make the task that a run was trained on. Raises UserError where that is not known, or has changed since."""
    if not (folder / "run.json").exists():
        raise UserError(f"{folder} does not say what it was trained on: name a task, as in --task text.")
    described = read_json(folder / "run.json", "the description of a run")
    if not isinstance(described, dict):
        raise UserError(f"{folder / 'run.json'} is not the description of a run: name a task, as in --task text.")
    specs = [described["task_spec"]] if "task_spec" in described else _specs_of_the_comparison(folder)
    known = described.get("task_hash")
    for spec in map(str, [*specs, described.get("task", "")]):
        try:
            task = parse(spec)
        except UserError:
            continue
        if task.content_hash == known:
            return task
    raise UserError(
        f"the data that {folder} was trained on are not here any more, or have changed: name a task, as in --task text."
    )


def _specs_of_the_comparison(folder: Path) -> list[str]:
    plan = folder.resolve().parent.parent / "plan.json"
    if not plan.exists():
        return []
    try:
        return [task["task"] for task in read_json(plan, "the plan of a comparison")["tasks"]]
    except (TypeError, KeyError):
        return []  # no plan of ours: the data are not found then
