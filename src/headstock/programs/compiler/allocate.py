"""A residual column for every quantity, used again once what stood in it is read no more.

The residual only adds, so an old number is taken away by units that read it and write its negative, in the layer of
its last reading or after. What is only nearly exact is taken away first, and the column used from the next heads on:
in one sum with something exact it would leave its noise behind.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.quantities import Quantity, common_grid
from headstock.programs.compiler.schedule import Schedule


@dataclass
class Allocation:
    """Which column each quantity stands in, and when a column is cleared of which."""

    column_of: dict[Quantity, int]
    holds: list[list[Quantity]] = field(default_factory=list)
    """For each column, what stands in it, one after the other."""
    clearing: dict[int, list[Quantity]] = field(default_factory=dict)
    """For each time of units, the quantities that they take away."""


def allocated(schedule: Schedule, domain: Domain) -> Allocation:
    """Give every quantity a column, the fewest that a first come, first served order needs."""
    allocation = Allocation({})
    for quantity in schedule.quantities:
        column = _free_column(quantity, allocation, schedule, domain)
        if column is None:
            column = len(allocation.holds)
            allocation.holds.append([])
        else:
            old = allocation.holds[column][-1]
            allocation.clearing.setdefault(_clearable_from(old, schedule), []).append(old)
        allocation.holds[column].append(quantity)
        allocation.column_of[quantity] = column
    return allocation


def _clearable_from(quantity: Quantity, schedule: Schedule) -> int:
    """Give the first time of units at which it is read no more, or for the last time."""
    last = max(schedule.last_read.get(quantity, 0), quantity.time + 1)
    return last + last % 2


def _free_column(quantity: Quantity, allocation: Allocation, schedule: Schedule, domain: Domain) -> int | None:
    if not quantity.time:
        return None
    for column, held in enumerate(allocation.holds):
        old = held[-1]
        cleared = _clearable_from(old, schedule)
        if cleared > 2 * schedule.n_layers:
            continue
        if cleared < quantity.time or (cleared == quantity.time and _exact_together(old, quantity, schedule, domain)):
            return column
    return None


def _exact_together(old: Quantity, new: Quantity, schedule: Schedule, domain: Domain) -> bool:
    """Whether what makes the new number and what takes the old one away can be added in any order with no bit lost.

    Units that read something noisy may add up to an exact number, but only as long as nothing else is in the sum.
    """
    if old.grid is None or new.grid is None:
        return False
    reach = old.largest + new.largest
    grids = [old.grid, new.grid, Fraction(1)]
    for unit in schedule.units:
        if new in unit.writes:
            read, written = unit.reads.grid, common_grid([unit.writes[new]])
            if read is None or written is None:
                return False
            reach += unit.reads.largest * abs(unit.writes[new])
            grids.append(read * written)
    return reach / min(grids) < domain.whole
