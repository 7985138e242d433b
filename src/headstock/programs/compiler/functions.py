"""Elementwise functions: a sum of what is there where the function is linear, else ReLU units on one number.

Of several arguments one number z is made that tells apart what the function tells apart: their difference for a
comparison, their sum, or all of them as the digits of one number. Nested functions are one function of what they come
from, where that takes few units: each function that is not, costs a layer.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from headstock.errors import UserError
from headstock.programs.compiler.plan import Decision, PlannedUnit
from headstock.programs.compiler.quantities import Affine, Form, Quantity, common_grid
from headstock.programs.compiler.represent import Coded
from headstock.programs.compiler.units import MOST_UNITS, Fitted, Source, drawn, jumps, kinks, steps
from headstock.programs.nodes import Expression, Indices, Length, Map, Tokens, Width
from headstock.programs.values import Value

if TYPE_CHECKING:
    from headstock.programs.compiler.lower import Lowering

MOST_FUSED = 4_000
"""Combinations of sources up to which nested functions are tried as one."""
FEW_UNITS = 64
"""So many units are taken rather than a layer more."""

Rows = list[tuple[tuple[Fraction, ...], Fraction]]
"""The codes of the parts and the code of the function's value, for every combination that occurs."""


class Functions:
    """Forms of functions, for one program."""

    def __init__(self, lowering: "Lowering") -> None:
        self._of = lowering
        self._units: dict[tuple[Any, ...], PlannedUnit] = {}
        self._combined: dict[tuple[Map, tuple[Expression, ...]], list[tuple[tuple[Value, ...], Value]]] = {}

    def form(self, node: Map, *, exact: bool) -> Form | None:
        """Give the form of a function; with `exact`, from exact forms of its arguments, or None."""
        values = self._of.values
        sources = values.sources(node)
        if len(sources) == 1 and isinstance(sources[0], (Tokens, Indices)):
            return self._of.table(node)
        if len(sources) == 1 and isinstance(sources[0], Length):
            return self._of.attending.of_length(node, sources[0])
        if len(sources) == 1 and isinstance(sources[0], Width) and not exact:
            return self._of_one_width(node, sources[0])
        arguments = tuple(dict.fromkeys(part for part in node.arguments if len(values[part]) > 1))
        linear = self._linear(node, arguments, exact=exact)
        if linear is not None:
            return linear
        ways = self._ways(node, arguments, exact=exact)
        if values.count(sources) <= MOST_FUSED and [*map(id, sources)] != [*map(id, arguments)]:
            fused = min(self._ways(node, sources, exact=exact), key=lambda way: way.units, default=None)
            if fused is not None:
                # A nested function of few units is made at once, for each that is not costs a layer.
                ways.append(fused if fused.units > FEW_UNITS else replace(fused, units=0))
        if (choice := self._choice(node, exact=exact)) is not None:
            ways.append(choice)
        for way in sorted(ways, key=lambda way: way.units):
            fitted = None if way.choice is not None else self._fit(way.z, way.points)
            if fitted is not None or way.choice is not None:
                return self._made(node, way, fitted)
        if exact:
            return None
        raise UserError(
            f"{node.said} cannot be told from noise in {self._of.domain.dtype}, or takes more than {MOST_UNITS:,} "
            f"units: declare a smaller max_length or vocabulary{self._of.domain.wider}, or work on fewer "
            f"values at a time."
        )

    def of_width(self, node: Width) -> Form:
        """Give a count as the whole number that it is, from the start token's weight."""
        return self._of_one_width(node, node)

    def square(self, node: Expression, shift: Fraction) -> Expression:
        """Give the expression (code − shift)²."""
        codes = self._of.codes(node)
        function = Coded(tuple(codes.items()), shift)
        return self._of.simplify.mapped(function, node, like=node, written="square")

    # One number

    def _of_one_width(self, node: Expression, width: Width) -> Form:
        """A function of one count is read off the start token's weight, 1/(1 + count), directly."""
        raw = self._of.attending.counted(width)
        values, codes = self._of.values, self._of.codes(node)
        found = values.table(node)
        points = sorted((Fraction(1, 1 + count), codes[found[count,]]) for count in values[width])
        fitted = self._fit(Affine.of(raw), points)
        if fitted is None:
            raise UserError(self._too_fine(node))
        return self._made(node, Way(0, Affine.of(raw), points), fitted)

    def _ways(self, node: Map, parts: tuple[Expression, ...], *, exact: bool) -> "list[Way]":
        """Give the numbers z that tell apart what the function tells apart, each with the units that it takes."""
        forms = [self._of.exact_form(part) if exact else self._of.form(part) for part in parts]
        known = [form for form in forms if form is not None]
        rows = self._rows(node, parts, known) if len(known) == len(forms) else None
        found = []
        for weights in [] if rows is None else _weightings(rows):
            points = None if rows is None else _on_a_line(rows, weights)
            if points is None:
                continue
            z = Affine()
            for weight, form in zip(weights, known, strict=True):
                z = z.plus(form.affine.times(weight))
            units = 2 * jumps(points) if z.error(self._of.domain) > 0 else kinks(points)
            if units <= MOST_UNITS:
                found.append(Way(units, z, points))
        return found

    def _fit(self, z: Affine, points: list[tuple[Fraction, Fraction]]) -> Fitted | None:
        domain = self._of.domain
        noise, relative = z.error(domain), 0.0
        single = len(z.terms) == 1 and not z.constant and abs(next(iter(z.terms.values()))) == 1
        if single:
            quantity = next(iter(z.terms))
            noise, relative = quantity.error, quantity.relative
        source = Source(noise, relative, z.largest, single, z.start)
        if not noise and not relative:
            return drawn(points, source, domain) if kinks(points) <= MOST_UNITS else None
        tried = [steps(points, source, domain) if 2 * jumps(points) <= MOST_UNITS else None]
        tried += [drawn(points, source, domain) if kinks(points) <= MOST_UNITS else None]
        sure = [fitted for fitted in tried if fitted is not None]
        return min(sure, key=lambda fitted: fitted.error, default=None)

    def _rows(self, node: Map, parts: tuple[Expression, ...], forms: list[Form]) -> Rows | None:
        codes = self._of.codes(node)
        seen: dict[tuple[Fraction, ...], Fraction] = {}
        for given, value in self._combinations(node, parts):
            key = tuple(form.codes[part] for form, part in zip(forms, given, strict=True))
            if seen.setdefault(key, codes[value]) != codes[value]:
                return None
        return list(seen.items())

    def _combinations(self, node: Map, parts: tuple[Expression, ...]) -> list[tuple[tuple[Value, ...], Value]]:
        """Give every combination of values of the parts that can occur, and what the function makes of it."""
        if (node, parts) not in self._combined:
            values = self._of.values
            nested = any(len(values[part]) > 1 and id(part) not in set(map(id, parts)) for part in node.arguments)
            if values.is_followed(node) and (nested or values.hang_together(parts)):
                found = [(row[:-1], row[-1]) for row in values.together((*parts, node))]
            else:
                known = set(values[node])
                found = [
                    (given, values.at(node, dict(zip(parts, given, strict=True)))) for given in values.together(parts)
                ]
                found = [(given, value) for given, value in found if value in known]
            self._combined[node, parts] = found
        return self._combined[node, parts]

    # Sums and choices

    def _linear(self, node: Map, parts: tuple[Expression, ...], *, exact: bool) -> Form | None:
        codes = self._of.codes(node)
        if hasattr(node.function, "weights"):
            return self._weighted(node, node.function.weights, codes, exact=exact)
        candidates: list[dict[Value, Fraction]] = [self._of.book.codes(self._of.values[part]) for part in parts]
        rows = [
            (tuple(codes_of[value] for codes_of, value in zip(candidates, given, strict=True)), codes[target])
            for given, target in self._combinations(node, parts)
        ]
        weights = _solved(rows)
        if weights is None:
            return None
        affine = Affine({}, weights[-1])
        for weight, part, expected in zip(weights, parts, candidates, strict=False):
            if not weight:
                continue
            form = self._of.exact_form(part) if exact else self._of.form(part)
            if form is None or dict(form.codes) != expected:
                return None
            affine = affine.plus(form.affine.times(weight))
        return self._of.as_form(affine, codes)

    def _weighted(
        self, node: Map, weights: tuple[Any, ...], codes: dict[Value, Fraction], *, exact: bool
    ) -> Form | None:
        """Give a sum whose weights are known, of however many parts."""
        affine = Affine()
        for weight, part in zip(weights, node.arguments, strict=True):
            form = self._of.exact_form(part) if exact else self._of.form(part)
            if form is None or any(value != code for value, code in form.codes.items()):
                return None
            affine = affine.plus(form.affine.times(Fraction(weight)))
        return self._of.as_form(affine, codes)

    def _choice(self, node: Map, *, exact: bool) -> "Way | None":
        """where(c, x, y) as two units that let one of x and y through, whatever they are."""
        if node.written != "where" or len(node.arguments) != 3:
            return None
        forms = [self._of.exact_form(part) if exact else self._of.form(part) for part in node.arguments]
        condition, then, otherwise = forms
        if condition is None or then is None or otherwise is None or not condition.is_exact:
            return None
        codes = self._of.codes(node)
        flags = {bool(value): code for value, code in condition.codes.items()}
        truths = {bool(value) for value in condition.codes}
        if truths != {True, False} or len(condition.codes) != 2 or set(flags.values()) != {Fraction(0), Fraction(1)}:
            return None
        for form in (then, otherwise):
            if any(codes.get(value, code) != code for value, code in form.codes.items()):
                return None
        yes = condition.affine if flags[True] == 1 else condition.affine.times(-1).shifted(1)
        return Way(3, Affine(), [], (yes, then, otherwise))

    # Making it

    def _made(self, node: Expression, way: "Way", fitted: Fitted | None) -> Form:
        if way.choice is not None:
            return self._made_choice(node, *way.choice)
        assert fitted is not None
        z, codes = way.z, self._of.codes(node)
        time = z.time + 2 - z.time % 2
        quantity = self._quantity(node, time, codes, fitted.at(z.start), fitted.error, exact=fitted.exact)
        for ramp in fitted.ramps:
            self._write(z.times(ramp.slope).shifted(ramp.bias), time, quantity, ramp.weight, node)
        if fitted.constant:
            self._of.plan.adds[quantity] = fitted.constant
        self._decide(node, codes, fitted.error, fitted.clearance, f"{len(fitted.ramps)} units")
        return self._of.as_form(Affine.of(quantity), codes)

    def _made_choice(self, node: Expression, yes: Affine, then: Form, otherwise: Form) -> Form:
        codes, domain = self._of.codes(node), self._of.domain
        time = max(yes.time, then.time, otherwise.time)
        time += 2 - time % 2
        low_then, low_otherwise = min(then.codes.values()), min(otherwise.codes.values())
        no = yes.times(-1).shifted(1)
        parts: list[tuple[Affine, Fraction]] = []
        for flag, form, low in ((yes, then, low_then), (no, otherwise, low_otherwise)):
            reach = max(form.codes.values()) - low + 1
            gate = Fraction(2) ** int(reach).bit_length()
            # From 1 up, so that noise never closes what is open; and closed well below 0.
            parts.append((form.affine.shifted(1 - low).plus(flag.times(2 * gate)).shifted(-2 * gate), Fraction(1)))
        parts.append((yes, low_then - low_otherwise))
        constant = low_otherwise - 1
        error = max(part.error(domain) for part, _ in parts)
        grid = common_grid([w for _, w in parts] + [part.grid or Fraction(1, 3) for part, _ in parts])
        exact = error == 0 and grid is not None
        if not exact:
            error += 6 * domain.rounding * float(sum(part.largest * abs(w) for part, w in parts)) + 6 * domain.smallest
        start = constant + sum((max(Fraction(0), part.start) * w for part, w in parts), Fraction(0))
        quantity = self._quantity(node, time, codes, start, error, exact=exact)
        for part, weight in parts:
            if weight:
                self._write(part, time, quantity, weight, node)
        if constant:
            self._of.plan.adds[quantity] = constant
        self._decide(node, codes, error, math.inf, "two units that let one of two through")
        return self._of.as_form(Affine.of(quantity), codes)

    def _quantity(
        self, node: Expression, time: int, codes: dict[Value, Fraction], start: Fraction, error: float, *, exact: bool
    ) -> Quantity:
        grid = common_grid([*codes.values(), start]) if exact else None
        low, high = min(codes.values()), max(codes.values())
        return Quantity(node.name, time, low, high, start, error, grid=grid, place=node.place)

    def _write(self, reads: Affine, time: int, quantity: Quantity, weight: Fraction, node: Expression) -> None:
        terms = tuple(sorted((id(part), times) for part, times in reads.terms.items()))
        key = (time, terms, reads.constant)
        unit = self._units.get(key)
        if unit is None:
            unit = self._units[key] = PlannedUnit(time, reads, node.name, node.place)
            self._of.plan.units.append(unit)
        unit.writes[quantity] = unit.writes.get(quantity, Fraction(0)) + weight

    def _decide(self, node: Expression, codes: dict[Value, Fraction], error: float, clearance: float, how: str) -> None:
        in_order = sorted(codes.values())
        room = float(min((b - a for a, b in itertools.pairwise(in_order)), default=Fraction(1)))
        if 2 * error >= room:
            raise UserError(self._too_fine(node))
        margin = min(clearance, room / (2 * error) if error else math.inf)
        self._of.plan.decisions.append(Decision(node.said, how, error, margin))

    def _too_fine(self, node: Expression) -> str:
        return (
            f"{node.said} cannot be certified in {self._of.domain.dtype}: its values lie too close together for the "
            f"rounding on the way; declare a smaller max_length{self._of.domain.wider}."
        )


