"""Several arguments as one number z, which tells apart what the function tells apart.

Their sum, for a comparison their difference, or all of them as the digits of one number.
"""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from headstock.programs.compiler.quantities import Affine, Form
from headstock.programs.compiler.units import MOST_UNITS, jumps, kinks
from headstock.programs.compiler.ways import Way
from headstock.programs.nodes import Expression, Map
from headstock.programs.values import Value

if TYPE_CHECKING:
    from headstock.programs.compiler.lower import Lowering

Rows = list[tuple[tuple[Fraction, ...], Fraction]]
"""The codes of the parts and the code of the function's value, for every combination that occurs."""
Combinations = list[tuple[tuple[Value, ...], Value]]
"""The values of the parts and the function's value, for the same."""


class Combining:
    """Combinations of arguments, for the functions of one program."""

    def __init__(self, lowering: "Lowering") -> None:
        self._of = lowering
        self._combined: dict[tuple[Map, tuple[Expression, ...]], Combinations] = {}

    def ways(self, node: Map, parts: tuple[Expression, ...], *, exact: bool) -> list[Way]:
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

    def combinations(self, node: Map, parts: tuple[Expression, ...]) -> Combinations:
        """Give every combination of values of the parts that can occur, and what the function makes of it."""
        if (node, parts) not in self._combined:
            values = self._of.values
            nested = any(len(values[part]) > 1 and id(part) not in set(map(id, parts)) for part in node.arguments)
            if values.is_followed(node) and (nested or values.hang_together(parts)):
                found = [(row[:-1], row[-1]) for row in values.together((*parts, node), node)]
            else:
                known = set(values[node])
                together = values.together(parts, node)
                found = [(given, values.at(node, dict(zip(parts, given, strict=True)))) for given in together]
                found = [(given, value) for given, value in found if value in known]
            self._combined[node, parts] = found
        return self._combined[node, parts]

    def _rows(self, node: Map, parts: tuple[Expression, ...], forms: list[Form]) -> Rows | None:
        codes = self._of.codes(node)
        seen: dict[tuple[Fraction, ...], Fraction] = {}
        for given, value in self.combinations(node, parts):
            key = tuple(form.codes[part] for form, part in zip(forms, given, strict=True))
            if seen.setdefault(key, codes[value]) != codes[value]:
                return None
        return list(seen.items())


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
