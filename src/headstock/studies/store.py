"""The folder of a study.

plan.json            what is asked; another budget in the same folder is refused, another row or claim is not
cells/NAME/          one training each; never computed again, also where its weights are not there any more
    figures.json     what was measured of its model beside
rows/ROW-seedN.json  what was measured of a row that trains nothing
again/NAME/          a training that was repeated because its weights were needed and gone; may be deleted
study.json, report.html, README.md    derived, written anew as seeds come in
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstock.checkpoints.files import is_left_behind, read_json, write_atomically, write_json, written_together
from headstock.checkpoints.native import load
from headstock.comparison.plan import Cell
from headstock.comparison.store import ANOTHER_FOLDER, LOCK
from headstock.errors import UserError
from headstock.studies.base import Measured, Row
from headstock.studies.plan import StudyPlan
from headstock.studies.runs import with_plain_numbers, without_odd_numbers
from headstock.studies.well_written import MOST_SEEDS
from headstock.training.run import RunResult

WEIGHTS = "model.safetensors"
OF_A_STUDY = ("figures.json", "result.json")
"""What is not simply copied with a run: what another study measured, and what says that the run is whole."""


@dataclass(frozen=True)
class Kept:
    """What was measured of a row with a seed, as it was kept."""

    figures: Mapping[str, float]
    details: Mapping[str, Any]
    by: str
    """A hash of the code that measured it; empty where that is not known."""
    environment: Mapping[str, Any]
    note: str
    """What a reader should know of how it was measured; mostly nothing."""
    task: str | None = None
    """What a row that trains nothing was measured on, as it was asked for; None where that was not kept."""


def kept_in(file: Path) -> Kept | None:
    """Give what was measured, None where nothing was; raises UserError where the file is damaged."""
    if not file.exists():
        return None
    said = read_json(file, "what was measured of a study's row")
    try:
        figures = {str(name): float(value) for name, value in said["figures"].items()}
        by, note = str(said.get("by", "")), str(said.get("note", ""))
        return Kept(figures, dict(said["details"]), by, dict(said.get("environment", {})), note, said.get("task"))
    except (TypeError, KeyError, ValueError, AttributeError):
        raise UserError(f"{file} is not what was measured of a row: delete it to measure again.") from None


class StudyStore:
    """A study's folder, made or opened for a plan. Raises UserError where it holds something else."""

    def __init__(self, folder: Path, plan: StudyPlan) -> None:
        self.folder = folder
        self.study = plan.study.name
        held = held_plan(folder)
        if held is not None:
            _refuse_another(folder, held, plan)
        self.seeds = max(plan.most_seeds, _seeds_of(held))
        """How many were ever asked for: those that are there are shown."""
        write_json(folder / "plan.json", plan.described(self.seeds))

    def cell_folder(self, cell: Cell) -> Path:
        """Give where a run lies."""
        return self.folder / "cells" / cell.folder_name

    def is_over(self, cell: Cell) -> bool:
        """Say whether nothing is left to compute: a run whose process crashed is not over, and is tried again."""
        return (self.cell_folder(cell) / "result.json").exists()

    def borrow(self, cell: Cell) -> Path | None:
        """Copy a run that another study, in a folder beside this one, has finished; give where it was, else None.

        It has to be the same run in every choice, and to have its weights.
        """
        if self.is_over(cell):
            return None
        described = json.loads(json.dumps(cell.description()))
        for weights in sorted(self.folder.absolute().parent.glob(f"*/cells/*-{cell.folder_name[-8:]}/{WEIGHTS}")):
            there = weights.parent
            try:
                if self._is_same_elsewhere(there, described):
                    _copied(there, self.cell_folder(cell))
                    return there
            except UserError:  # damaged over there, which is no matter of this study's: it trains
                continue
        return None

    def _is_same_elsewhere(self, there: Path, described: Any) -> bool:
        """Say whether a folder holds a run as described, whole, of another study; UserError where it is damaged."""
        plan, run = there.parents[1] / "plan.json", there / "run.json"
        if not (plan.is_file() and run.is_file() and (there / "result.json").is_file()):
            return False
        said, result = read_json(plan, "a plan"), RunResult.read(there)
        if not isinstance(said, dict) or said.get("study") in (None, self.study):
            return False
        if read_json(run, "a run") != described or result is None or result.status != "finished":
            return False
        load(there)  # what is copied can be opened
        return True

    def result(self, cell: Cell) -> RunResult | None:
        """Give a run's result, be it that its process crashed; None where it has none yet."""
        return RunResult.read(self.cell_folder(cell))

    def weights(self, cell: Cell) -> Path | None:
        """Give the folder that holds a run's model; None where there is none any more."""
        again = Again(self)
        if (self.cell_folder(cell) / WEIGHTS).exists():
            return self.cell_folder(cell)
        return again.cell_folder(cell) if again.is_over(cell) else None

    def figures_file(self, row: Row, seed: int, cell: Cell | None) -> Path:
        """Give where what is measured of a row with a seed is kept."""
        if cell is None:
            return self.folder / "rows" / f"{row.name}-seed{seed}.json"
        return self.cell_folder(cell) / "figures.json"

    def keep(
        self, file: Path, measured: Measured, by: str, environment: Mapping[str, Any], note: str, task: str
    ) -> Kept:
        """Keep what was measured; give it as it will be read."""
        figures = {name: float(value) for name, value in measured.figures.items()}
        details: dict[str, Any] = without_odd_numbers(measured.details)
        said = {"figures": with_plain_numbers(figures), "details": details, "by": by, "environment": dict(environment)}
        said |= {name: value for name, value in (("note", note), ("task", task)) if value}
        write_json(file, said)
        found = kept_in(file)
        assert found is not None
        return found