@dataclass(frozen=True, eq=False)
class Way:
    """A way to compute a function: units on one number z, or the few of a choice."""

    units: int
    z: Affine
    points: list[tuple[Fraction, Fraction]]
    choice: tuple[Affine, Form, Form] | None = None


def _on_a_line(rows: Rows, weights: tuple[Fraction, ...]) -> list[tuple[Fraction, Fraction]] | None:
    """Give the function's value at each z = Σ weight · code, in order; None where two values fall on one z."""
    parts = range(len(weights))
    common = [math.lcm(*(given[part].denominator for given, _ in rows), weights[part].denominator) for part in parts]
    whole = math.lcm(*(c * weights[part].denominator for part, c in enumerate(common)))
    points: dict[int, Fraction] = {}
    for given, target in rows:
        z = 0
        for part in parts:
            x, w = given[part], weights[part]
            z += x.numerator * w.numerator * (whole // (x.denominator * w.denominator))
        if points.setdefault(z, target) != target:
            return None
    return [(Fraction(z, whole), points[z]) for z in sorted(points)]


def _weightings(rows: Rows) -> Iterator[tuple[Fraction, ...]]:
    """Give the sums of the parts that are tried: each once, their differences, and each a digit of one number."""
    count = len(rows[0][0])
    one = Fraction(1)
    yield (one,) * count
    if count == 1:
        return
    if count == 2:
        yield one, -one
    columns = [sorted({given[part] for given, _ in rows}) for part in range(count)]
    for order in (range(count), range(count - 1, -1, -1)):
        weights = [Fraction(0)] * count
        stride = one
        for part in order:
            numbers = columns[part]
            finest = min(b - a for a, b in itertools.pairwise(numbers)) if len(numbers) > 1 else one
            weights[part] = stride / finest
            stride *= (numbers[-1] - numbers[0]) / finest + 1
        yield tuple(weights)


def _solved(rows: Rows) -> tuple[Fraction, ...] | None:
    """Give the weights and the constant of a linear function, exactly; None where it is not linear."""
    if not rows:
        return None
    count = len(rows[0][0])
    few = rows[:: max(1, len(rows) // 200)]
    matrix = np.array([[*map(float, given), 1.0] for given, _ in few])
    found = np.linalg.lstsq(matrix, np.array([float(target) for _, target in few]), rcond=None)[0]
    weights = tuple(Fraction(float(number)).limit_denominator(10_000) for number in found)
    assert len(weights) == count + 1
    for given, target in rows:
        total = sum((w * x for w, x in zip(weights, given, strict=False)), weights[-1])
        if total != target:
            return None
    return weights
