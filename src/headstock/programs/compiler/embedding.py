"""Columns of the embedding, no more than there are tokens and positions.

A table of what each token means is a sum of "is it a", "is it b" and so on; so where more columns are wanted than
there are tokens, one for each token will do, and every reading of the others becomes a reading of these. The same with
positions. Of such a sum one term alone is not 0, so nothing is rounded that was not before.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.plan import Plan
from headstock.programs.compiler.quantities import Affine, Quantity
from headstock.programs.compiler.schedule import Schedule
from headstock.programs.values import shown

Instead = Mapping[Quantity, Affine]
"""What is read in place of a quantity that has no column of its own."""


def compacted(schedule: Schedule, domain: Domain) -> Instead:
    """Find the tables that have too many columns, and give what is read instead of each."""
    instead: dict[Quantity, Affine] = {}
    of_token = [quantity for quantity in schedule.quantities if quantity.of_token is not None]
    of_index = [quantity for quantity in schedule.quantities if quantity.of_index is not None]
    if len(of_token) > len(domain.vocabulary):
        each = [_mark(f"is {shown(token)}") for token in domain.vocabulary]
        for mark, token in zip(each, domain.vocabulary, strict=True):
            mark.of_token = {other: Fraction(other == token) for other in domain.vocabulary}
        for quantity in of_token:
            assert quantity.of_token is not None
            held = [quantity.of_token[token] for token in domain.vocabulary]
            instead[quantity] = Affine({mark: number for mark, number in zip(each, held, strict=True) if number})
    if len(of_index) > domain.max_length:
        positions = range(domain.max_length)
        each = [_mark(f"at {position}") for position in positions]
        for position, mark in zip(positions, each, strict=True):
            mark.of_index = tuple(Fraction(position == other) for other in positions)
        for quantity in of_index:
            assert quantity.of_index is not None
            held = list(quantity.of_index)
            instead[quantity] = Affine({mark: number for mark, number in zip(each, held, strict=True) if number})
    return instead


def _mark(name: str) -> Quantity:
    return Quantity(name, 0, Fraction(0), Fraction(1), grid=Fraction(1))


def read_instead(affine: Affine, instead: Instead) -> Affine:
    """Give a sum with every quantity replaced that has no column."""
    if not any(quantity in instead for quantity in affine.terms):
        return affine
    total = Affine({q: w for q, w in affine.terms.items() if q not in instead}, affine.constant)
    for quantity, weight in affine.terms.items():
        if quantity in instead:
            total = total.plus(instead[quantity].times(weight))
    return total


def rewired(plan: Plan, instead: Instead) -> None:
    """Let every head and unit read what is there instead."""
    for head in plan.heads:
        head.dimensions = tuple(
            replace(d, query=read_instead(d.query, instead), key=read_instead(d.key, instead)) for d in head.dimensions
        )
        head.carried = [(read_instead(read, instead), made) for read, made in head.carried]
    for unit in plan.units:
        unit.reads = read_instead(unit.reads, instead)
