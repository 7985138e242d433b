"""From what the compiler made to the anatomy of the model: which line each part of it belongs to."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from headstock.programs.compiler.allocate import Allocation
from headstock.programs.compiler.compiling import Built
from headstock.programs.compiler.embedding import read_instead
from headstock.programs.compiler.heads import PlannedHead
from headstock.programs.compiler.quantities import Affine, Form, Quantity
from headstock.programs.explaining.anatomy import Anatomy, ColumnPart, HeadPart, Held, Term, Traced, UnitPart
from headstock.programs.explaining.written_order import Named, in_written_order
from headstock.programs.nodes import Constant, Expression
from headstock.programs.places import Place

FOLDED = "folded into what reads it"
MOST_SHOWN = 4
"""Columns of a sum that are told one by one."""


def dissected(output: Expression, built: Built) -> Anatomy:
    """Give the anatomy of a model that was built for an output."""
    return _Dissection(output, built).anatomy()


class _Dissection:
    """One model on the table."""

    def __init__(self, output: Expression, built: Built) -> None:
        self.built = built
        self.named = in_written_order(output)
        self.until = _until(built.allocation)
        self.lines_of = self._lines_of_quantities()
        self.made_by = self._makers()

    def anatomy(self) -> Anatomy:
        expressions = tuple(self._traced(one) for one in self.named)
        columns = tuple(
            ColumnPart(number, name, tuple(self._held(quantity) for quantity in held))
            for number, (name, held) in enumerate(
                zip(self.built.blueprint.columns, self.built.allocation.holds or [[]], strict=True)
            )
        )
        return Anatomy(expressions, self._heads(), self._units(), columns, self.built.schedule.n_layers)

    # Who made what

    def _makers(self) -> dict[Quantity, str]:
        """Give for each number in the residual what computes it."""
        schedule = self.built.schedule
        made_by = {quantity: "embedding" for quantity in schedule.quantities if not quantity.time}
        for layer, number, head in _numbered(schedule.heads):
            for _, made in head.carried:
                made_by[made] = f"layer {layer} head {number} ({head.kind})"
        writing = Counter(made for unit in schedule.units for made in unit.writes)
        for made, count in writing.items():
            made_by[made] = f"layer {made.time // 2 - 1}, {count} {'unit' if count == 1 else 'units'}"
        return made_by

    def _lines_of_quantities(self) -> dict[Quantity, list[str]]:
        """Give for each number the lines of the expressions that stand in it, the nearest first."""
        found: dict[Quantity, list[str]] = {}
        for (node, _), form in self.built.lowering.forms.items():
            if form is None:
                continue
            terms = self._affine(form).terms
            for quantity in terms:
                if len(terms) == 1 and quantity.time:
                    found.setdefault(quantity, []).append(_line(node.place))
        for quantity in self.built.schedule.quantities:
            if quantity.place is not None:
                found.setdefault(quantity, []).insert(0, _line(quantity.place))
        return {quantity: [line for line in dict.fromkeys(lines) if line] for quantity, lines in found.items()}

    def _affine(self, form: Form) -> Affine:
        return read_instead(form.affine, self.built.instead)

    # Parts

    def _traced(self, one: Named) -> Traced:
        line = _line(one.node.place)
        source = one.node.place.text if line else ""
        became = self.built.lowering.simplify.became.get(id(one.node))
        simple = one.node if became is None else became[1]
        if isinstance(simple, Constant):
            value = simple.value
            return Traced(one.name, line, source, "in no column: a constant", "folded", 0, (), 0.0, {value: 0.0})
        form = self.built.lowering.forms.get((simple, False))
        affine = None if form is None else self._affine(form)
        if form is None or affine is None or not self._stands(affine):
            return Traced(one.name, line, source, "in no column", FOLDED, None)
        column_of = self.built.allocation.column_of
        terms = tuple(Term(column_of[quantity], float(w), quantity.name) for quantity, w in affine.terms.items())
        codes = {value: float(code) for value, code in form.codes.items()}
        where, how = _where(terms, affine), self._how(affine)
        time, constant = affine.time, float(affine.constant)
        return Traced(one.name, line, source, where, how, time, terms, constant, codes, form.error)

    def _stands(self, affine: Affine) -> bool:
        """Whether all of its numbers are in the residual at one moment."""
        alive = self.built.allocation.column_of
        return all(
            quantity in alive and affine.time < self.until.get(quantity, affine.time + 1) for quantity in affine.terms
        )

    def _how(self, affine: Affine) -> str:
        latest = [quantity for quantity in affine.terms if quantity.time == affine.time]
        makers = list(dict.fromkeys(self.made_by[quantity] for quantity in latest))
        if not makers:
            return "constant"
        more = "linear in " if len(affine.terms) > 1 and affine.time else ""
        return (
            more
            + (makers[0] if len(makers) < 3 else f"{makers[0]} and others")
            + (f" and {makers[1]}" if len(makers) == 2 else "")
        )

    def _heads(self) -> tuple[HeadPart, ...]:
        parts = []
        for layer, number, head in _numbered(self.built.schedule.heads):
            lines = [_line(head.place), *(line for _, made in head.carried for line in self.lines_of.get(made, ()))]
            parts.append(HeadPart(layer, number, f"{head.name}: {head.kind}", _different(lines)))
        return tuple(parts)

    def _units(self) -> tuple[UnitPart, ...]:
        """Group neighbouring units of one line and one purpose; those that clear columns come last in a layer."""
        lines: dict[tuple[int, str], list[str]] = {}
        for planned in self.built.schedule.units:
            lines.setdefault((planned.time // 2 - 1, planned.name), []).append(_line(planned.place))
        parts: list[UnitPart] = []
        for layer, made in enumerate(self.built.blueprint.layers):
            for place, unit in enumerate(made.units):
                waiting = lines.get((layer, unit.name))
                line = waiting.pop(0) if waiting else self._line_of_cleared(2 * (layer + 1), unit.writes)
                last = parts[-1] if parts else None
                if last is not None and (last.layer, last.name, last.line) == (layer, unit.name, line):
                    parts[-1] = replace(last, last=place)
                else:
                    parts.append(UnitPart(layer, place, place, unit.name, line))
        return tuple(parts)

    def _line_of_cleared(self, time: int, writes: Mapping[str, float]) -> str:
        """Give the line of what units take away at a time, which is none of their own."""
        for name in writes:
            column = self.built.blueprint.columns.index(name)
            for quantity in self.built.allocation.holds[column]:
                if self.until.get(quantity) == time:
                    return next(iter(self.lines_of.get(quantity, ())), "")
        return ""

    def _held(self, quantity: Quantity) -> Held:
        lines = self.lines_of.get(quantity, [])
        return Held(quantity.name, lines[0] if lines else "", quantity.time, self.until.get(quantity))


def _numbered(heads: Iterable[PlannedHead]) -> Iterable[tuple[int, int, PlannedHead]]:
    """Give each head's layer and number in it, as the model has them."""
    counts: Counter[int] = Counter()
    for head in heads:
        layer = (head.time - 1) // 2
        yield layer, counts[layer], head
        counts[layer] += 1


