"""Running a study, from what is asked to the answer: measure, train, measure what was trained, judge, write.

What trains nothing comes first, then seed 0 of every other row, then seed 1: whatever stops it, whole seeds are there.
The same call goes on.
"""

import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from headstock.checkpoints.files import read_json, write_atomically, write_json
from headstock.comparison.compare import Watch, cores
from headstock.comparison.engine import Event, run_cells
from headstock.comparison.plan import Cell
from headstock.comparison.store import held, put_aside
from headstock.errors import UserError
from headstock.studies import study as study_named
from headstock.studies import study_names
from headstock.studies.base import Budget, Row, Study
from headstock.studies.collecting import collected
from headstock.studies.measuring import MeasuringFailed, is_measured, measured
from headstock.studies.plan import StudyPlan, make_plan
from headstock.studies.results import StudyResult
from headstock.studies.store import Again, StudyStore, default_folder, held_plan

SECONDS_BETWEEN = 10.0
"""After how long the report is written anew while rows that train nothing are measured."""

Say = Callable[[str], None]
"""Called with a sentence on what happens."""


def run_study(
    study: Study,
    budget: Budget = "quick",
    *,
    out: Path | None = None,
    seeds: int | None = None,
    steps: int | None = None,
    device: str | None = None,
    jobs: int | None = None,
    fresh: bool = False,
    command: str = "",
    watch: Watch | None = None,
    say: Say | None = None,
) -> StudyResult:
    """Run what is missing of a study, judge its claims, and write study.json, report.html and README.md there.

    seeds: in place of the budget's. steps: the most that a row trains, in place of the budget's. device: the folder's
    own where none is given, else the CPU. jobs: processes at a time; one a core where not given. fresh: put what the
    folder holds aside and start anew.

    Raises UserError for a study that cannot be run or a folder that holds something else; KeyboardInterrupt leaves a
    folder from which the same call goes on.
    """
    if jobs is not None and jobs < 1:
        raise UserError(f"jobs is {jobs}: give 1 or more.")
    folder = default_folder(study.name, budget, steps) if out is None else out
    there = held_plan(folder, fresh=fresh)
    device = device or str((not fresh and there and there.get("device")) or "cpu")
    plan = make_plan(study, budget, seeds, steps, device)  # refused before anything is put aside or written
    if fresh and folder.exists():
        with held(folder):  # not away from under a process that writes there
            put_aside(folder)
    with held(folder):
        command = command or _call_that_asks(plan)
        return _Running(plan, StudyStore(folder, plan), command, watch, say or (lambda said: None)).run(jobs or cores())


