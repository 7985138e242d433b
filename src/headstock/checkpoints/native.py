"""Headstock's own format: a folder with config.json and model.safetensors, readable by anyone.

Knows nothing of training: optimiser state and data order belong to a run, not to a model.
"""

from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from headstock.checkpoints.files import read_json, write_atomically, write_json
from headstock.errors import UserError
from headstock.model.config import ModelConfig
from headstock.model.transformer import Transformer, build_from

FORMAT = "headstock-model"
VERSION = 1


class Vocabulary(Protocol):
    """What turns text into ids and keeps itself in a folder."""

    def save(self, folder: Path) -> None:
        """Write tokenizer.json."""
        ...


def save(model: Transformer, folder: str | Path, *, tokenizer: Vocabulary | None = None) -> None:
    """Write a model into a folder, made if need be: config.json, model.safetensors and tokenizer.json if given.

    Each file is put in place whole. Raises UserError where the folder cannot be written.
    """
    folder = Path(folder)
    dtype = str(model.embed.weight.dtype).removeprefix("torch.")
    config = {"format": FORMAT, "version": VERSION, "dtype": dtype, "model": model.config.model_dump()}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    if tokenizer is not None:
        tokenizer.save(folder)
    write_atomically(folder / "model.safetensors", lambda beside: save_file(tensors, beside))
    write_json(folder / "config.json", config)


def load(folder: str | Path, *, device: str | torch.device = "cpu") -> Transformer:
    """Read a model that `save` wrote, in evaluation mode.

    Raises UserError where the folder holds no model, one of another format, or a damaged one.
    """
    folder = Path(folder)
    described = read_json(folder / "config.json", "the config of a Headstock model")
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise UserError(f"{folder} holds no Headstock model: its config.json is of another kind.")
    if described.get("version") != VERSION:
        raise UserError(
            f"{folder} is written in version {described.get('version')} of the format and this Headstock reads "
            f"version {VERSION}: open it with the Headstock that wrote it."
        )
    config = ModelConfig(**described["model"])
    weights = folder / "model.safetensors"
    try:
        tensors = load_file(weights)
    except FileNotFoundError:
        raise UserError(f"{folder} has a config but no model.safetensors: the model was not saved whole.") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{weights} is damaged: {error}; restore it from a copy.") from None
    model = build_from(config).to(getattr(torch, described["dtype"]))
    _refuse_foreign(model, tensors, weights)
    model.load_state_dict(tensors)
    return model.to(device).eval()


def _refuse_foreign(model: Transformer, tensors: dict[str, torch.Tensor], weights: Path) -> None:
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if expected != found:
        odd = sorted(set(expected.items()) ^ set(found.items()))[0][0]
        raise UserError(
            f"{weights} does not hold the model its config.json describes: {odd} is {found.get(odd, 'missing')} "
            f"instead of {expected.get(odd, 'absent')}."
        )
