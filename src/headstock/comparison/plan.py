"""The plan of a comparison: every run it needs, worked out and refused before anything is trained.

A cell is one run, addressed by a hash of all that decides its numbers; so what is computed once is known again.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import torch

from headstock import __version__
from headstock.comparison.matching import Sizes, matched, sizes, still_differs
from headstock.comparison.request import Request
from headstock.comparison.saved_models import saved_arm, told_of_frozen
from headstock.comparison.statistics.reach import Reach, what_can_be_claimed
from headstock.comparison.statistics.sentences import listed
from headstock.errors import UserError
from headstock.model.causality import refuse_bidirectional
from headstock.model.config import ModelConfig, config_of
from headstock.model.mixers import mixer_class, mixer_source, told_of
from headstock.tasks import parse
from headstock.tasks.base import Task, hash_of
from headstock.training.agreement import refuse_penalty
from headstock.training.config import TrainingConfig
from headstock.training.start import Start

TUNING_SEEDS = (10_001, 10_002)
"""Seeds on which learning rates are chosen; reported seeds count from 0 and a request has no more than 10,000."""
EVALUATIONS = 6
"""How often a task without an end is evaluated."""
EVERY_WHEN_SOLVABLE = 20
"""Steps between evaluations of a task that can be solved, which is how finely steps to solve are told apart."""


LONGEST_LABEL = 100
"""Letters of a label in a folder's name: file systems allow some 255 in all, and the key tells runs apart."""


@dataclass(frozen=True)
class Cell:
    """One run."""

    label: str
    task: Task
    model: ModelConfig
    training: TrainingConfig
    device: str
    mixer_source: str | None
    start: Start | None = None
    """The saved model that it begins with."""

    def description(self) -> dict[str, Any]:
        """Say all that decides the run's numbers, in JSON's terms."""
        start = {} if self.start is None else {"start": {"weights": self.start.weights, "frozen": self.start.frozen}}
        return {
            **start,
            "headstock": __version__,
            "task": self.task.name,
            "task_hash": self.task.content_hash,
            "model": self.model.model_dump(),
            "training": self.training.model_dump(),
            "device": self.device,
            "mixer_source": self.mixer_source,
        }

    @property
    def key(self) -> str:
        """Sixteen hex digits that follow from the description."""
        return hash_of(self.description())[:16]

    @property
    def folder_name(self) -> str:
        """A name that a person can read and that no other cell has."""
        label = re.sub(r"[^A-Za-z0-9.]+", "-", self.label).strip("-")[:LONGEST_LABEL].rstrip("-")
        return f"{self.task.name}-{label}-seed{self.training.seed}-{self.key[:8]}"


@dataclass(frozen=True)
class ArmPlan:
    """One arm on one task."""

    label: str
    floor: bool
    model: ModelConfig
    steps: int
    mixer_source: str | None
    start: Start | None = None
    """The saved model that it begins with."""

    @property
    def frozen(self) -> bool:
        """Whether it is scored and not trained, so that its seeds are one run."""
        return self.start is not None and self.start.frozen

    @property
    def variant(self) -> str:
        """What it is, complete: its config as a line, behind the folder that its weights come from."""
        return self.model.variant if self.start is None else f"{self.start.folder}: {self.model.variant}"

    def described(self) -> dict[str, Any]:
        """Say what it is in JSON's terms; a saved model by its weights, wherever its folder lies."""
        said = asdict(replace(self, model=self.model.model_dump(), start=None))  # type: ignore[arg-type]
        del said["start"]
        own = {} if self.start is None else {"start": {"weights": self.start.weights, "frozen": self.start.frozen}}
        return {**said, **own}

    @property
    def sizes(self) -> Sizes:
        """What it costs by formula."""
        return sizes(self.model)


@dataclass(frozen=True)
class TaskPlan:
    """One task and its arms, matched on it; the first is the baseline."""

    label: str
    """The task's name; where two tasks share it, the task as it was written."""
    task: Task
    arms: tuple[ArmPlan, ...]
    steps: int
    evaluate_every: int


