"""where(c, x, y) as two units that let one of x and y through, whatever they are."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from headstock.programs.compiler.quantities import Affine, Form
from headstock.programs.nodes import Map

if TYPE_CHECKING:
    from headstock.programs.compiler.lower import Lowering


@dataclass(frozen=True, eq=False)
class Choice:
    """A choice of two by a flag that is exactly 0 or 1."""

    yes: Affine
    then: Form
    otherwise: Form

    units: ClassVar[int] = 3

    @property
    def gated(self) -> list[tuple[Affine, Fraction]]:
        """What units read, and the weight of each in the result, which lacks `constant` yet."""
        low_then, low_otherwise = min(self.then.codes.values()), min(self.otherwise.codes.values())
        no = self.yes.times(-1).shifted(1)
        parts: list[tuple[Affine, Fraction]] = []
        for flag, form, low in ((self.yes, self.then, low_then), (no, self.otherwise, low_otherwise)):
            reach = max(form.codes.values()) - low + 1
            gate = Fraction(2) ** int(reach).bit_length()
            # From 1 up, so that noise never closes what is open; and closed well below 0.
            parts.append((form.affine.shifted(1 - low).plus(flag.times(2 * gate)).shifted(-2 * gate), Fraction(1)))
        parts.append((self.yes, low_then - low_otherwise))
        return parts

    @property
    def constant(self) -> Fraction:
        """What is added to the units' results."""
        return min(self.otherwise.codes.values()) - 1

    @property
    def time(self) -> int:
        """When all that it reads is known."""
        return max(self.yes.time, self.then.time, self.otherwise.time)


def choice(lowering: "Lowering", node: Map, *, exact: bool) -> Choice | None:
    """Give a function as a choice; None for another function, and where its flag is not exact or codes differ."""
    if node.written != "where" or len(node.arguments) != 3:
        return None
    forms = [lowering.exact_form(part) if exact else lowering.form(part) for part in node.arguments]
    condition, then, otherwise = forms
    if condition is None or then is None or otherwise is None or not condition.is_exact:
        return None
    codes = lowering.codes(node)
    flags = {bool(value): code for value, code in condition.codes.items()}
    truths = {bool(value) for value in condition.codes}
    if truths != {True, False} or len(condition.codes) != 2 or set(flags.values()) != {Fraction(0), Fraction(1)}:
        return None
    for form in (then, otherwise):
        if any(codes.get(value, code) != code for value, code in form.codes.items()):
            return None
    yes = condition.affine if flags[True] == 1 else condition.affine.times(-1).shifted(1)
    return Choice(yes, then, otherwise)
