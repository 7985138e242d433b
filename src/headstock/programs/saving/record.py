"""All that is known of a compiled model besides its weights: what a file keeps of it, and what explains it.

Knows nothing of expressions and of the compiler, so that a model from a folder has the same.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.transformer import Transformer
from headstock.programs.compiler.certificate import Certificate
from headstock.programs.compiler.domain import Domain
from headstock.programs.explaining.anatomy import Anatomy
from headstock.programs.explaining.dissecting import dissected
from headstock.programs.explaining.written_order import in_written_order, places_of
from headstock.programs.nodes import Expression
from headstock.programs.places import Place
from headstock.programs.program import Program
from headstock.programs.reading_out import Readout, refuse_dtype
from headstock.programs.values import Value

if TYPE_CHECKING:
    from headstock.programs.compiled import Compiled

MOST_LINES = 300
"""Lines of one file, up to which those between are kept with the lines that a program stands on."""


@dataclass(frozen=True)
class SourceLine:
    """A line of the author's file, as it was when the program was compiled."""

    file: str
    """Its name without its folder."""
    number: int
    text: str


@dataclass(frozen=True)
class Record:
    """What a compiled model computes, how it is read, what was proved of it, and what its parts are for."""

    program: str
    says: str
    end: Value
    """The token that a text ends with where the model goes on with it; None for a program that has none."""
    source: tuple[SourceLine, ...]
    readout: Readout
    certificate: Certificate
    anatomy: Anatomy
    weights: str
    """SHA-256 of the weights that were certified."""

    @property
    def domain(self) -> Domain:
        """What the model may be given."""
        return self.readout.domain

    def is_certified(self, model: Transformer) -> bool:
        """Whether a model has the very weights that were certified."""
        return hash_of(model.state_dict()) == self.weights

    def refuse_dtype(self, model: Transformer) -> None:
        """Raise UserError for a model in another dtype than it was certified in."""
        refuse_dtype(self.program, self.domain, model)


def record_of(compiled: "Compiled") -> Record:
    """Give the record of a compiled model, as it was compiled, whatever has become of its weights."""
    program = compiled.program
    certified = compiled.blueprint.build(compiled.domain.torch_dtype)
    return Record(
        program.name,
        program.says,
        program.end,
        source_of(program),
        compiled.readout,
        compiled.certificate,
        dissected(program.output, compiled.built),
        hash_of(certified.state_dict()),
    )


def of_the_zoo(record: Record) -> Expression | None:
    """Give the output of the zoo's program that a record is of; None for another, and where its lines have changed."""
    from headstock.programs import zoo

    try:
        found = zoo.get(record.program)
    except UserError:
        return None
    names = [one.name for one in in_written_order(found.output)]
    is_same = source_of(found) == record.source and names == [one.name for one in record.anatomy.expressions]
    return found.output if record.source and is_same else None


def hash_of(weights: Mapping[str, Tensor]) -> str:
    """Give the SHA-256 of weights, by their names, dtypes, shapes and every bit, wherever they are kept."""
    found = hashlib.sha256()
    for name, weight in sorted(weights.items()):
        found.update(f"{name} {weight.dtype} {tuple(weight.shape)} ".encode())
        found.update(weight.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def source_of(program: Program) -> tuple[SourceLine, ...]:
    """Give the lines that a program stands on, and those between them; none where its file is not there."""
    places = places_of(program.output) + ([program.place] if program.place is not None else [])
    by_file: dict[str, set[int]] = {}
    for place in places:
        by_file.setdefault(place.file, set()).add(place.line)
    lines = []
    for file, numbers in by_file.items():
        first, last = min(numbers), max(numbers)
        wanted = range(first, last + 1) if last - first < MOST_LINES else sorted(numbers)
        lines += [_line(Place(file, number)) for number in wanted]
    return tuple(lines) if any(line.text for line in lines) else ()


def _line(place: Place) -> SourceLine:
    name, _, number = str(place).rpartition(":")
    return SourceLine(name, int(number), place.whole)
