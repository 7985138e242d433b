"""What a study would do, said before anything is run or written."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headstock.model.accounting import parameters
from headstock.pictures.numbers import count
from headstock.studies.base import Budget, Study
from headstock.studies.judging import ONE_SEED, judge, one_seed_decides
from headstock.studies.measuring import is_of_other_code
from headstock.studies.plan import StudyPlan, make_plan
from headstock.studies.runs import RowResult
from headstock.studies.store import default_folder, held_plan, kept_in


@dataclass(frozen=True)
class RowForecast:
    """One row, its seeds, and how many of them the folder holds."""

    name: str
    says: str
    steps: int
    parameters: int
    seeds: int
    there: int


@dataclass(frozen=True)
class Foreseen:
    """The plan, and what it can decide."""

    name: str
    title: str
    asks: str
    budget: str
    seeds: int
    folder: str
    rows: list[RowForecast]
    said: str
    """How much is left to do."""
    undecidable: list[str]
    """The claims that nothing at this budget decides, with the reason."""

    def to_dict(self) -> dict[str, Any]:
        """Give everything as JSON's values."""
        return asdict(self)


def foreseen(
    study: Study,
    budget: Budget,
    *,
    out: Path | None = None,
    seeds: int | None = None,
    steps: int | None = None,
    device: str | None = None,
    fresh: bool = False,
) -> Foreseen:
    """Work out what `run_study` would do. Raises UserError as it would for what cannot be run."""
    folder = default_folder(study.name, budget, steps) if out is None else out
    held = held_plan(folder)
    there = None if fresh else held
    plan = make_plan(study, budget, seeds, steps, device or str((there or {}).get("device") or "cpu"))
    rows = [_row(plan, folder, place, there is not None) for place in range(len(plan.rows))]
    return Foreseen(
        name=study.name,
        title=study.title,
        asks=study.asks,
        budget=budget,
        seeds=plan.seeds,
        folder=str(folder),
        rows=rows,
        said=_work(plan, rows, folder),
        undecidable=_undecidable(plan),
    )


def _row(plan: StudyPlan, folder: Path, place: int, there: bool) -> RowForecast:
    row = plan.rows[place]
    seeds = plan.seeds_of_row(row)
    if not row.variant:
        files = [folder / "rows" / f"{row.name}-seed{seed}.json" for seed in range(seeds)]
        kept = [kept_in(file) for file in files if there]
        done = sum(one is not None and not is_of_other_code(row, one) for one in kept)
        return RowForecast(row.name, row.says, 0, 0, seeds, done)
    cells = [plan.cell(row, seed) for seed in range(seeds)]
    done = sum(there and (folder / "cells" / cell.folder_name / "result.json").exists() for cell in cells)
    return RowForecast(row.name, row.says, cells[0].training.steps, parameters(cells[0].model).total, seeds, done)


def _work(plan: StudyPlan, rows: list[RowForecast], folder: Path) -> str:
    total = sum(row.seeds for row in rows)
    missing = total - sum(row.there for row in rows)
    if not missing:
        return f"{count(total, 'run')}, all of which {folder} holds: nothing is left to run."
    minutes = plan.study.efforts[plan.budget].minutes
    about = (
        "" if minutes is None or plan.steps is not None else f" All of it takes about {minutes:g} minutes on two cores."
    )
    known = f", of which {folder} holds {total - missing}" if missing < total else ""
    return f"{count(total, 'run')}{known}.{about} Nothing was written."


def _undecidable(plan: StudyPlan) -> list[str]:
    """Give what no outcome could change: claims of another budget, and those of one seed without a spread."""
    rows = [RowResult(row.name, row.says, row.variant, "", 0, row.published, ()) for row in plan.rows]
    seeds = {row.name: plan.seeds_of_row(row) for row in plan.rows}
    ruled_out, of_one_seed = [], []
    for judgement in judge(plan.study, rows, as_published=plan.as_published):
        claim = judgement.claim
        if judgement.why != "Nothing was run.":
            ruled_out.append(f"Not decidable at this budget: {claim.says} {judgement.why}")
        elif not one_seed_decides(plan.study, claim) and 1 in (seeds[row] for row, _ in claim.ours.reads()):
            of_one_seed.append(f"Not decidable at this budget: {claim.says} {ONE_SEED}")
    if of_one_seed and len(ruled_out + of_one_seed) == len(plan.study.claims):
        of_one_seed = [
            "One seed decides no claim of this study, for its spread from seed to seed is not known: ask for more."
        ]
    return ruled_out + of_one_seed
