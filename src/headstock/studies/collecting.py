"""Gathering what lies in a study's folder into its result: whatever is there, whether or not all of it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headstock.checkpoints.files import read_json
from headstock.errors import UserError
from headstock.studies.base import Row
from headstock.studies.cells import StudyCell
from headstock.studies.judging import judge
from headstock.studies.measuring import is_of_other_code, trained_figures
from headstock.studies.plan import StudyPlan
from headstock.studies.results import StudyResult
from headstock.studies.runs import RowResult, RowRun
from headstock.studies.store import StudyStore, kept_in

Troubles = Mapping[tuple[str, int], str]
TOLD = ("headstock", "python", "torch", "machine", "processor", "device", "threads")


def collected(plan: StudyPlan, store: StudyStore, troubles: Troubles, command: str, date: str) -> StudyResult:
    """Give the result of a study; seeds that were asked for before and are there are part of it."""
    places: dict[str, list[str]] = {key: [] for key in TOLD}
    notes: list[str] = []
    rows = []
    for row in plan.rows:
        there = (seed + 1 for seed in range(store.seeds) if _is_there(plan, store, row, seed))
        seeds = range(max([plan.seeds_of_row(row), *there]))
        runs = tuple(_run(plan, store, row, seed, troubles, places, notes) for seed in seeds)
        cell = plan.cell(row, 0) if row.variant else None
        rows.append(
            RowResult(
                name=row.name,
                says=row.says,
                variant=cell.model.variant if cell is not None else "",
                task=cell.task.spec if cell is not None else row.task,
                steps=cell.training.steps if cell is not None else 0,
                published=dict(row.published),
                runs=runs,
            )
        )
    return StudyResult(
        study=plan.study,
        budget=plan.budget,
        steps=plan.steps,
        seeds=plan.seeds,
        rows=tuple(rows),
        judgements=tuple(judge(plan.study, rows, as_published=plan.as_published)),
        notes=tuple(dict.fromkeys(notes)),
        environment={key: values for key, values in places.items() if values},
        command=command,
        date=date,
        folder=str(store.folder),
    )


def _is_there(plan: StudyPlan, store: StudyStore, row: Row, seed: int) -> bool:
    if row.variant:
        return store.is_over(plan.cell(row, seed))
    kept = kept_in(store.figures_file(row, seed, None))
    return kept is not None and not is_of_other_code(row, kept)


def _run(
    plan: StudyPlan,
    store: StudyStore,
    row: Row,
    seed: int,
    troubles: Troubles,
    places: dict[str, list[str]],
    notes: list[str],
) -> RowRun:
    """Give one row with one seed; note where it was computed, and what a reader should know."""
    cell = plan.cell(row, seed) if row.variant else None
    trained: dict[str, Any] = {}
    figures: dict[str, float] = {}
    if cell is not None:
        result = store.result(cell)
        if result is None:
            return RowRun(seed, "missing")
        place = store.cell_folder(cell)
        _note(places, _environment(place / "environment.json"))
        trained = {
            "folder": str(place.relative_to(store.folder)),
            "curve": tuple(result.curve),
            "seconds_per_step": result.seconds_per_step,
        }
        if result.status == "failed":
            return RowRun(seed, "failed", result.reason, diverged=store.is_over(cell), **trained)
        figures = trained_figures(cell, result)
    if row.measure is None:
        return RowRun(seed, "finished", figures=figures, **trained)
    file = store.figures_file(row, seed, cell)
    kept = kept_in(file)
    if kept is None or (row.name, seed) in troubles:
        return _unmeasured(seed, troubles.get((row.name, seed)), figures, trained, cell)
    _note(places, kept.environment)
    if kept.note:
        notes.append(kept.note)
    if is_of_other_code(row, kept):
        notes.append(
            f"{row.name} was measured by code that has changed since: to have it measured again, and trained again "
            f"where its weights are gone, delete the figures.json of its runs."
        )
    return RowRun(seed, "finished", figures={**figures, **kept.figures}, details=kept.details, **trained)


def _unmeasured(
    seed: int, trouble: str | None, figures: dict[str, float], trained: dict[str, Any], cell: StudyCell | None
) -> RowRun:
    """Give a run of which nothing was measured: what its training gave stands all the same."""
    if trouble is not None:
        return RowRun(seed, "failed", trouble, figures=figures, **trained)
    reason = "trained, and not measured yet" if cell is not None else None
    return RowRun(seed, "missing", reason, figures=figures, **trained)


def _environment(file: Path) -> Mapping[str, Any]:
    if not file.exists():
        return {}
    found = read_json(file, "a run's environment")
    if not isinstance(found, dict):
        raise UserError(f"{file} is not a run's environment: restore it from a copy.")
    return found


def _note(places: dict[str, list[str]], environment: Mapping[str, Any]) -> None:
    for key in TOLD:
        if key in environment and str(environment[key]) not in places[key]:
            places[key].append(str(environment[key]))
