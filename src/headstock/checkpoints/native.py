"""Headstock's own format: a folder with config.json and model.safetensors, readable by anyone.

Knows nothing of training: optimiser state and data order belong to a run, not to a model.
"""

import json
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from headstock.checkpoints.files import as_json, read_json, written_together
from headstock.errors import UserError
from headstock.model.config import ModelConfig
from headstock.model.mixers import told_of
from headstock.model.transformer import Transformer, build_from

FORMAT = "headstock-model"
VERSION = 1
DTYPES = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


class Vocabulary(Protocol):
    """What turns text into ids and keeps itself in a folder."""

    def save(self, folder: Path) -> None:
        """Write tokenizer.json."""
        ...


def save(model: Transformer, folder: str | Path, *, tokenizer: Vocabulary | None = None) -> None:
    """Write a model into a folder, made if need be: config.json, model.safetensors and tokenizer.json if given.

    The files are put in place whole and together: until then, and after any error, what stood there still stands.
    Raises UserError where the folder cannot be written or the model's numbers are not all of one dtype.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    dtypes = sorted({str(x.dtype).removeprefix("torch.") for x in tensors.values() if x.is_floating_point()})
    if len(dtypes) != 1 or dtypes[0] not in DTYPES:
        raise UserError(
            f"the model's numbers are {' and '.join(dtypes)}: convert all of them to one of {', '.join(DTYPES)}, "
            f"such as model.float()."
        )
    described = {"format": FORMAT, "version": VERSION, "dtype": dtypes[0], "model": model.config.model_dump()}
    with written_together(Path(folder)) as beside:
        if tokenizer is not None:
            tokenizer.save(beside)
        (beside / "config.json").write_text(as_json(described), encoding="utf-8")
        try:  # the description again, so that weights are never read by another model's
            save_file(tensors, beside / "model.safetensors", {"description": json.dumps(described)})
        except SafetensorError as error:
            raise OSError(str(error)) from None


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
    if str(described.get("dtype")) not in DTYPES or not isinstance(described.get("model"), dict):
        raise UserError(f"{folder}/config.json is damaged: it needs a dtype and a model; restore it from a copy.")
    config = ModelConfig(**described["model"])
    weights = folder / "model.safetensors"
    try:
        with safe_open(weights, "pt") as opened:
            inside = opened.metadata() or {}
        tensors = load_file(weights)
    except FileNotFoundError:
        raise UserError(f"{folder} has a config but no model.safetensors: the model was not saved whole.") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{weights} is damaged: {error}; restore it from a copy.") from None
    with told_of(config.mixer):
        model = build_from(config).to(DTYPES[described["dtype"]])
    _refuse_foreign(model, tensors, weights)
    if _read(inside.get("description")) != described:
        raise UserError(
            f"{weights} was not saved together with its config.json, so nobody knows what model it is: save it again."
        )
    model.load_state_dict(tensors)
    return model.to(device).eval()


def _read(description: str | None) -> Any:
    try:
        return json.loads(description or "null")
    except ValueError:
        return None


def _refuse_foreign(model: Transformer, tensors: dict[str, torch.Tensor], weights: Path) -> None:
    expected, found = ({name: _kind(x) for name, x in numbers.items()} for numbers in (model.state_dict(), tensors))
    if expected != found:
        odd = sorted(set(expected.items()) ^ set(found.items()))[0][0]
        raise UserError(
            f"{weights} does not hold the model its config.json describes: {odd} is {found.get(odd, 'missing')} "
            f"instead of {expected.get(odd, 'absent')}."
        )


def _kind(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
