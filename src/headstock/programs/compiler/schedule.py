"""Which layer does what: nothing that the output does not need, everything as early as what it reads is there."""

from dataclasses import dataclass

from headstock.programs.compiler.heads import PlannedHead
from headstock.programs.compiler.plan import Plan, PlannedUnit
from headstock.programs.compiler.quantities import Affine, Quantity


@dataclass
class Schedule:
    """The parts that are needed, and when each quantity is read for the last time."""

    heads: list[PlannedHead]
    units: list[PlannedUnit]
    quantities: list[Quantity]
    """In the order in which they are made."""
    last_read: dict[Quantity, int]
    n_layers: int


def scheduled(plan: Plan, output: Affine) -> Schedule:
    """Keep what the output needs, and find the layers."""
    needed = _needed(plan, output)
    heads = []
    for head in plan.heads:
        head.carried = [(read, made) for read, made in head.carried if made in needed]
        if head.carried:
            heads.append(head)
    units = []
    for unit in plan.units:
        unit.writes = {made: weight for made, weight in unit.writes.items() if made in needed and weight}
        if unit.writes:
            units.append(unit)
    last_read: dict[Quantity, int] = {}
    for head in heads:
        for affine in _read_by(head):
            for quantity in affine.terms:
                last_read[quantity] = max(last_read.get(quantity, 0), head.time)
    for unit in units:
        for quantity in unit.reads.terms:
            last_read[quantity] = max(last_read.get(quantity, 0), unit.time)
    times = [*(head.time for head in heads), *(unit.time for unit in units)]
    n_layers = (max(times, default=0) + 1) // 2
    for quantity in output.terms:
        last_read[quantity] = 2 * n_layers + 1  # by the unembedding
    in_order = sorted(needed, key=lambda quantity: (quantity.time, quantity.name))
    return Schedule(heads, units, in_order, last_read, n_layers)


def _needed(plan: Plan, output: Affine) -> dict[Quantity, None]:
    makers: dict[Quantity, list[Affine]] = {}
    for head in plan.heads:
        scores = [side for dimension in head.dimensions for side in (dimension.query, dimension.key)]
        for read, made in head.carried:
            makers.setdefault(made, []).extend([*scores, read])
    for unit in plan.units:
        for made in unit.writes:
            makers.setdefault(made, []).append(unit.reads)
    needed: dict[Quantity, None] = {}  # in an order that is the same in every process
    waiting = list(output.terms)
    while waiting:
        quantity = waiting.pop()
        if quantity in needed:
            continue
        needed[quantity] = None
        waiting += [read for affine in makers.get(quantity, ()) for read in affine.terms]
    return needed


def _read_by(head: PlannedHead) -> list[Affine]:
    scores = [side for dimension in head.dimensions for side in (dimension.query, dimension.key)]
    return [*scores, *(read for read, _ in head.carried)]
