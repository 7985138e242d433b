"""A comparison as one HTML page that opens offline anywhere: no script, no request, light or dark as its reader likes.

    verdicts → results → what was made equal → learning → by difficulty → intervals → cost → where arms look → tuning
    → sources

`page.html.j2` is the page, `style.css` what it adds to the look of any page; each picture has a file of its own here.
The page's style reaches nothing outside the element it comes in, and nothing in it has an id, so any number of reports
can share a notebook.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Template
from markupsafe import Markup

from headstock.checkpoints.files import write_atomically
from headstock.comparison.report import summaries as say
from headstock.comparison.report import writing as write
from headstock.comparison.report.attention import MOST_CELLS, View, views
from headstock.comparison.report.costs import cost_of_a_step
from headstock.comparison.report.curves import learning_curves
from headstock.comparison.report.difficulty import by_difficulty
from headstock.comparison.report.intervals import intervals
from headstock.comparison.report.looking import mass_note, mass_table
from headstock.comparison.report.tables import ArmTable, costs_table, results_table, runs_table
from headstock.comparison.report.tuning import tuning_curves
from headstock.comparison.results import Comparison, TaskOutcome
from headstock.pictures import numbers, palette
from headstock.pictures.axes import swatch
from headstock.pictures.labels import showable
from headstock.pictures.pages import style, templates
from headstock.pictures.palette import ArmLook
from headstock.pictures.picture import Picture, Table

__all__ = ["as_fragment", "as_html", "write_report"]


@dataclass(frozen=True)
class TaskPart:
    """What the page shows of one task."""

    outcome: TaskOutcome
    verdicts: list[Any]
    results: ArmTable
    notes: list[str]
    fixed: str
    costs: ArmTable
    runs: Table
    learning: list[Picture]
    intervals: list[Picture]
    cost: list[Picture]
    by_difficulty: list[Picture]
    looking: list[View]
    mass: ArmTable | None
    mass_note: str
    tuning: list[Picture]


def as_html(comparison: Comparison) -> str:
    """Give the whole page; the same comparison always gives the same page."""
    return _rendered(comparison, whole=True)


def as_fragment(comparison: Comparison) -> str:
    """Give the report as one element, for a page that is already there, such as a notebook's."""
    return _rendered(comparison, whole=False)


def write_report(comparison: Comparison, path: Path) -> Path:
    """Write the page to a file, in folders made where they are missing; give its path.

    Raises UserError where it cannot be written; a report that was there is then still whole.
    """
    page = as_html(comparison)
    write_atomically(path, lambda beside: beside.write_text(page, encoding="utf-8"))
    return path


def _rendered(comparison: Comparison, *, whole: bool) -> str:
    looks = palette.looks([(arm.label, arm.floor) for task in comparison.tasks for arm in task.arms])
    swatches = {label: swatch(look) for label, look in looks.items()}
    looking = sum(arm.attention is not None for task in comparison.tasks for arm in task.arms)
    parts = [_part(comparison, task, looks, MOST_CELLS // max(1, looking)) for task in comparison.tasks]
    page = _template().render(
        whole=whole,
        css=style(__package__),
        comparison=comparison,
        kicker=_kicker(comparison),
        basis=write.basis(comparison),
        spread_is=write.SPREAD_IS,
        variants=_variants(comparison),
        looks=looks,
        swatches=swatches,
        parts=parts,
        sources=_sources(parts),
        environment=[(name, _in_words(value)) for name, value in comparison.environment.items()],
    )
    return showable(page.strip() + "\n")


@cache
def _template() -> Template:
    environment = templates()
    environment.filters.update(kept=_kept_together, breakable=_breakable, kind=write.kind)
    return environment.get_template(f"{__package__}/page.html.j2")


def _part(comparison: Comparison, task: TaskOutcome, looks: dict[str, ArmLook], most_cells: int) -> TaskPart:
    notes = write.failures(task)
    if say.nobody_solved(task):
        notes.insert(0, "Not solved by any arm in most of its runs: the arms are not ranked.")
    return TaskPart(
        outcome=task,
        verdicts=say.verdicts_of(comparison, task),
        results=results_table(task, looks),
        notes=notes,
        fixed=write.fixed_models(task),
        costs=costs_table(task, looks),
        runs=runs_table(task),
        learning=_there(learning_curves(task, looks)),
        intervals=intervals(comparison, task, looks),
        cost=_there(cost_of_a_step(task, looks)),
        by_difficulty=by_difficulty(task, looks),
        looking=views(task, looks, most_cells),
        mass=mass_table(task, looks),
        mass_note=mass_note(task),
        tuning=_there(tuning_curves(task, looks)),
    )


def _there(picture: Picture | None) -> list[Picture]:
    return [] if picture is None else [picture]


def _kicker(comparison: Comparison) -> str:
    arms, tasks = len(say.labels_of(comparison)), len(comparison.tasks)
    plan = " × ".join(
        [numbers.count(arms, "arm"), numbers.count(tasks, "task"), numbers.count(comparison.seeds, "seed")]
    )
    return " · ".join(filter(None, ["Headstock comparison", plan, comparison.date]))


def _variants(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Give each arm's label, role and complete variant, as its first task had it."""
    first: dict[str, tuple[str, str, str]] = {}
    for task in comparison.tasks:
        for place, arm in enumerate(task.arms):
            role = "baseline" if place == 0 else "floor" if arm.floor else ""
            first.setdefault(arm.label, (arm.label, role, arm.variant))
    return list(first.values())


def _sources(parts: list[TaskPart]) -> list[tuple[str, str]]:
    """Give, picture by picture, what it was made from; the views of a task in one line."""
    found: list[tuple[str, str]] = []
    for part in parts:
        found += [(picture.name, picture.source) for picture in _before_looking(part)]
        if part.looking:
            models = ", ".join(dict.fromkeys(view.source for view in part.looking if view.source))
            found.append((part.looking[0].name, f"comparison.json, attention of each arm; models in {models}"))
        found += [(picture.name, picture.source) for picture in part.tuning]
    return found


def _before_looking(part: TaskPart) -> list[Picture]:
    return [*part.learning, *part.by_difficulty, *part.intervals, *part.cost]


def _in_words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _kept_together(sentence: str) -> str:
    """Keep a number and its % on one line."""
    return sentence.replace(" %", "\N{NO-BREAK SPACE}%")


def _breakable(label: str) -> Markup:
    """Let a long label break after its joints, and before its parts."""
    return Markup("<wbr>").join(part for part in re.split(r"(?<=[/:+,])", label) if part)