@dataclass(frozen=True)
class Plan:
    """What is to be run."""

    request: Request
    tasks: tuple[TaskPlan, ...]

    def training(self, on: TaskPlan, arm: ArmPlan, seed: int, lr: float) -> TrainingConfig:
        """Give the training config of one run; of a frozen arm, which takes no step, one for all seeds."""
        if arm.frozen:
            return TrainingConfig(steps=1, evaluate_every=1)
        steps = {"evaluate_every": on.evaluate_every, **self.request.training_settings(), "steps": arm.steps}
        return TrainingConfig(**steps, seed=seed, lr=lr, batch_size=self.request.batch_size)

    def cell(self, on: TaskPlan, arm: ArmPlan, seed: int, lr: float) -> Cell:
        """Give one run."""
        training = self.training(on, arm, seed, lr)
        return Cell(arm.label, on.task, arm.model, training, self.request.device, arm.mixer_source, arm.start)

    def rates(self) -> list[float]:
        """Give the learning rates of the tuning, half a power of ten apart, centred on the one asked for."""
        middle = (self.request.tune - 1) / 2
        return [float(f"{self.request.lr * 10 ** ((i - middle) / 2):.3g}") for i in range(self.request.tune)]

    def tuning_cells(self) -> list[Cell]:
        """Give the runs by which learning rates are chosen."""
        return [
            self.cell(on, arm, seed, lr)
            for on in self.tasks
            for arm in on.arms
            if not arm.frozen
            for lr in self.rates()
            for seed in TUNING_SEEDS
        ]

    def reported_cells(self, rates: dict[tuple[str, str], float]) -> list[Cell]:
        """Give the runs that are reported, seed by seed, at the rate chosen for each (task spec, label).

        A frozen arm is one run for all seeds.
        """
        cells = [
            self.cell(on, arm, seed, rates[on.task.spec, arm.label])
            for seed in range(self.request.seeds)
            for on in self.tasks
            for arm in on.arms
        ]
        return list({cell.key: cell for cell in reversed(cells)}.values())[::-1]

    def reach(self, look: int = 1) -> Reach:
        """Say what can be claimed with it."""
        arms = self.tasks[0].arms
        floors = [arm.label for arm in arms if arm.floor]
        fixed = [arm.label for arm in arms if arm.frozen]
        solvable = {on.label: on.task.solved_at is not None for on in self.tasks}
        return what_can_be_claimed([arm.label for arm in arms], floors, solvable, self.request.seeds, look, fixed=fixed)

    def matching(self) -> list[str]:
        """Say what was made equal and what still differs; tasks of which the same holds share a sentence."""
        of_tasks: dict[str, list[str]] = {}
        for on in self.tasks:
            of_tasks.setdefault(self._matching_on(on), []).append(on.label)
        said_of_all = [f"On {listed(tasks)}, {said}" for said, tasks in of_tasks.items()]
        frozen = told_of_frozen([arm.label for arm in self.tasks[0].arms if arm.frozen])
        return [*said_of_all, frozen] if frozen else said_of_all

    def _matching_on(self, on: TaskPlan) -> str:
        match = self.request.match
        if match == "none":
            said = "nothing was made equal"
        elif match == "time":
            said = "training time was made equal by steps: " + _each(on.arms, lambda arm: arm.steps)
        else:
            what = {"params": "parameters without embeddings", "flops": "FLOPs a token"}[match]
            changed = [arm for arm in on.arms if arm is on.arms[0] or arm.start is None]
            said = "nothing was made equal, for saved models stay as they are"
            if len(changed) > 1:
                said = f"{what} were made equal by feed-forward widths: " + _each(changed, lambda arm: arm.model.d_ff)
        unlike = still_differs([arm.label for arm in on.arms], [arm.model for arm in on.arms])
        return f"{said}; {unlike}." if unlike else f"{said}."

    def identity(self) -> dict[str, Any]:
        """Say what makes this plan and no other, in JSON's terms; seeds may be added without making another."""
        asked = self.request.model_dump(mode="json", exclude={"seeds"})
        tasks = [
            {
                "task": on.task.spec,
                "content_hash": on.task.content_hash,
                "arms": [arm.described() for arm in on.arms],
            }
            for on in self.tasks
        ]
        return {"headstock": __version__, "request": asked, "tasks": tasks}


