"""The plan of a study at a budget: its rows, the run of each with each seed, refused before anything is computed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from headstock import __version__
from headstock.comparison.matching import sizes
from headstock.comparison.plan import refuse_device
from headstock.errors import UserError, near_name
from headstock.model.causality import refuse_bidirectional
from headstock.model.mixers import mixer_class, told_of
from headstock.studies.base import Budget, Row, Study
from headstock.studies.cells import StudyCell, cell_of
from headstock.studies.runs import with_plain_numbers
from headstock.studies.well_written import MOST_SEEDS, refuse_badly_written
from headstock.tasks import parse
from headstock.tasks.base import Task
from headstock.training.agreement import refuse_penalty
from headstock.training.config import TrainingConfig


@dataclass(frozen=True)
class StudyPlan:
    """What is to be run of a study."""

    study: Study
    budget: Budget
    seeds: int
    """Runs of every row but those of `seeds_of`."""
    seeds_of: Mapping[str, int]
    """Runs of rows that have their own number of them."""
    steps: int | None
    """The most steps that any row trains, in place of the budget's own; None leaves those."""
    device: str

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The rows that the budget has, in order."""
        chosen = self.study.efforts[self.budget].rows
        return tuple(row for row in self.study.rows if not chosen or row.name in chosen)

    @property
    def as_published(self) -> bool:
        """Whether rows have the whole budget: the document's own where it can be had."""
        return self.budget == "full" and self.steps is None

    @property
    def most_seeds(self) -> int:
        """The seeds that any row has."""
        return max(map(self.seeds_of_row, self.rows))

    def seeds_of_row(self, row: Row) -> int:
        """Give how many runs a row has."""
        return self.seeds_of.get(row.name, self.seeds)

    def runs(self) -> Iterator[tuple[Row, int]]:
        """Give every row with every seed: all rows with seed 0, then those that have seed 1."""
        for seed in range(self.most_seeds):
            yield from ((row, seed) for row in self.rows if seed < self.seeds_of_row(row))

    def cell(self, row: Row, seed: int) -> StudyCell:
        """Give the training of a row with a seed."""
        cell = cell_of(self.study, row, self.budget, seed, self.device)
        return cell if self.steps is None else replace(cell, training=_shortened(cell.training, self.steps))

    def cells(self) -> list[StudyCell]:
        """Give all trainings, in the order of `runs`."""
        return [self.cell(row, seed) for row, seed in self.runs() if row.variant]

    def tasks(self) -> list[Task]:
        """Give the tasks of all rows, in their order; UserError for one that cannot be used here."""
        return [parse(row.task or self.study.task) for row in self.rows if row.task or row.variant]

    def identity(self) -> dict[str, Any]:
        """Say what a folder must hold to be gone on with; rows, claims and seeds may come and go."""
        return {"study": self.study.name, "budget": self.budget, "steps": self.steps, "device": self.device}

    def described(self, seeds: int) -> dict[str, Any]:
        """Say all that is asked, with so many seeds, in JSON's terms."""
        tasks = {task.spec: task.content_hash for task in self.tasks()}
        said = {
            "headstock": __version__,
            **self.identity(),
            "seeds": seeds,
            **({"seeds_of": dict(self.seeds_of)} if self.seeds_of else {}),
            "title": self.study.title,
            "asks": self.study.asks,
            "source": self.study.source,
            "tasks": [{"task": spec, "content_hash": known} for spec, known in tasks.items()],
            "rows": [self._row(row) for row in self.rows],
            "claims": [
                {"says": claim.says, "published": claim.published, "at_least": claim.at_least, "at_most": claim.at_most}
                for claim in self.study.claims
            ],
        }
        found: dict[str, Any] = with_plain_numbers(said)
        return found

    def _row(self, row: Row) -> dict[str, Any]:
        said: dict[str, Any] = {"name": row.name, "says": row.says, "published": dict(row.published)}
        if row.variant:
            described = self.cell(row, 0).description()
            described["training"] = {key: value for key, value in described["training"].items() if key != "seed"}
            said |= described
        return said


def make_plan(
    study: Study, budget: Budget, seeds: int | None = None, steps: int | None = None, device: str = "cpu"
) -> StudyPlan:
    """Work a study out. Raises UserError for whatever in it or in what is asked cannot be run."""
    refuse_badly_written(study)
    if budget not in study.efforts:
        raise UserError(f"{study.name} has no budget {budget!r}: {near_name(budget, study.efforts)}")
    effort = study.efforts[budget]
    seeds, seeds_of = (effort.seeds, effort.seeds_of) if seeds is None else (seeds, {})
    for option, value, most in (("seeds", seeds, MOST_SEEDS), ("steps", steps, None)):
        if value is not None and value < 1:
            raise UserError(f"{option} is {value}: give 1 or more.")
        if value is not None and most is not None and value > most:
            raise UserError(f"{option} is {value}: give {most} or fewer.")
    refuse_device(device)
    plan = StudyPlan(study, budget, seeds, seeds_of, steps, device)
    if steps is not None and not any(row.variant for row in plan.rows):
        raise UserError(f"{study.name} trains nothing, so it has no steps to shorten: leave out --steps.")
    for cell in (plan.cell(row, 0) for row in plan.rows if row.variant):
        with told_of(cell.model.mixer):
            mixer_class(cell.model.mixer).check(cell.model)
            if cell.task.causal:
                refuse_bidirectional(cell.model)
            refuse_penalty(cell.model, cell.training)
            sizes(cell.model)  # builds it, and holds what it says it trains against what it does train
    plan.tasks()
    return plan


def _shortened(training: TrainingConfig, most: int) -> TrainingConfig:
    """Give a training of `most` steps or fewer, with the same share of warm-up."""
    steps = min(most, training.steps)
    return TrainingConfig(
        **{
            **training.model_dump(),
            "steps": steps,
            "warmup_steps": min(round(training.warmup_steps * steps / training.steps), steps - 1),
            "evaluate_every": min(training.evaluate_every, steps),
        }
    )
