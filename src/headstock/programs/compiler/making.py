"""Functions written into the plan: units that are shared where they read the same, and the proof of each function."""

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from headstock.errors import UserError
from headstock.programs.compiler.choosing import Choice
from headstock.programs.compiler.plan import Decision, PlannedUnit
from headstock.programs.compiler.quantities import Affine, Form, Quantity, common_grid
from headstock.programs.compiler.units import Fitted
from headstock.programs.nodes import Expression
from headstock.programs.values import Value

if TYPE_CHECKING:
    from headstock.programs.compiler.lower import Lowering


class Making:
    """Units, for one program."""

    def __init__(self, lowering: "Lowering") -> None:
        self._of = lowering
        self._units: dict[tuple[Any, ...], PlannedUnit] = {}

    def fitted(self, node: Expression, z: Affine, fitted: Fitted) -> Form:
        """Write a function as units on z. Raises UserError where the values are too close for its error."""
        codes = self._of.codes(node)
        time = _next_units(z.time)
        quantity = self._quantity(node, time, codes, fitted.at(z.start), fitted.error, exact=fitted.exact)
        for ramp in fitted.ramps:
            self._write(z.times(ramp.slope).shifted(ramp.bias), time, quantity, ramp.weight, node)
        if fitted.constant:
            self._of.plan.adds[quantity] = fitted.constant
        self._decide(node, codes, fitted.error, fitted.clearance, f"{len(fitted.ramps)} units")
        return self._of.as_form(Affine.of(quantity), codes)

    def chosen(self, node: Expression, choice: Choice) -> Form:
        """Write a choice as its units. Raises UserError where the values are too close for its error."""
        codes, domain = self._of.codes(node), self._of.domain
        time = _next_units(choice.time)
        parts, constant = choice.gated, choice.constant
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

    def too_fine(self, node: Expression) -> UserError:
        """Give the refusal of a function whose values rounding could mix up."""
        return UserError(
            f"{node.said} cannot be certified in {self._of.domain.dtype}: its values lie too close together for the "
            f"rounding on the way; declare a smaller max_length{self._of.domain.wider}."
        )

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
            raise self.too_fine(node)
        margin = min(clearance, room / (2 * error) if error else math.inf)
        self._of.plan.decisions.append(Decision(node.said, how, error, margin))


def _next_units(time: int) -> int:
    """Give the first time of units after a time; they stand at the even ones."""
    return time + 2 - time % 2
