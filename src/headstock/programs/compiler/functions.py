"""Elementwise functions: a sum of what is there where the function is linear, else ReLU units on one number.

Which way is taken is decided here; each of the ways is a file: sums.py, combining.py, choosing.py. Nested functions are
one function of what they come from, where that takes few units: each function that is not, costs a layer.
"""

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from headstock.errors import UserError
from headstock.programs.compiler.choosing import Choice, choice
from headstock.programs.compiler.combining import Combining
from headstock.programs.compiler.making import Making
from headstock.programs.compiler.quantities import Affine, Form
from headstock.programs.compiler.represent import Coded
from headstock.programs.compiler.sums import linear
from headstock.programs.compiler.units import MOST_UNITS
from headstock.programs.compiler.ways import Way
from headstock.programs.nodes import Expression, Indices, Length, Map, Tokens, Width

if TYPE_CHECKING:
    from headstock.programs.compiler.lower import Lowering

MOST_FUSED = 4_000
"""Combinations of sources up to which nested functions are tried as one."""
FEW_UNITS = 64
"""So many units are taken rather than a layer more."""


class Functions:
    """Forms of functions, for one program."""

    def __init__(self, lowering: "Lowering") -> None:
        self._of = lowering
        self._combining = Combining(lowering)
        self._making = Making(lowering)

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
        found = linear(self._of, self._combining, node, arguments, exact=exact)
        if found is not None:
            return found
        for way in sorted(self._ways(node, sources, arguments, exact=exact), key=lambda way: way.units):
            if isinstance(way, Choice):
                return self._making.chosen(node, way)
            fitted = way.fitted(self._of.domain)
            if fitted is not None:
                return self._making.fitted(node, way.z, fitted)
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

    def _ways(
        self, node: Map, sources: tuple[Expression, ...], arguments: tuple[Expression, ...], *, exact: bool
    ) -> list[Way | Choice]:
        """Give the ways with units: from the arguments, from what they come from, and as a choice of two."""
        ways: list[Way | Choice] = [*self._combining.ways(node, arguments, exact=exact)]
        if self._of.values.count(sources) <= MOST_FUSED and [*map(id, sources)] != [*map(id, arguments)]:
            at_once = self._combining.ways(node, sources, exact=exact)
            fused = min(at_once, key=lambda way: way.units, default=None)
            if fused is not None:
                # A nested function of few units is made at once, for each that is not costs a layer.
                ways.append(fused if fused.units > FEW_UNITS else replace(fused, units=0))
        if (two := choice(self._of, node, exact=exact)) is not None:
            ways.append(two)
        return ways

    def _of_one_width(self, node: Expression, width: Width) -> Form:
        """A function of one count is read off the start token's weight, 1/(1 + count), directly."""
        raw = self._of.attending.counted(width)
        values, codes = self._of.values, self._of.codes(node)
        found = values.table(node)
        points = sorted((Fraction(1, 1 + count), codes[found[count,]]) for count in values[width])
        way = Way(0, Affine.of(raw), points)
        fitted = way.fitted(self._of.domain)
        if fitted is None:
            raise self._making.too_fine(node)
        return self._making.fitted(node, way.z, fitted)
