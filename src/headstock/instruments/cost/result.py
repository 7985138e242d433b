"""What a measurement of cost says, as a value."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any, Literal, get_args

from headstock.errors import UserError, near_name
from headstock.instruments.cost.picture import drawn_cost
from headstock.pictures.picture import Picture

Part = Literal["block", "projections", "mixing", "feedforward"]
"""block: norms, projections, mixing and feed-forward. projections: the maps of queries, keys, values and gates, with
norms and turns of queries and keys, and the output map. mixing: from queries, keys and values to what the output map
reads. feedforward: its maps and what lies between, without its norm."""
Pass = Literal["forward", "training"]
"""forward: without gradients, as in evaluation. training: forward and backward."""
Quantity = Literal["seconds", "bytes"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)
PARTS: tuple[Part, ...] = get_args(Part)
PASSES: tuple[Pass, ...] = get_args(Pass)


@dataclass(frozen=True)
class Ratio:
    """How many times as long as the first variant, turn by turn: the median and the middle half."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Measured:
    """One pass through one part of one variant at one length."""

    label: str
    length: int
    part: Part
    step: Pass
    seconds: tuple[float, ...]
    """One value a turn, the turns in order."""
    ratio: Ratio | None
    """None where the first variant was left out at this length."""
    peak_bytes: int
    """The most that was held at once beyond inputs, parameters and their gradients."""
    kept_bytes: int
    """Of a training pass, what is held between forward and backward, its output included; 0 of a forward pass."""
    expected_bytes: int | None
    """What has to be held at once, by formula: see `expected_bytes`; None where there is no formula."""
    kernel: str
    """What mixed: see `headstock.model.kernels`."""

    @property
    def median_seconds(self) -> float:
        """The middle one of the turns."""
        return median(self.seconds)

    @property
    def half_spread(self) -> float:
        """Half the width of the middle half of the turns, as a share of the median."""
        low, high = middle_half(self.seconds)
        return (high - low) / 2 / self.median_seconds


@dataclass(frozen=True)
class Growth:
    """The exponent p of cost ~ length^p: least squares on logarithms, over the longest lengths measured."""

    label: str
    part: Part
    step: Pass
    quantity: Quantity
    exponent: float
    low: float
    """The 95 % interval, by Student's t. Bytes are exact, so theirs says how far they are from one power."""
    high: float
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Variant:
    """What was measured, by formula."""

    label: str
    variant: str
    block_parameters: int
    d_ff: int
    mixing_is_apart: bool
    """False for a mixer without maps of its own around what it does: its mixing is all of the mixer."""


@dataclass(frozen=True)
class Cost:
    """The result: every measurement, in the order length, part, pass, variant."""

    variants: tuple[Variant, ...]
    lengths: tuple[int, ...]
    batch: int
    plain: bool
    turns: int
    measured: tuple[Measured, ...]
    growth: tuple[Growth, ...]
    weights_bytes: dict[str, dict[int, int | None]]
    """What storing all weights of a variant once takes, by length; None where its weights are none."""
    left_out: tuple[str, ...]
    """A sentence for each variant and length that would not have fitted into memory."""
    environment: dict[str, str]

    def at(self, label: str, length: int, part: Part, step: Pass) -> Measured | None:
        """Give one measurement; None where it was left out, or the variant has no such part.

        This and the next two raise UserError for a name that there is not.
        """
        self._refuse_unknown(label, part, step)
        asked = (label, length, part, step)
        return next((m for m in self.measured if (m.label, m.length, m.part, m.step) == asked), None)

    def of(self, label: str, part: Part, step: Pass) -> list[Measured]:
        """Give the measurements of one pass through one part of a variant, the shortest length first."""
        self._refuse_unknown(label, part, step)
        return [one for one in self.measured if (one.label, one.part, one.step) == (label, part, step)]

    def exponent(self, label: str, part: Part, step: Pass, quantity: Quantity) -> Growth | None:
        """Give one exponent; None where fewer than three lengths were measured, or nothing was held at one."""
        self._refuse_unknown(label, part, step, quantity)
        asked = (label, part, step, quantity)
        return next((g for g in self.growth if (g.label, g.part, g.step, g.quantity) == asked), None)

    def _refuse_unknown(self, label: str, part: str, step: str, quantity: str = "seconds") -> None:
        labels = [variant.label for variant in self.variants]
        known = (("variant", label, labels), ("part", part, PARTS), ("pass", step, PASSES))
        for what, name, names in (*known, ("quantity", quantity, QUANTITIES)):
            if name not in names:
                raise UserError(f"there is no {what} {name!r}: {near_name(str(name), names)}")

    def draw(self, quantity: Quantity = "seconds", part: Part = "block", step: Pass = "training") -> Picture:
        """Draw seconds or bytes against length, both axes logarithmic, a line a variant.

        Raises UserError for what was not measured.
        """
        return drawn_cost(self, quantity, part, step)

    def _repr_html_(self) -> str:
        """Give seconds and bytes of training each part that was measured."""
        parts = [part for part in PARTS if any(one.part == part and one.peak_bytes for one in self.measured)]
        return "".join(self.draw(quantity, part)._repr_html_() for part in parts for quantity in QUANTITIES)

    def to_dict(self) -> dict[str, Any]:
        """Give everything in JSON's terms."""
        return asdict(self)


def middle_half(values: Sequence[float]) -> tuple[float, float]:
    """Give the lower and the upper quartile."""
    low, _, high = quantiles(values, n=4, method="inclusive")
    return low, high
