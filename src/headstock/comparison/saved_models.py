"""Saved models as arms: `DIR` is trained on from the weights it has, `DIR,frozen=true` is scored as it is.

What such an arm is follows from the folder alone: neither settings for all arms nor matching change it.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headstock.checkpoints.native import load
from headstock.comparison.fitting import refuse_misfit
from headstock.comparison.statistics.sentences import listed
from headstock.errors import UserError, near_name
from headstock.model.config import ModelConfig
from headstock.model.mixers import mixer_names
from headstock.programs.compiled import Compiled
from headstock.programs.saving.record import hash_of
from headstock.programs.saving.saved import Loaded
from headstock.programs.saving.vocabulary import holds_program
from headstock.tasks.base import Task
from headstock.training.start import Start

FROZEN = "frozen"
ARMS = "arms"
"""In a comparison's folder, where compiled programs lie that were given to it as they are."""


@dataclass(frozen=True)
class SavedArm:
    """A variant that names a folder."""

    folder: Path
    frozen: bool

    @property
    def label(self) -> str:
        """The folder's own name, and that it is frozen."""
        return f"{self.folder.resolve().name}{' (frozen)' if self.frozen else ''}"

    def on(self, task: Task) -> tuple[ModelConfig, Start]:
        """Give its config and where it begins. Raises UserError where there is no model or it cannot read the task."""
        if not self.folder.is_dir():
            raise UserError(f"there is no folder {self.folder}: give that of a saved model.")
        start = Start.at(self.folder, frozen=self.frozen)
        model = load(self.folder)
        dtype = str(model.embed.weight.dtype).removeprefix("torch.")
        if dtype != "float32":
            raise UserError(f"the model in {self.folder} is {dtype}, and all arms compute in float32: save one so.")
        refuse_misfit(self.folder, model, task)
        if holds_program(self.folder) and task.context > model.config.context:
            raise UserError(
                f"{task.name} has rows of {task.context} tokens and the program in {self.folder} is compiled for "
                f"{model.config.context}: compile it with a larger max_length."
            )
        return model.config, start


def saved_arm(variant: str) -> SavedArm | None:
    """Read a variant that names a folder; None for one that names a mixer.

    A folder is written with a separator, as in runs/adder, or lies here with a model in it and is called like no mixer.
    Raises UserError for a key that such a variant has not.
    """
    head, *pairs = variant.strip().split(",")
    if not _is_folder(head):
        return None
    frozen: bool | None = None
    for pair in pairs:
        key, _, value = (piece.strip() for piece in pair.partition("="))
        if key != FROZEN:
            known = near_name(key, (FROZEN,))
            raise UserError(f"{head} is a saved model, whose shape is its own, so it has no key {key!r}: {known}")
        if value not in ("true", "false"):
            raise UserError(f"frozen is {value!r} in {variant!r}: write true or false.")
        if frozen is not None:
            raise UserError(f"frozen is given twice in {variant!r}: give it once.")
        frozen = value == "true"
    return SavedArm(Path(head), frozen is True)


@dataclass(frozen=True, eq=False)
class CompiledArm:
    """A compiled program that was given as it is, and its keys."""

    compiled: Compiled | Loaded
    keys: str

    @property
    def placeholder(self) -> str:
        """What stands for it where a folder's name is made: the program and its weights."""
        name = re.sub(r"[^A-Za-z0-9.]+", "-", self.compiled.record.program).strip("-")
        return f"{name}-{hash_of(self.compiled.model.state_dict())[:8]}{self.keys}"

    def saved_in(self, folder: Path) -> str:
        """Write it into a comparison's folder; give the variant that names it."""
        place = folder / ARMS / self.placeholder.partition(",")[0]
        if not place.exists():
            self.compiled.save(place)
        return f"{place}{self.keys}"


def compiled_arm(variant: object) -> CompiledArm | None:
    """Read a compiled program, or one with its keys as in (compiled, "frozen=true"); None for anything else."""
    compiled, keys = variant if isinstance(variant, tuple) and len(variant) == 2 else (variant, "")
    if not isinstance(compiled, (Compiled, Loaded)):
        return None
    return CompiledArm(compiled, f",{keys}" if keys else "")


def _is_folder(head: str) -> bool:
    if ":" in head or head.partition("+")[0] in mixer_names():
        return False
    return os.sep in head or (Path(head) / "config.json").is_file()


def told_of_frozen(labels: Sequence[str]) -> str:
    """Say what the seeds of frozen arms are; empty where there are none."""
    if not labels:
        return ""
    named = listed(labels)
    are, it = ("is one run", "it is") if len(labels) == 1 else ("are one run each", "each is")
    return (
        f"{named} {are}, scored and not trained: with every seed {it} the same, so a difference from a trained arm "
        f"varies with that arm's seeds alone, and there are no steps to solve, no learning and no seconds of training."
    )
