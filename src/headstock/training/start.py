"""Where a run begins that does not begin with numbers drawn from its seed: with a saved model.

Knows nothing of what the model is, or of what it was trained on.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from headstock.checkpoints.native import load
from headstock.errors import UserError
from headstock.model.transformer import Transformer

WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Start:
    """A saved model in its folder."""

    folder: str
    weights: str
    """SHA-256 of its file of weights."""
    frozen: bool = False
    """Whether it is scored as it is, and not trained."""

    @classmethod
    def at(cls, folder: Path, *, frozen: bool = False) -> "Start":
        """Give the model in a folder as it is now. Raises UserError where there is none."""
        try:
            weights = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
        except OSError:
            raise UserError(
                f"{folder} holds no model: give a folder that headstock compile, headstock train or headstock.save "
                f"wrote."
            ) from None
        return cls(str(folder), weights, frozen)

    def open(self) -> Transformer:
        """Give the model. Raises UserError where the folder holds another one by now, or a damaged one."""
        folder = Path(self.folder)
        if Start.at(folder).weights != self.weights:
            raise UserError(f"the model in {folder} has changed since the run was planned: plan it again.")
        return load(folder)
