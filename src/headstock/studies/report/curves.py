"""How the rows learnt: a held-out figure by training step, the mean of a row's seeds with their whole range."""

from collections.abc import Iterable, Mapping, Sequence

from headstock.pictures.labels import without_shared_end
from headstock.pictures.lines import lines
from headstock.pictures.numbers import count, fixed
from headstock.pictures.palette import ArmLook, looks_by_label
from headstock.pictures.picture import Picture
from headstock.pictures.spreads import finite
from headstock.studies import writing as write
from headstock.studies.results import StudyResult
from headstock.studies.runs import RowResult

Course = list[tuple[float, list[float]]]
"""By training step, the values of the seeds."""
MOST_BANDS = 12
"""Rows in one picture whose ranges can still be told apart."""
LOG_FROM = 4.0
"""The largest value over the smallest from which a scale goes by factors; a share, such as accuracy, never does."""


def looks_of_rows(result: StudyResult) -> dict[str, ArmLook]:
    """Give each row a look; where rows of several tasks are told apart by their task alone, as `softmax-a` and
    `softmax-b`, they have one."""
    names = {row.name: row.name for row in result.rows}
    for rows in _by_task(result).values():
        names |= without_shared_end([row.name for row in rows])
    looks = looks_by_label(list(names.values()))
    return {row: looks[name] for row, name in names.items()}


def _by_task(result: StudyResult) -> dict[str, list[RowResult]]:
    by_task: dict[str, list[RowResult]] = {}
    for row in result.rows:
        if row.task:
            by_task.setdefault(row.task, []).append(row)
    return by_task


def learning_curves(result: StudyResult, looks: Mapping[str, ArmLook]) -> list[Picture]:
    """Give a picture for each task that rows were trained on, where rows were evaluated three times or more."""
    by_task = _by_task(result)
    pictures = []
    for task, rows in by_task.items():
        metric = _metric(result, rows)
        courses = {row.name: course for row in rows if (course := _course(row, metric))}
        if max((len(course) for course in courses.values()), default=0) > 2:
            short = without_shared_end(list(courses))
            title = _apart(task, by_task) if len(by_task) > 1 else ""
            drawn = {short[name]: course for name, course in courses.items()}
            pictures.append(_picture(task, title, metric, drawn, {short[name]: looks[name] for name in courses}))
    return pictures


def _apart(task: str, tasks: Iterable[str]) -> str:
    """Give a task's name with those of its options in which the tasks differ."""
    name, *options = task.split(",")
    others = [other.split(",") for other in tasks]
    return ",".join([name, *(option for option in options if not all(option in other for other in others))])


def _metric(result: StudyResult, rows: Sequence[RowResult]) -> str:
    there = {name for row in rows for run in row.runs for entry in run.curve for name in entry}
    wanted = [*result.study.figures, "perplexity", "loss"]
    return next((name for name in wanted if name in there), "loss")


def _course(row: RowResult, metric: str) -> Course:
    by_step: dict[float, list[float]] = {}
    for run in row.runs:
        for entry in run.curve:
            step, value = entry.get("step"), finite(entry.get(metric))
            if step is not None and value is not None:
                by_step.setdefault(step, []).append(value)
    return sorted(by_step.items())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _picture(
    task: str, title: str, metric: str, courses: Mapping[str, Course], looks: Mapping[str, ArmLook]
) -> Picture:
    words = write.figure_words(metric)
    ends = {name: _mean(course[-1][1]) for name, course in courses.items()}
    low, high = min(ends, key=lambda name: ends[name]), max(ends, key=lambda name: ends[name])
    places = 3 if max(ends.values()) < 10 else 1
    said = f"{words} ends between {fixed(ends[low], places)} ({low}) and {fixed(ends[high], places)} ({high})"
    if len(ends) == 1:
        said = f"{words} ends at {fixed(ends[low], places)} ({low})"
    values = [value for course in courses.values() for _, found in course for value in found]
    by_factors = metric != "accuracy" and min(values) > 0 and max(values) / min(values) > LOG_FROM
    seeds = max(len(found) for course in courses.values() for _, found in course)
    banded = seeds > 1 and len(courses) <= MOST_BANDS
    steps = {name: [step for step, _ in course] for name, course in courses.items()}
    bands = {
        name: ([min(found) for _, found in course], [max(found) for _, found in course])
        for name, course in courses.items()
    }
    return lines(
        {name: (steps[name], [_mean(found) for _, found in course]) for name, course in courses.items()},
        x="training step",
        y=f"{words}, by factors" if by_factors else words,
        title=f"On {title}, {said}" if title else write.capital(said),
        log_y=by_factors,
        zero=False,
        bands=bands if banded else None,
        band="from the lowest to the highest seed" if banded else "",
        looks={name: looks[name] for name in courses},
        caption=f"Held-out {words} while training" + (f", mean of up to {count(seeds, 'seed')}." if seeds > 1 else "."),
        name=f"Learning, {task}",
        source="metrics.jsonl in the folder of each run, which has every evaluation",
    )