def make_plan(request: Request) -> Plan:
    """Work a request out. Raises UserError for whatever in it cannot be run."""
    refuse_device(request.device)
    labels = labels_of(request.variants)
    tasks = [parse(spec) for spec in request.tasks]
    for one, other in combinations(range(len(tasks)), 2):
        if tasks[one].content_hash == tasks[other].content_hash:
            raise UserError(f"{request.tasks[one]} and {request.tasks[other]} are the same task: name it once.")
    names = [task.name for task in tasks]
    called = [name if names.count(name) == 1 else spec for name, spec in zip(names, request.tasks, strict=True)]
    return Plan(request, tuple(_on_task(request, *named, labels) for named in zip(called, tasks, strict=True)))


def _on_task(request: Request, label: str, task: Task, labels: list[str]) -> TaskPlan:
    shared = {**shared_by_all(task), **request.model_settings()}
    configs: list[ModelConfig] = []
    starts: list[Start | None] = []
    for variant in request.variants:
        saved = saved_arm(variant)
        config, start = (config_of(variant, **shared), None) if saved is None else saved.on(task)
        configs.append(config)
        starts.append(start)
    for config in configs:
        with told_of(config.mixer):
            mixer_class(config.mixer).check(config)
            if task.causal:
                refuse_bidirectional(config)
            sizes(config)  # builds it, and holds what it says it trains against what it does train
    as_saved = [label for label, start in zip(labels, starts, strict=True) if start is not None]
    configs = matched(labels, configs, request.match, as_saved=as_saved)
    _refuse_twins(labels, configs, starts, "" if request.match == "none" else " once they are matched")
    steps = request.steps or task.steps[request.budget]
    arms = tuple(
        ArmPlan(
            label,
            mixer_class(config.mixer).is_floor,
            config,
            0 if start is not None and start.frozen else steps,
            mixer_source(config.mixer),
            start,
        )
        for label, config, start in zip(labels, configs, starts, strict=True)
    )
    every = EVERY_WHEN_SOLVABLE if task.solved_at is not None else -(-steps // EVALUATIONS)
    plan = TaskPlan(label, task, arms, steps, min(every, steps))
    for arm in arms:  # refuses bad settings before anything runs
        refuse_penalty(arm.model, Plan(request, (plan,)).training(plan, arm, 0, request.lr))
    return plan


def shared_by_all(task: Task) -> dict[str, Any]:
    """Give what the task decides of every arm's model: its tokens, its rows, and whether it sees all of them."""
    seen = {} if task.causal else {"causal": False}
    return {"vocab_size": task.vocab_size, "context": task.context, **seen}


def _refuse_twins(
    labels: Sequence[str], configs: Sequence[ModelConfig], starts: Sequence[Start | None], when: str
) -> None:
    """Raise UserError where two arms are one model, however they are written: a seed would give both the same run."""
    made = [
        (mixer_class(config.mixer), config.model_copy(update={"mixer": ""}), start and (start.weights, start.frozen))
        for config, start in zip(configs, starts, strict=True)
    ]
    for one, other in combinations(range(len(made)), 2):
        if made[one] == made[other]:
            raise UserError(f"{labels[one]} and {labels[other]} are the same model{when}: name it once.")


def _each(arms: Sequence[ArmPlan], figure: Callable[[ArmPlan], int]) -> str:
    return ", ".join(f"{arm.label} {figure(arm):,}" for arm in arms)


def labels_of(variants: Sequence[str]) -> list[str]:
    """Give each variant a short name; where two would share one, the variant as it was written."""
    short = [_label(variant) for variant in variants]
    return [
        label if short.count(label) == 1 else variant.strip() for label, variant in zip(short, variants, strict=True)
    ]


def _label(variant: str) -> str:
    """Give the variant as the person wrote it, but a user's class without the way to its file, a folder likewise."""
    if (saved := saved_arm(variant)) is not None:
        return saved.label
    head, comma, keys = variant.strip().partition(",")
    place, colon, name = head.rpartition(":")
    return (name if colon and place else head) + comma + keys


def refuse_device(device: str) -> None:
    """Raise UserError for a device that is not here, or that holds no numbers."""
    try:
        torch.empty(1, device=device).sum().item()
    except (RuntimeError, AssertionError) as error:
        said = str(error).splitlines()[0]
        raise UserError(
            f"the device {device!r} cannot be used ({said}): choose cpu, or cuda where there is a GPU."
        ) from None
