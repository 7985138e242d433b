"""Selectors taken apart: as a sum of conjunctions, to count by, and as one conjunction, to select by.

A conjunction is what a head can score, comparison by comparison. The indicator of any selector is a sum of conjunctions
with whole coefficients, for not-a is 1 − a, and a-and-b is a·b.
"""

import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import permutations
from typing import Any, Protocol

from headstock.errors import UserError
from headstock.programs.compiler.infer import Values
from headstock.programs.compiler.interning import Interned
from headstock.programs.compiler.selection import holds
from headstock.programs.nodes import And, Conjoined, Expression, Not, Or, Select, Selector
from headstock.programs.values import Value

MOST_TERMS = 64
"""Conjunctions that one selector is taken apart into."""

Terms = dict[frozenset[Select], int]
"""Conjunctions, each with how often it counts."""


class Maps(Protocol):
    """What makes functions of simple expressions."""

    def __call__(
        self, function: Callable[..., Any], *arguments: Expression, like: Expression, written: str = ""
    ) -> Expression:
        """Give one, on the line of `like`."""
        ...


class Conjoining:
    """The selectors of one program."""

    def __init__(self, values: Values, known: Interned, mapped: Maps) -> None:
        self.values = values
        self.known = known
        self.mapped = mapped
        self._conjunctions: dict[frozenset[int], Conjoined] = {}

    def terms(self, selector: Selector, node: Expression) -> Terms:
        """Write a selector's indicator as a sum of conjunctions with whole coefficients, by 1 − a and a·b."""
        match selector:
            case Select():
                fixed = self.fixed(selector)
                if fixed is not None:
                    return {frozenset(): 1} if fixed else {}
                if selector.predicate is operator.ne:
                    equal = self.known.node(replace(selector, predicate=operator.eq, written="=="))
                    return _minus({frozenset(): 1}, {frozenset([equal]): 1})
                return {frozenset([selector]): 1}
            case And():
                return self._times(self.terms(selector.left, node), self.terms(selector.right, node), node)
            case Or():
                left, right = self.terms(selector.left, node), self.terms(selector.right, node)
                return _minus(_plus(left, right), self._times(left, right, node))
            case Not(of=Select() as leaf) if self.fixed(leaf) is None and leaf.predicate not in (
                operator.eq,
                operator.ne,
            ):
                return {frozenset([self._opposite(leaf)]): 1}
            case Not():
                return _minus({frozenset(): 1}, self.terms(selector.of, node))
        raise AssertionError(selector)

    def _times(self, a: Terms, b: Terms, node: Expression) -> Terms:
        product: Terms = {}
        for left, times in a.items():
            for right, more in b.items():
                together = self._consistent(left | right)
                if together is not None:
                    product = _plus(product, {together: times * more})
        if len(product) > MOST_TERMS:
            raise UserError(
                f"{node.said} has a selector of {len(product)} parts, more than {MOST_TERMS}: put what it compares "
                f"together by map() first, or count in two steps."
            )
        return product

    def _consistent(self, leaves: frozenset[Select]) -> frozenset[Select] | None:
        """Leave out a comparison that another of the same two implies; None where two of them never hold together."""
        kept = set(leaves)
        for a, b in permutations(sorted(leaves, key=self.known.number), 2):
            if a.keys is b.keys and a.queries is b.queries and {a, b} <= kept:
                pairs = list(self._pairs(a))
                held = [holds(b, key, query) for key, query in pairs if holds(a, key, query)]
                if not any(held):
                    return None
                if all(held):
                    kept.remove(b)
        return frozenset(kept)

    def _opposite(self, leaf: Select) -> Select:
        return self.known.node(replace(leaf, predicate=_negation(leaf.predicate), written=f"not {leaf.written}"))

    def fixed(self, leaf: Select) -> bool | None:
        """Whether a comparison is the same for all pairs of values."""
        held = {holds(leaf, key, query) for key, query in self._pairs(leaf)}
        return held.pop() if len(held) == 1 else None

    def _pairs(self, leaf: Select) -> Iterator[tuple[Value, Value]]:
        """Give the pairs of values that can meet: in causal mode of two positions only those that are seen."""
        values = self.values
        sides = [values.positional(side) for side in (leaf.keys, leaf.queries)]
        if values.domain.causal and sides[0] is not None and sides[1] is not None:
            return ((key, query) for place, query in enumerate(sides[1]) for key in sides[0][: place + 1])
        return ((key, query) for key in values[leaf.keys] for query in values[leaf.queries])

    def conjunction(self, selector: Selector, node: Expression) -> Conjoined:
        """Give a selector as one conjunction: where it is none, of one comparison of all that it compares."""
        literals = self.literals(selector)
        if literals is None:
            keys, queries, predicate = _joined(selector)
            whole = Select(
                self.mapped(_tuple, *keys, like=node, written="together"),
                self.mapped(_tuple, *queries, like=node, written="together"),
                predicate,
                "a selector of several",
                selector.place,
            )
            literals = frozenset([self.known.node(whole)])
        return self.conjoined(literals, selector)

    def conjoined(self, leaves: frozenset[Select], like: Selector) -> Conjoined:
        """Give the one selector that is these comparisons together."""
        key = frozenset(map(id, leaves))
        if key not in self._conjunctions:
            self._conjunctions[key] = Conjoined(tuple(sorted(leaves, key=self.known.number)), like.place)
        return self._conjunctions[key]

    def literals(self, selector: Selector) -> frozenset[Select] | None:
        """Give the comparisons of a selector that is a conjunction; None for any other."""
        match selector:
            case Select():
                fixed = self.fixed(selector)
                return frozenset() if fixed else None if fixed is False else frozenset([selector])
            case And():
                left, right = self.literals(selector.left), self.literals(selector.right)
                return None if left is None or right is None else left | right
            case Not(of=Select() as leaf) if self.fixed(leaf) is None:
                return frozenset([self._opposite(leaf)])
            case Not(of=Not() as inner):
                return self.literals(inner.of)
            case Not(of=Or() as either):
                return self.literals(And(Not(either.left), Not(either.right)))
        return None


@cache
def _negation(predicate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    def opposite(key: Any, query: Any) -> bool:
        return not predicate(key, query)

    return opposite


def _tuple(*values: Any) -> tuple[Any, ...]:
    return values


def _joined(selector: Selector) -> tuple[list[Expression], list[Expression], Callable[[Any, Any], bool]]:
    """Give the keys and the queries of all comparisons, and one predicate of their tuples."""
    keys: dict[Expression, int] = {}
    queries: dict[Expression, int] = {}

    def read(part: Selector) -> Callable[[Any, Any], bool]:
        match part:
            case Select():
                k, q = keys.setdefault(part.keys, len(keys)), queries.setdefault(part.queries, len(queries))
                return lambda key, query: holds(part, key[k], query[q])
            case And():
                left, right = read(part.left), read(part.right)
                return lambda key, query: left(key, query) and right(key, query)
            case Or():
                left, right = read(part.left), read(part.right)
                return lambda key, query: left(key, query) or right(key, query)
            case Not():
                inner = read(part.of)
                return lambda key, query: not inner(key, query)
        raise AssertionError(part)

    predicate = read(selector)
    return list(keys), list(queries), predicate


def _plus(a: Terms, b: Terms) -> Terms:
    total = dict(a)
    for leaves, times in b.items():
        total[leaves] = total.get(leaves, 0) + times
    return {leaves: times for leaves, times in total.items() if times}


def _minus(a: Terms, b: Terms) -> Terms:
    return _plus(a, {leaves: -times for leaves, times in b.items()})
