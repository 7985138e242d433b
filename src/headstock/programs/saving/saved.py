"""A compiled model in a folder: config.json, model.safetensors, tokenizer.json and program.json, written together.

`headstock.load` reads the model like any other; `load` here reads the rest beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from headstock.checkpoints import native
from headstock.checkpoints.files import as_json as json_text
from headstock.checkpoints.files import is_half_placed, read_json
from headstock.errors import UserError
from headstock.model.transformer import Transformer
from headstock.programs.compiler.certificate import Certificate
from headstock.programs.compiler.domain import DTYPES, Domain
from headstock.programs.explaining.explaining import explained
from headstock.programs.explaining.explanation import Explanation
from headstock.programs.reading_out import Readout
from headstock.programs.saving import record_json
from headstock.programs.saving.record import Record, of_the_zoo
from headstock.programs.saving.vocabulary import RECORD, save_vocabulary
from headstock.programs.size import SizeReport, size_of
from headstock.programs.values import Value


@dataclass(eq=False)
class Loaded:
    """A compiled model from a folder. It is called, read in batches and explained as it was when it was compiled."""

    record: Record
    model: Transformer
    certified_weights: Mapping[str, Tensor] | None
    """What was certified, if the folder still had it; to say what training moves."""

    @property
    def certificate(self) -> Certificate:
        """What was proved when it was compiled: of the weights it had then, see `is_certified`."""
        return self.record.certificate

    @property
    def domain(self) -> Domain:
        """What it may be given."""
        return self.record.domain

    @property
    def readout(self) -> Readout:
        """How it is given its input, and how its logits are understood."""
        return self.record.readout

    @property
    def is_certified(self) -> bool:
        """Whether its weights are still the very ones that the certificate is of."""
        return self.record.is_certified(self.model)

    def __call__(self, sequence: str | Sequence[Any]) -> list[Value]:
        """Give the value that the model computes at every position.

        Raises UserError for a sequence outside the domain: a token it does not know, or too many of them.
        """
        return self.batch([sequence])[0]

    def batch(self, sequences: Sequence[str | Sequence[Any]]) -> list[list[Value]]:
        """Give the values of several sequences, of whatever lengths, read together."""
        self.record.refuse_dtype(self.model)
        return self.readout.values_of(self.model, sequences)

    def explain(self, sequence: str | Sequence[Any]) -> Explanation:
        """Explain one run: as `Compiled.explain`, but with the program's own values only where it is one of the zoo.

        A folder keeps a program's lines and not what its functions do.
        """
        program = of_the_zoo(self.record)
        return explained(self.record, self.model, sequence, program=program, certified=self.certified_weights)

    def size(self) -> SizeReport:
        """Measure it."""
        return size_of(self.model, self.record.anatomy)

    def save(self, folder: str | Path) -> None:
        """Write it again, its weights as they are now; the certificate stays that of the weights it had."""
        save(self.record, self.model, folder)

    def __str__(self) -> str:
        said = str(self.certificate)
        return said if self.is_certified else f"{said}\n{NOT_CERTIFIED}"


NOT_CERTIFIED = "not certified any more: the weights have changed since it was compiled"


def save(record: Record, model: Transformer, folder: str | Path) -> None:
    """Write a compiled model into a folder, made if need be; the files are put in place whole and together.

    Raises UserError where the folder cannot be written, or a value of the program has no form in a file.
    """
    native.save(model, folder, tokenizer=_Beside(record))


class _Beside:
    """What stands in the folder beside the model: its vocabulary and its record."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._text = json_text(record_json.as_json(record))

    def save(self, folder: Path) -> None:
        save_vocabulary(self._record.readout, folder)
        (folder / RECORD).write_text(self._text, encoding="utf-8")


def read_record(folder: str | Path) -> Record:
    """Read program.json alone. Raises UserError where it is missing, damaged, or of another kind or version."""
    path = Path(folder) / RECORD
    if not path.parent.is_dir():
        raise UserError(f"there is no folder {folder}: give one that a compiled program was saved in.")
    if not path.exists():
        raise UserError(
            f"{folder} holds no compiled program: {RECORD} is not in it; compile one by headstock compile, or open "
            f"a model without a program by headstock.load."
        )
    if is_half_placed(path.parent):
        raise UserError(
            f"{folder} was being saved when its process was stopped, so its files may be of two programs: save the "
            f"program into it again, or delete it and compile the program anew."
        )
    held = read_json(path, "the record of a compiled program")
    if not isinstance(held, dict) or held.get("format") != record_json.FORMAT:
        raise UserError(f"{path} is of another kind: it should be the record of a compiled program.")
    if held.get("version") != record_json.VERSION:
        raise UserError(
            f"{path} is written in version {held.get('version')} of the format and this Headstock reads version "
            f"{record_json.VERSION}: open it with the Headstock that wrote it, or compile the program again."
        )
    try:
        return record_json.from_json(held)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) and error.args else str(error)
        raise UserError(f"{path} is damaged: {what.rstrip('.')}; compile the program again.") from None


def load(folder: str | Path, *, dtype: str | None = None, device: str = "cpu") -> Loaded:
    """Open a folder that `Compiled.save` wrote, or that a model was saved in again after training.

    dtype: may be said, and must be the one it was compiled for: scales and margins hold for that one alone.
    Raises UserError for a folder without a program, a damaged one, one whose model is another, and another dtype.
    """
    record = read_record(folder)
    if dtype is not None and dtype not in DTYPES:
        raise UserError(f"unknown dtype {dtype!r}: choose one of {', '.join(DTYPES)}.")
    if dtype not in (None, record.domain.dtype):
        raise UserError(
            f"{folder} holds {record.program} compiled for {record.domain.dtype}, and in {dtype} its values would be "
            f"rounded away: compile it again with dtype={dtype!r}."
        )
    model = native.load(folder, device=device)
    _refuse_another(folder, record, model)
    record.refuse_dtype(model)
    weights = None
    if record.is_certified(model):
        weights = {name: weight.detach().cpu().clone() for name, weight in model.state_dict().items()}
    return Loaded(record, model, weights)


def _refuse_another(folder: str | Path, record: Record, model: Transformer) -> None:
    """Raise UserError where the model beside the record is not one that it could be of."""
    config, readout, anatomy = model.config, record.readout, record.anatomy
    fits = (
        config.vocab_size == len(readout.names)
        and config.context == record.domain.max_length + (readout.start is not None)
        and config.causal == record.domain.causal
        and config.d_model == len(anatomy.columns)
        and config.n_layers == anatomy.n_layers
    )
    if not fits:
        raise UserError(
            f"{folder} holds another model than its {RECORD} tells of, so its answers cannot be read: put the model "
            f"back that was compiled, or compile {record.program} again."
        )
