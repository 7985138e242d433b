"""Explaining one run of a compiled model: what its program says beside what it holds, and what each part is for."""

import math
from collections.abc import Sequence

from headstock.model.transformer import Transformer
from headstock.programs.explaining.anatomy import Anatomy, Traced
from headstock.programs.explaining.changes import Weights, moved_parts
from headstock.programs.explaining.explanation import Explained, ExplainedHead, Explanation
from headstock.programs.explaining.measuring import Measured, measured, nearest
from headstock.programs.explaining.written_order import in_written_order
from headstock.programs.interpreter import Reading
from headstock.programs.nodes import Expression
from headstock.programs.saving.record import Record
from headstock.programs.values import Value


def explained(
    record: Record,
    model: Transformer,
    sequence: Sequence[Value],
    *,
    program: Expression | None = None,
    certified: Weights | None = None,
) -> Explanation:
    """Explain what a model makes of a sequence.

    program: the output expression that the record is of, where it is at hand. certified: the weights that were
    certified, where they are, to say what has moved. Raises UserError for a sequence outside the domain.
    """
    record.refuse_dtype(model)
    is_certified = record.is_certified(model)
    found = measured(model, record.readout, record.anatomy, sequence)
    notes = []
    if not is_certified:
        notes.append("The weights are not those that were certified: numbers that have moved are in brackets.")
        if certified is None:
            notes.append("What the weights were is not known, so no part is named that has moved.")
    if program is None:
        notes.append("The program's own values are not known: a folder keeps its lines, and not what its functions do.")
    if any(one.codes is None for one in record.anatomy.expressions):
        notes.append("· stands for an expression that the model has no number for.")
    expressions = _expressions(record.anatomy, found, program, causal=record.domain.causal)
    if any(any(one.differs) for one in expressions):
        notes.append("! stands where the model has another value than the program.")
    moved = () if is_certified or certified is None else moved_parts(record.anatomy, model, certified)
    heads = tuple(ExplainedHead(*pair) for pair in zip(record.anatomy.heads, found.heads, strict=True))
    return Explanation(
        f"{record.program}, {'causal' if record.domain.causal else 'bidirectional'}, {record.domain.dtype}",
        found.tokens,
        found.labels,
        expressions,
        heads,
        record.anatomy.units,
        record.anatomy.columns,
        moved,
        found.output,
        tuple(notes),
    )


def _expressions(
    anatomy: Anatomy, found: Measured, program: Expression | None, *, causal: bool
) -> tuple[Explained, ...]:
    rows: list[list[Value] | None] = [None] * len(anatomy.expressions)
    if program is not None:
        reading = Reading(found.tokens, causal=causal)
        rows = [reading[one.node] for one in in_written_order(program)]
    return tuple(
        _explained(part, row, numbers, len(found.tokens))
        for part, row, numbers in zip(anatomy.expressions, rows, found.numbers, strict=True)
    )


def _explained(part: Traced, row: list[Value] | None, numbers: tuple[float, ...] | None, length: int) -> Explained:
    values = off = None
    moved = (False,) * length
    if numbers is not None and part.codes is not None:
        values = tuple(nearest(part.codes, numbers))
        right = values if row is None else row
        off = tuple(abs(number - part.codes.get(value, math.inf)) for number, value in zip(numbers, right, strict=True))
        moved = tuple(not distance <= part.error for distance in off)
    program = None if row is None else tuple(row)
    return Explained(part.name, part.line, part.source, part.where, part.how, program, values, numbers, off, moved)