class Again:
    """The folders of trainings that are repeated for their weights; what was computed first stays where it is."""

    def __init__(self, store: StudyStore) -> None:
        self.folder = store.folder / "again"

    def cell_folder(self, cell: Cell) -> Path:
        """Give where a repeated run lies."""
        return self.folder / cell.folder_name

    def is_over(self, cell: Cell) -> bool:
        """Say whether a repeated run is whole and has its weights."""
        return all((self.cell_folder(cell) / name).exists() for name in (WEIGHTS, "result.json"))


def _copied(there: Path, here: Path) -> None:
    """Copy a run, its result last, for that says that the run is whole."""
    with written_together(here) as beside:
        for file in there.iterdir():
            if file.is_file() and file.name not in OF_A_STUDY:
                shutil.copy2(file, beside)
    write_atomically(here / "result.json", lambda beside: shutil.copy2(there / "result.json", beside))


def default_folder(name: str, budget: str, steps: int | None) -> Path:
    """Give where a study goes that was given no folder."""
    return Path("runs") / (f"study-{name}-{budget}" + ("" if steps is None else f"-{steps}-steps"))


def held_plan(folder: Path, *, fresh: bool = False) -> dict[str, Any] | None:
    """Give the plan that a folder holds; None where there is none, or where it is damaged and is put aside: `fresh`.

    Raises UserError where the path is taken by something that is no study, before anything is written there.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file: choose a folder with --out.")
    if not (folder / "plan.json").exists():
        if folder.exists() and not all(path.name == LOCK or is_left_behind(path) for path in folder.iterdir()):
            raise UserError(f"{folder} is not empty and holds no study: choose another folder with --out.")
        return None
    try:
        held = read_json(folder / "plan.json", "the plan of a study", ANOTHER_FOLDER)
    except UserError:
        if fresh:
            return None
        raise
    if not (isinstance(held, dict) and "study" in held):
        raise UserError(f"{folder} holds something else than a study: choose another folder with --out.")
    return held


def _refuse_another(folder: Path, held: dict[str, Any], plan: StudyPlan) -> None:
    for key, asked in plan.identity().items():
        if held.get(key) != asked:
            there, here = (_in_words(key, value) for value in (held.get(key), asked))
            raise UserError(
                f"{folder} holds another study ({there} there, {here} here): choose another folder with --out, or "
                f"--fresh to put what is there aside."
            )


def _in_words(key: str, value: Any) -> str:
    return "the budget's own steps" if key == "steps" and value is None else f"{key} {value}"


def _seeds_of(held: dict[str, Any] | None) -> int:
    seeds = (held or {}).get("seeds", 0)
    return min(seeds, MOST_SEEDS) if isinstance(seeds, int) else 0
