"""What a person asked to have compared, as a value: the options of `headstock compare` before anything follows."""

from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from headstock.errors import UserError, near_name
from headstock.model.config import ModelConfig
from headstock.settings import Settings
from headstock.training.config import TrainingConfig

Budget = Literal["quick", "full"]
Match = Literal["params", "flops", "time", "none"]

OF_THE_TASK = ("vocab_size", "context")
"""Keys of a model's config that the plan fills in."""


class Request(Settings):
    """Variants × tasks × seeds, and how they are to be trained. Raises UserError for what cannot be asked."""

    variants: tuple[str, ...]
    """The first is the baseline."""
    tasks: tuple[str, ...]
    """As `tasks.parse` reads them."""
    settings: tuple[tuple[str, str], ...] = ()
    """key, value: ModelConfig's and TrainingConfig's fields, for all arms; a variant's own keys come before them."""
    seeds: int = Field(default=8, ge=1, le=10_000)
    steps: PositiveInt | None = None
    """For every task; None takes each task's own number for the budget."""
    budget: Budget = "quick"
    lr: float = Field(default=1e-3, gt=0)
    batch_size: PositiveInt = 32
    match: Match = "params"
    tune: NonNegativeInt = 0
    """How many learning rates every arm is tried at, on seeds that are not reported; 0 tunes nothing."""
    device: str = "cpu"

    @model_validator(mode="after")
    def _can_be_asked(self) -> "Request":
        if not self.variants:
            raise UserError("nothing is compared: name two variants or more, such as softmax and differential.")
        if not self.tasks:
            raise UserError("nothing is asked of the variants: name a task, such as --task crossing.")
        for what, given in (("variant", self.variants), ("task", self.tasks)):
            twice = [name for name in given if given.count(name) > 1]
            if twice:
                raise UserError(f"the {what} {twice[0]!r} is named twice: name it once.")
        if self.tune == 1:
            raise UserError(
                "--tune 1 leaves nothing to choose from: give 2 learning rates or more, or 0 for no tuning."
            )
        known = {**ModelConfig.model_fields, **TrainingConfig.model_fields}
        for key, _ in self.settings:
            if key in SET_BY:
                raise UserError(f"{key!r} is not a setting: {SET_BY[key]}.")
            if key not in known:
                raise UserError(f"unknown setting {key!r}: {near_name(key, set(known) - set(SET_BY))}")
        keys = [key for key, _ in self.settings]
        if len(set(keys)) < len(keys):
            raise UserError("a setting is given twice: give each key once.")
        return self

    def model_settings(self) -> dict[str, Any]:
        """Give the settings that are ModelConfig's."""
        return {key: value for key, value in self.settings if key in ModelConfig.model_fields}

    def training_settings(self) -> dict[str, Any]:
        """Give the settings that are TrainingConfig's."""
        return {key: value for key, value in self.settings if key in TrainingConfig.model_fields}


SET_BY = {
    "mixer": "every variant begins with its own",
    "vocab_size": "it follows from the task",
    "context": "it follows from the task; write, for instance, text,context=128",
    "steps": "use --steps",
    "seed": "use --seeds",
    "lr": "use --lr",
    "batch_size": "use --batch",
}
