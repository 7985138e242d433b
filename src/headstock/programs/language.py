"""The words of the language: what a person writes a program with.

    hist = p.width(p.select(p.tokens, p.tokens, "=="))
    backwards = p.aggregate(p.select(p.indices, p.length - 1 - p.indices, "=="), p.tokens)

After RASP (Weiss et al., 2021), with any function of values, any selector, and every way of putting values together
that attention can. In causal mode a query sees its own position and those before it.
"""

import numbers
import operator
from collections.abc import Callable, Mapping
from typing import Any, get_args

from headstock.errors import UserError, near_name
from headstock.programs.nodes import (
    Aggregate,
    By,
    Constant,
    Expression,
    Indices,
    Length,
    Map,
    Select,
    Selector,
    Ties,
    Tokens,
    Width,
    choose,
    expression,
)
from headstock.programs.places import here
from headstock.programs.values import canonical

tokens = Tokens()
"""The token at each position."""
indices = Indices()
"""The number of each position, from 0."""
length = Length()
"""How many tokens there are. It looks ahead, so a causal program cannot have it."""

PREDICATES: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def constant(value: Any) -> Expression:
    """Give one value at every position."""
    return expression(value)


def map(function: Callable[..., Any], *sequences: Any) -> Expression:
    """Apply a function of as many values as there are sequences, at each position alone."""
    if not sequences:
        raise UserError(f"map() has a function and no sequence ({here()}): give the sequences it works on.")
    if not callable(function):
        raise UserError(f"map() needs a function first, not {function!r} ({here()}).")
    return Map(function, tuple(expression(sequence) for sequence in sequences))


def where(condition: Any, then: Any, otherwise: Any) -> Expression:
    """Choose, at each position, between two values by a third."""
    return Map(choose, (expression(condition), expression(then), expression(otherwise)), "where")


class _Table:
    """A dictionary as a function, one for all tables of the same content."""

    def __init__(self, table: Mapping[Any, Any], default: Any, total: bool) -> None:
        self.table, self.default, self.total = dict(table), default, total
        self.__name__ = "lookup"

    def __call__(self, value: Any) -> Any:
        if value in self.table:
            return self.table[value]
        if self.total:
            return self.default
        raise KeyError(f"{value!r} is not in the table")


_NOTHING = object()


def lookup(table: Any, sequence: Any, default: Any = _NOTHING) -> Expression:
    """Look each value up in a dictionary; `default` stands for all that is not in it, which is refused without one."""
    if not isinstance(table, Mapping):
        raise UserError(f"lookup() needs a dictionary first, not {table!r} ({here()}).")
    return Map(_Table(table, default, default is not _NOTHING), (expression(sequence),), "lookup")


def select(keys: Any, queries: Any, predicate: str | Callable[[Any, Any], Any] = "==") -> Selector:
    """Let each query select the keys of which predicate(key, query) holds.

    keys, queries: sequences, or a constant. predicate: "==", "!=", "<", "<=", ">", ">=", or any function of two values:
    select(p.indices, p.indices, "<") selects what stands before.
    """
    if isinstance(predicate, str):
        if predicate not in PREDICATES:
            raise UserError(f"unknown predicate {predicate!r} ({here()}): {near_name(predicate, PREDICATES)}")
        return Select(expression(keys), expression(queries), PREDICATES[predicate], predicate)
    if not callable(predicate):
        raise UserError(f"{predicate!r} is no predicate ({here()}): give '==', '<' and so on, or a function of two.")
    return Select(expression(keys), expression(queries), predicate)


everything = Select(Constant(True), Constant(True), operator.eq, "==")
"""Every key; in causal mode every key so far."""


def offset(by: Any) -> Selector:
    """Select the one key that stands `by` places, a whole number, after the query: −1 is the token before."""
    if not isinstance(by, numbers.Integral):
        said = by.said if isinstance(by, Expression) else repr(by)
        raise UserError(
            f"offset() goes by one whole number of places, not by {said} ({here()}): give one, or select positions by "
            f"select() of p.indices."
        )
    return Select(indices, indices + by if by else indices, operator.eq, "==")


before = Select(indices, indices, operator.lt, "<")
"""All keys before the query."""
up_to_here = Select(indices, indices, operator.le, "<=")
"""All keys before the query, and its own: with it a program says that it does not look ahead."""


def aggregate(
    selector: Selector,
    values: Any,
    by: By = "mean",
    *,
    default: Any = _NOTHING,
    score: Any = None,
    ties: Ties = "first",
) -> Expression:
    """Put the selected keys' values together, for each query.

    by: "mean" of numbers, or of values that are all the same, whatever they are; "sum", "max", "min" of numbers;
    "best": the value of the key with the highest `score`, and of those the first (or the last, by `ties`).
    default: the value where no key is selected: None where not given, and 0 for a sum.
    """
    if not isinstance(selector, Selector):
        raise UserError(f"aggregate() needs a selector first, not {selector!r} ({here()}): give select() of two.")
    if by not in get_args(By):
        raise UserError(f"unknown way to aggregate {by!r} ({here()}): {near_name(str(by), get_args(By))}")
    if ties not in get_args(Ties):
        raise UserError(f"ties is {ties!r} ({here()}): choose 'first' or 'last'.")
    if score is not None and by != "best":
        raise UserError(f"a score is given, but by={by!r} asks for none ({here()}): write by='best'.")
    if default is _NOTHING:
        default = 0 if by == "sum" else None
    said = f"the default of an aggregate ({here()})"
    scored = None if score is None else expression(score)
    return Aggregate(selector, expression(values), by, canonical(default, said), scored, ties)


def width(selector: Selector) -> Expression:
    """Count the keys that each query selects."""
    if not isinstance(selector, Selector):
        raise UserError(f"width() needs a selector, not {selector!r} ({here()}): give select() of two sequences.")
    return Width(selector)
