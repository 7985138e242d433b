"""Cost drawn against length, both on logarithmic axes: a power of the length is a straight line."""

import math
from typing import TYPE_CHECKING

from headstock.errors import UserError, near_name
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture

if TYPE_CHECKING:
    from headstock.instruments.cost.result import Cost, Measured, Part, Pass, Quantity

NAMED = {"block": "a block", "projections": "projections", "mixing": "mixing", "feedforward": "the feed-forward"}
UNITS = {"seconds": "milliseconds", "bytes": "MiB"}


def drawn_cost(found: "Cost", quantity: "Quantity", part: "Part", step: "Pass") -> Picture:
    """Draw one quantity of one pass through one part of every variant; bytes of one variant beside their formula.

    Raises UserError for a quantity that there is not, and where the part was not measured.
    """
    if quantity not in UNITS:
        raise UserError(f"unknown quantity {quantity!r}: {near_name(quantity, UNITS)}")
    measured = {arm.label: found.of(arm.label, part, step) for arm in found.variants}
    measured = {label: those for label, those in measured.items() if those}
    if not measured:
        raise UserError(f"nothing was measured of {part!r} in {step!r}: name a part and a pass that were.")
    shown = {
        label: ([m.length for m in those], [_value(m, quantity) for m in those]) for label, those in measured.items()
    }
    expected = [m for those in measured.values() for m in those if m.expected_bytes]
    if quantity == "bytes" and len(measured) == 1 and expected:
        shown["by formula"] = ([m.length for m in expected], [(m.expected_bytes or 0) / 2**20 for m in expected])
    said = "forward" if step == "forward" else "forward and backward"
    how = f"{said}, batch {found.batch}, {'every weight stored, ' if found.plain else ''}float32"
    if quantity == "seconds":
        caption = f"The median of {found.turns} turns, {how}; {found.environment['processor']}."
    else:
        caption = f"The most held at once beyond inputs, parameters and their gradients, {how}; counted, not sampled."
    return lines(
        shown,
        x="tokens",
        y=UNITS[quantity],
        title=_finding(found, measured, quantity, part, step),
        log_x=True,
        log_y=True,
        caption=caption,
        name=f"cost-{quantity}-{part}-{step}",
    )


def _value(one: "Measured", quantity: "Quantity") -> float:
    return 1000 * one.median_seconds if quantity == "seconds" else one.peak_bytes / 2**20


def _finding(
    found: "Cost", measured: "dict[str, list[Measured]]", quantity: "Quantity", part: "Part", step: "Pass"
) -> str:
    """Say how one variant grows, or how the one that is farthest from the first compares at the longest length."""
    pass_through = f"{'Training' if step == 'training' else 'Reading by'} {NAMED[part]}"
    what = "time" if quantity == "seconds" else "memory"
    first, *others = measured
    last = {label: those[-1] for label, those in measured.items()}
    beside = [label for label in others if last[label].length == last[first].length]
    costs = {label: _value(last[label], quantity) for label in (first, *beside)}
    if beside and min(costs.values()) > 0:
        farthest = max(beside, key=lambda label: abs(math.log(costs[label] / costs[first])))
        times = costs[farthest] / costs[first]
        return f"{pass_through}: at {last[first].length:,} tokens {farthest} takes {times:.2f} times {first}'s {what}"
    fit = found.exponent(first, part, step, quantity)
    if fit is not None:
        return f"{pass_through}: {what} grows with the tokens to the power of {fit.exponent:.2f} ({first})"
    return f"{pass_through}: {what} by tokens"
