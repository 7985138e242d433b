"""The runs of a study as cells: what decides a run's numbers, and nothing that does not.

A cell is known by the choices that differ from the defaults, so a key that a later version adds makes no result of an
earlier one foreign; which version computed it stands beside it in environment.json.
"""

from dataclasses import dataclass
from typing import Any

from headstock.comparison.plan import Cell, shared_by_all
from headstock.errors import UserError, near_name
from headstock.model.config import ModelConfig, config_of
from headstock.model.mixers import mixer_source
from headstock.studies.base import Budget, Row, Study
from headstock.tasks import parse
from headstock.training.config import TrainingConfig


@dataclass(frozen=True)
class StudyCell(Cell):
    """One training of one row with one seed."""

    def description(self) -> dict[str, Any]:
        """Say all that decides the run's numbers, in JSON's terms."""
        own = {} if self.mixer_source is None else {"mixer_source": self.mixer_source}
        return {
            **own,
            "task": self.task.name,
            "task_hash": self.task.content_hash,
            "variant": self.model.variant,
            "vocab_size": self.model.vocab_size,
            "context": self.model.context,
            "training": self.training.model_dump(exclude_defaults=True),
            "device": self.device,
        }


def cell_of(study: Study, row: Row, budget: Budget, seed: int, device: str = "cpu") -> StudyCell:
    """Give the run of a row. Raises UserError where its settings cannot be."""
    task = parse(row.task or study.task)
    settings = {**study.settings, **study.efforts[budget].settings, **row.settings}
    if "seed" in settings:
        raise UserError(f"the study {study.name} sets a seed: leave it out, for each run of a row has its own.")
    for_model = {key: value for key, value in settings.items() if key in ModelConfig.model_fields}
    for_training = {key: value for key, value in settings.items() if key in TrainingConfig.model_fields}
    if unread := sorted(set(settings) - set(for_model) - set(for_training)):
        near = near_name(unread[0], {*ModelConfig.model_fields, *TrainingConfig.model_fields})
        raise UserError(f"the study {study.name} has a setting {unread[0]!r} that nobody reads: {near}")
    model = config_of(row.variant, **{**shared_by_all(task), **for_model})
    if model.vocab_size != task.vocab_size or model.context < task.context:
        raise UserError(
            f"the study {study.name} gives {row.name} vocab_size={model.vocab_size} and context={model.context}, where "
            f"its task has {task.vocab_size} tokens in rows of {task.context}: leave both to the task, or give it a "
            f"longer context."
        )
    training = TrainingConfig(**for_training, seed=seed)
    if row.steps_share != 1:
        steps = max(1, round(training.steps * row.steps_share))
        training = TrainingConfig(**{**for_training, "steps": steps}, seed=seed)
    return StudyCell(row.name, task, model, training, device, mixer_source(model.mixer))
