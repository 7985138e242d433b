"""Every comparison that a table and a report must survive: the plain one and, made from it, odd ones."""

import math
from dataclasses import replace
from functools import cache, partial

from headstock.comparison.results import CellResult, Comparison, Tuning
from tests.comparison.report.difficulties import with_difficulties, with_holes
from tests.comparison.report.example import comparison, plain, text

LONG = "./examples/my_mixers/my_mixer.py:MyMixer+rope,n_heads=8"
NASTY = "<b>&\"x'</b>.py:Mixer$_1^2$"


def renamed(given: Comparison, names: dict[str, str]) -> Comparison:
    """Give the comparison with other labels, judged again."""
    tasks = [
        replace(task, arms=[replace(arm, label=names.get(arm.label, arm.label)) for arm in task.arms])
        for task in given.tasks
    ]
    return comparison(tasks, given.seeds, given.look)


def with_failures(*, everywhere: bool = False) -> Comparison:
    """One run of differential on text stopped midway; or every run of it, on both tasks, at once."""

    def fail(cell: CellResult, entries: int) -> CellResult:
        reason = "the loss is nan at step 212"
        return replace(
            cell, status="failed", reason=reason, metrics={}, curve=cell.curve[:entries], steps_to_solve=None
        )

    tasks = []
    for task in plain().tasks:
        arms = list(task.arms)
        cells = list(arms[1].cells)
        if everywhere:
            cells = [replace(fail(cell, 0), seconds_per_step=0.0) for cell in cells]
            cost = replace(arms[1].cost, seconds_per_step=None, kernel=None)
            arms[1] = replace(arms[1], cells=cells, cost=cost, attention=None)
        elif task.name == "text":
            cells[3] = fail(cells[3], 8)
            arms[1] = replace(arms[1], cells=cells)
        tasks.append(replace(task, arms=arms))
    return comparison(tasks, 8)


def nothing_finished() -> Comparison:
    """Every run of every arm failed before its first evaluation, and one gives numbers that are none."""
    tasks = []
    for task in plain(3, looking=False).tasks:
        arms = [
            replace(
                arm,
                cost=replace(arm.cost, seconds_per_step=None, kernel=None),
                cells=[
                    replace(cell, status="failed", reason=None, metrics={}, curve=[], seconds_per_step=math.nan)
                    for cell in arm.cells
                ],
            )
            for arm in task.arms
        ]
        tasks.append(replace(task, arms=arms))
    return comparison(tasks, 3)


def all_equal() -> Comparison:
    """Every arm the same on every seed and at every step: flat axes, intervals without a width."""
    tasks = []
    for task in plain().tasks:
        flat = {"held-out": {task.metric: 1.0, "loss": 0.0}, "train": {task.metric: 1.0, "loss": 0.0}}
        arms = [
            replace(
                arm,
                cells=[
                    replace(
                        cell,
                        metrics=flat,
                        curve=[{"step": float(step), task.metric: 1.0} for step in (100, 200)],
                        steps_to_solve=None if task.solved_at is None else 100,
                        seconds_per_step=0.01,
                    )
                    for cell in arm.cells
                ],
                tuning=Tuning([1e-3], [1.0], 1e-3),
            )
            for arm in task.arms
        ]
        tasks.append(replace(task, arms=arms))
    return comparison(tasks, 8)


def many_arms(count: int = 8) -> Comparison:
    """So many arms with long names, close together, on both tasks."""
    tasks = []
    for task in plain(tuned=True).tasks:
        arms = []
        for place in range(count):
            model = task.arms[place % 3]
            label = model.label if place < 3 else f"./examples/my_mixer_{place}.py:MyMixer+rope,n_heads={place}"
            arms.append(replace(model, label=label, floor=place == 2))
        tasks.append(replace(task, arms=arms))
    return comparison(tasks, 8)


def no_numbers() -> Comparison:
    """Infinite and missing figures wherever a float can stand."""
    given = plain(4)
    tasks = []
    for task in given.tasks:
        arms = []
        for arm in task.arms:
            odd = {"loss": math.inf, "perplexity": math.nan, task.metric: math.nan}
            cells = [
                replace(cell, metrics={"held-out": odd}, curve=[{"step": 1.0, task.metric: math.inf}], lr=math.nan)
                for cell in arm.cells
            ]
            weights = [[[math.nan, 0.5], [math.inf, 0.5]]]
            looked = replace(arm.attention, weights=weights, labels=["a", "b"]) if arm.attention else None
            tuning = Tuning([1e-3, 1e-2], [None, math.nan], 1e-3)
            arms.append(replace(arm, cells=cells, attention=looked, tuning=tuning))
        tasks.append(replace(task, arms=arms))
    return comparison(tasks, 4)


def one_arm() -> Comparison:
    """A single arm: nothing is compared, everything is shown."""
    return comparison([replace(task, arms=task.arms[:1]) for task in plain().tasks], 8)


def with_fixed(*places: int) -> Comparison:
    """The arms in these places are fixed models: the first of their runs, after no step, is what every seed gives."""
    tasks = []
    for task in plain(tuned=True).tasks:
        arms = list(task.arms)
        for place in places:
            arm = arms[place]
            curve = [{**arm.cells[0].curve[-1], "step": 0.0}]
            still = replace(arm.cells[0], curve=curve, steps_to_solve=None, seconds_per_step=0.0)
            cost = replace(arm.cost, seconds_per_step=None)
            cells = [replace(still, seed=cell.seed) for cell in arm.cells]
            arms[place] = replace(arm, steps=0, cost=cost, cells=cells, tuning=None)
        tasks.append(replace(task, arms=arms))
    return comparison(tasks, 8)


CASES = {
    "plain": plain,
    "tuned": partial(plain, tuned=True),
    "without attention": partial(plain, looking=False),
    "a second look": partial(plain, look=2),
    "one seed": partial(plain, 1),
    "two seeds": partial(plain, 2),
    "exploratory": partial(plain, 3),
    "one run failed": with_failures,
    "one arm failed everywhere": partial(with_failures, everywhere=True),
    "nothing finished": nothing_finished,
    "all equal": all_equal,
    "eight arms": many_arms,
    "one arm": one_arm,
    "no numbers": no_numbers,
    "long labels": lambda: renamed(plain(), {"differential": LONG, "uniform": LONG.replace("8", "4")}),
    "nasty labels": lambda: renamed(plain(tuned=True), {"differential": NASTY, "uniform": "例え話␣⏎.py:均一"}),
    "unprintable labels": lambda: renamed(plain(2), {"differential": "\x00\x1b[1m\udc80\n.py:M", "uniform": ""}),
    "a fixed baseline": partial(with_fixed, 0),
    "two fixed models": partial(with_fixed, 0, 2),
    "only fixed models": partial(with_fixed, 0, 1, 2),
    "by difficulty": with_difficulties,
    "by difficulty with holes": with_holes,
    "no tasks": lambda: comparison([], 8),
    "a task without arms": lambda: comparison([text([])], 8),
}
"""By what is odd about it."""


@cache
def case(name: str) -> Comparison:
    """Give one of them."""
    return CASES[name]()