class _Running:
    """One call, and what it has met on the way."""

    def __init__(self, plan: StudyPlan, store: StudyStore, command: str, watch: Watch | None, say: Say) -> None:
        self.plan = plan
        self.store = store
        self.command = command
        self.watch = watch
        self.say = say
        self.row_of = {plan.cell(row, seed).key: row for row, seed in plan.runs() if row.variant}
        self.computed = False
        """Whether this call added any figure."""
        self.written = time.monotonic()
        """When the report was, or, before the first time, when this call began."""
        self.troubles: dict[tuple[str, int], str] = {}
        """Why a row could not be measured with a seed."""

    def run(self, jobs: int) -> StudyResult:
        plan = self.plan
        try:
            for row, seed in plan.runs():
                if not row.variant:
                    self._measure(row, seed, None)
                    if self.computed and time.monotonic() - self.written > SECONDS_BETWEEN:
                        self._write()
            self._fetch_weights(jobs)
            cells: list[Cell] = [*plan.cells()]
            for cell in cells:
                if there := self.store.borrow(cell):
                    self.say(f"{cell.label} seed {cell.training.seed} is the run in {there}")
            run_cells(cells, self.store, jobs, self._counted(cells))
        except KeyboardInterrupt:
            self._write()
            raise
        return self._write()

    def _counted(self, cells: list[Cell]) -> Callable[[Event], None]:
        """Watch trainings: measure each that ends, and write the report whenever a seed becomes whole."""
        left = [sum(cell.training.seed == seed for cell in cells) for seed in range(self.plan.most_seeds)]
        over = computed = 0

        def on_event(event: Event) -> None:
            nonlocal over, computed
            ended = event.kind in ("known", "finished", "failed")
            over += ended
            new = event.kind in ("finished", "failed")
            self.computed |= new
            computed += new
            if self.watch is not None:
                self.watch(event, over, len(cells))
            if not ended:
                return
            seed = event.cell.training.seed
            self._measure(self.row_of[event.cell.key], seed, event.cell)
            left[seed] -= 1
            if not left[seed] and computed and over < len(cells):
                self._write()

        return on_event

    def _measure(self, row: Row, seed: int, cell: Cell | None) -> None:
        plan, store = self.plan, self.store
        if row.measure is None:
            return
        own = None
        if cell is not None:
            result = store.result(cell)
            if result is None or result.status == "failed":
                return
            own = plan.cell(row, seed)
        new = not is_measured(store, plan.study, row, seed, own)
        try:
            measured(store, plan.study, row, seed, own, plan.budget)
        except MeasuringFailed as error:
            self.troubles[row.name, seed] = str(error)
            self.say(f"{row.name} seed {seed}: {error}")
        else:
            if new:
                self.computed = True
                self.say(f"{row.name} seed {seed} is measured")

    def _fetch_weights(self, jobs: int) -> None:
        """Train again what has a result and no weights, where something is still to be measured of them."""
        plan, store = self.plan, self.store
        needed = [plan.cell(row, seed) for row, seed in plan.runs() if row.variant and self._lacks_weights(row, seed)]
        if not needed:
            return
        names = ", ".join(f"{cell.label} seed {cell.training.seed}" for cell in needed)
        self.say(f"weights are needed that are not there any more, so these are trained again: {names}")
        again = Again(store)
        again.folder.mkdir(parents=True, exist_ok=True)
        over = 0

        def on_event(event: Event) -> None:
            nonlocal over
            over += event.kind in ("known", "finished", "failed")
            if self.watch is not None:
                self.watch(event, over, len(needed))

        run_cells(needed, again, jobs, on_event)
        for cell in needed:
            if not again.is_over(cell):
                raise UserError(
                    f"{cell.label} was trained again for its weights and failed: see {again.cell_folder(cell)}."
                )

    def _lacks_weights(self, row: Row, seed: int) -> bool:
        plan, store = self.plan, self.store
        cell = plan.cell(row, seed)
        if row.measure is None or not store.is_over(cell):
            return False
        result = store.result(cell)
        finished = result is not None and result.status == "finished"
        return finished and store.weights(cell) is None and not is_measured(store, plan.study, row, seed, cell)

    def _write(self) -> StudyResult:
        from headstock.studies.readme import as_markdown
        from headstock.studies.report import pictures_of

        self.written = time.monotonic()
        folder = self.store.folder
        date = time.strftime("%Y-%m-%d") if self.computed else _date_of(folder)
        result = collected(self.plan, self.store, self.troubles, self.command, date)
        if trouble := pictures_of(result)[1]:
            result = replace(result, notes=(*result.notes, trouble))
        write_json(folder / "study.json", result.without_folder().to_dict())
        page = as_markdown(result)
        write_atomically(folder / "README.md", lambda beside: beside.write_text(page, encoding="utf-8"))
        result.report(folder / "report.html")
        return result


def _date_of(folder: Path) -> str:
    """Give the date of what a folder holds already; today's where it holds nothing."""
    file = folder / "study.json"
    try:
        said = read_json(file, "the answer of a study") if file.exists() else {}
    except UserError:  # damaged: it is derived, and about to be written anew
        said = {}
    return str(said["date"]) if isinstance(said, dict) and "date" in said else time.strftime("%Y-%m-%d")


def _call_that_asks(plan: StudyPlan) -> str:
    """Write the command that asks the same; the call from Python, for a study that no command knows by its name."""
    study, effort = plan.study, plan.study.efforts[plan.budget]
    asked: dict[str, Any] = {}
    if (plan.seeds, plan.seeds_of) != (effort.seeds, effort.seeds_of):
        asked["seeds"] = plan.seeds
    if plan.steps is not None:
        asked["steps"] = plan.steps
    if plan.device != "cpu":
        asked["device"] = plan.device
    if study.name in study_names() and study_named(study.name) is study:
        options = [word for key, value in asked.items() for word in (f"--{key}", str(value))]
        return shlex.join(["headstock", "study", study.name, "--budget", plan.budget, *options])
    given = "".join(f", {key}={value!r}" for key, value in asked.items())
    return f"run_study(STUDY, {plan.budget!r}{given})  # of the study {study.name}"