def _until(allocation: Allocation) -> Mapping[Quantity, int]:
    """Give for each number that is taken away, when."""
    return {quantity: time for time, quantities in allocation.clearing.items() for quantity in quantities}


def _where(terms: tuple[Term, ...], affine: Affine) -> str:
    constant = float(affine.constant)
    if not terms:
        return "in no column: a constant"
    if len(terms) == 1:
        (term,) = terms
        return f"{_signed([(term.weight, f'column {term.column} ({term.name})')], constant)}"
    shown = [(term.weight, f"column {term.column}") for term in terms[:MOST_SHOWN]]
    more = f" + {len(terms) - MOST_SHOWN} more" if len(terms) > MOST_SHOWN else ""
    return f"not in a column: a sum of {_signed(shown, constant if not more else 0.0)}{more}"


def _signed(parts: list[tuple[float, str]], constant: float) -> str:
    """Write a sum: `2 × column 3 - column 4 + 1`."""
    words: list[str] = []
    for weight, name in [*parts, *([(constant, "")] if constant else [])]:
        size = f"{abs(weight):g} × " if name and abs(weight) != 1 else "" if name else f"{abs(weight):g}"
        sign = ("-" if weight < 0 else "") if not words else (" - " if weight < 0 else " + ")
        words.append(f"{sign}{size}{name}")
    return "".join(words)


def _line(place: Place | None) -> str:
    return str(place) if place is not None and place.is_authored else ""


def _different(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(line for line in dict.fromkeys(lines) if line)
