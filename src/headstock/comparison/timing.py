"""Equal training time: seconds a step of each arm, measured once, in turns, and written into the plan as steps."""

import time
from dataclasses import replace
from statistics import median

from headstock.comparison.plan import Plan, TaskPlan
from headstock.errors import UserError
from headstock.model.transformer import build_from
from headstock.training.evaluation import evaluate
from headstock.training.loop import take_step, threads_set_to
from headstock.training.optimiser import adamw

WARM_UP_STEPS = 2
TURNS = 5
STEPS_A_TURN = 3


def with_equal_time(plan: Plan) -> Plan:
    """Give the plan with every arm's steps such that all train as long as the baseline does for its own."""
    return replace(plan, tasks=tuple(_with_equal_time(plan, on) for on in plan.tasks))


def _with_equal_time(plan: Plan, on: TaskPlan) -> TaskPlan:
    if on.arms[0].frozen:
        raise UserError(
            f"{on.arms[0].label} takes no step, so there is no training time to match: name a trained arm first, or "
            f"choose another --match."
        )
    seconds = seconds_per_step(plan, on)
    arms = tuple(
        arm if arm.frozen else replace(arm, steps=max(1, round(on.steps * seconds[0] / own)))
        for arm, own in zip(on.arms, seconds, strict=True)
    )
    return replace(on, arms=arms)


def seconds_per_step(plan: Plan, on: TaskPlan) -> list[float]:
    """Measure each arm's seconds a step, the median over turns that the arms take one after the other; 0 where it
    takes none."""
    runs = []
    for arm in on.arms:
        if arm.frozen:
            continue
        training = plan.training(on, arm, seed=0, lr=plan.request.lr)
        model = build_from(arm.model).to(plan.request.device)
        runs.append((model.train(), training, adamw(model, training)))
    measured: list[list[float]] = [[] for _ in runs]
    for turn in range(-1, TURNS):
        for (model, training, optimiser), own in zip(runs, measured, strict=True):
            began = time.perf_counter()
            steps = WARM_UP_STEPS if turn < 0 else STEPS_A_TURN
            with threads_set_to(training.threads):  # as many as the run will have
                for step in range(steps):
                    take_step(model, on.task, training, optimiser, step).item()
            if turn >= 0:
                own.append((time.perf_counter() - began) / steps)
    found = iter([median(own) for own in measured])
    return [0.0 if arm.frozen else next(found) for arm in on.arms]


def seconds_per_evaluation(plan: Plan, on: TaskPlan) -> list[float]:
    """Measure how long each arm takes to be scored on the task's held-out set, once each."""
    measured = []
    for arm in on.arms:
        training = plan.training(on, arm, seed=0, lr=plan.request.lr)
        model = build_from(arm.model).to(plan.request.device)
        with threads_set_to(training.threads):
            began = time.perf_counter()
            evaluate(model, on.task)
            measured.append(time.perf_counter() - began)
    return measured
