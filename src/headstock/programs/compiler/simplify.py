"""From all that can be said to the little that is built: constants folded, counts and choices of single keys alone.

What becomes what:

    width(a | ~b)          counts of conjunctions, added and subtracted (conjoining.py)
    sum of values          a count for each value, or for each binary digit, times what it is worth
    max, min               the best key, scored by the value itself
    f(best of values)      the best of f(values), where f of a token or a position costs nothing
    width(everything)      the length, or in causal mode the position and one
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from headstock.errors import UserError
from headstock.programs.compiler.conjoining import Conjoining
from headstock.programs.compiler.infer import Values
from headstock.programs.compiler.interning import Interned, Node
from headstock.programs.compiler.selection import always_picks, picks_one_at_most, refuse_looking_ahead
from headstock.programs.nodes import (
    Aggregate,
    And,
    Conjoined,
    Constant,
    Expression,
    Indices,
    Length,
    Map,
    Not,
    Or,
    Select,
    Selector,
    Tokens,
    Width,
)
from headstock.programs.values import Value, applied, is_number

MOST_CLASSES = 6
"""Different values of a sum that are counted one by one; of more, their binary digits are."""


class Simplifying:
    """One program on its way; what is asked for again is not worked out again."""

    def __init__(self, values: Values, names: Mapping[int, str] | None = None) -> None:
        self.values = values
        self.names = names or {}
        """What to call expressions, by their ids."""
        self.known = Interned()
        self.selectors = Conjoining(values, self.known, self.mapped)
        self.became: dict[int, tuple[Expression, Expression]] = {}
        """Each node as it was written, by its id, with what it became."""

    def __call__(self, node: Expression) -> Expression:
        """Give the simple form of an expression. Raises UserError for one that a causal program cannot have."""
        if id(node) not in self.became:
            self.became[id(node)] = node, self._named(self._simple(node), self.names.get(id(node), node.given_name))
        return self.became[id(node)][1]

    def _simple(self, node: Expression) -> Expression:
        match node:
            case Tokens() | Indices() | Constant():
                return self._node(node)
            case Length():
                if self.values.domain.causal:
                    raise UserError(
                        f"{node.said} looks ahead: a causal model cannot know how long its input is; compile it with "
                        f"causal=False, or use p.indices + 1, the length so far."
                    )
                return self._node(node)
            case Map():
                return self._map(node)
            case Width():
                return self._count(self._selector(node.selector), node)
            case Aggregate():
                return self._aggregate(node)
        raise AssertionError(node)

    def _node(self, node: Node) -> Node:
        return self.known.node(node)

    def _named(self, simple: Expression, name: str) -> Expression:
        if name and not simple.given_name and not isinstance(simple, Constant):
            object.__setattr__(simple, "given_name", name)  # a node of the compiler's own, not the author's
        return simple

    # Maps

    def _map(self, node: Map) -> Expression:
        arguments = tuple(self(part) for part in node.arguments)
        return self._mapped(replace(node, arguments=arguments))

    def _mapped(self, node: Map) -> Expression:
        if all(isinstance(part, Constant) for part in node.arguments):
            given = [part.value for part in node.arguments if isinstance(part, Constant)]
            return self._constant(applied(node.function, given, node), node)
        picked = next((part for part in node.arguments if isinstance(part, Aggregate) and part.by == "best"), None)
        others_are_constant = all(part is picked or isinstance(part, Constant) for part in node.arguments)
        if picked is not None and others_are_constant and self._is_free(picked.values):
            # A function of one token or position is a table; let the head carry what the table says.
            return self._node(
                replace(
                    picked,
                    values=self._over(node, picked, picked.values),
                    place=node.place,
                    default=self._default_of(node, picked),
                    given_name=node.given_name,
                )
            )
        made: Expression = self._node(node)
        return made

    def _over(self, node: Map, old: Expression, new: Expression) -> Expression:
        arguments = tuple(new if part is old else part for part in node.arguments)
        return self._mapped(replace(node, arguments=arguments))

    def _default_of(self, node: Map, picked: Aggregate) -> Value:
        """Give the function of the default, where that can be met; the function need not take one that is not."""
        assert isinstance(picked.selector, Conjoined)
        if always_picks(picked.selector.leaves, self.values):
            return picked.default
        given = [picked.default if part is picked else getattr(part, "value", None) for part in node.arguments]
        return applied(node.function, given, node)

    def _is_free(self, node: Expression) -> bool:
        sources = self.values.sources(node)
        return len(sources) == 1 and isinstance(sources[0], (Tokens, Indices))

    def _constant(self, value: Value, like: Expression) -> Expression:
        return self._node(Constant(value, like.place))

    def mapped(
        self, function: Callable[..., Any], *arguments: Expression, like: Expression, written: str = ""
    ) -> Expression:
        """Give a function of simple expressions, simple itself."""
        return self._mapped(Map(function, arguments, written, like.place))

    # Selectors

    def _selector(self, node: Selector) -> Selector:
        """Simplify what a selector compares; what is constant is True (no leaves) or False (None inside)."""
        match node:
            case Select():
                keys, queries = self(node.keys), self(node.queries)
                return self._node(replace(node, keys=keys, queries=queries))
            case And() | Or():
                left, right = self._selector(node.left), self._selector(node.right)
                return self._node(replace(node, left=left, right=right))
            case Not():
                return self._node(replace(node, of=self._selector(node.of)))
        raise AssertionError(node)

    def _checked(self, selector: Selector, node: Expression) -> Selector:
        if self.values.domain.causal:
            refuse_looking_ahead(selector, self.values, node.said)
        return selector

    # Heads

    def _count(self, selector: Selector, node: Expression) -> Expression:
        terms = self.selectors.terms(self._checked(selector, node), node)
        total = self._linear([(self._width(leaves, selector, node), times) for leaves, times in terms.items()], node)
        self.values.restrict(total, 0, self.values.domain.max_length)
        return total

    def _width(self, leaves: frozenset[Select], like: Selector, node: Expression) -> Expression:
        if not leaves and not self.values.domain.causal:
            return self._node(Length(node.place))
        if not leaves:
            index = self._node(Indices(node.place))
            return self.mapped(operator.add, index, self._constant(1, node), like=node, written="+")
        return self._node(Width(self.selectors.conjoined(leaves, like), node.place))

    def _linear(self, terms: list[tuple[Expression, Any]], node: Expression) -> Expression:
        """Give a sum of expressions, each times a number."""
        terms = [(part, times) for part, times in terms if times]
        if not terms:
            return self._constant(0, node)
        if len(terms) == 1 and terms[0][1] == 1:
            return terms[0][0]
        weights = tuple(times for _, times in terms)
        return self.mapped(weighted(weights), *(part for part, _ in terms), like=node, written="weighted sum")

    def _aggregate(self, node: Aggregate) -> Expression:
        values = self(node.values)
        selector = self._checked(self._selector(node.selector), node)
        if node.by == "sum" and not self._adds_one_at_most(selector):
            return self._sum(node, values, selector)
        if not self.selectors.terms(selector, node):
            return self._constant(node.default, node)
        conjunction = self.selectors.conjunction(selector, node)
        score = None if node.score is None else self(node.score)
        ties = node.ties
        if node.by == "sum":
            self._numbers(node, values, "sum")
            values = self._as_number(values, node)
        elif node.by in ("max", "min"):
            self._numbers(node, values, node.by)
            values = self._as_number(values, node)
            score = values if node.by == "max" else self._linear([(values, -1)], node)
        elif node.by == "best" and score is not None:
            self._numbers(node, score, "score")
        elif node.by == "mean":
            if (isinstance(values, Constant) and not is_number(values.value)) or picks_one_at_most(
                conjunction.leaves, self.values
            ):
                values = self._as_number(values, node)
            else:
                self._numbers(node, values, "mean")
                return self._node(replace(node, selector=conjunction, values=values))
        if isinstance(score, Constant):
            score = None
        return self._node(replace(node, selector=conjunction, values=values, by="best", score=score, ties=ties))

    def _adds_one_at_most(self, selector: Selector) -> bool:
        literals = self.selectors.literals(selector)
        return literals is not None and picks_one_at_most(tuple(literals), self.values)

    def _as_number(self, values: Expression, node: Expression) -> Expression:
        """Of one value the mean, the sum and the extremes are itself, as a number if it is True or False."""
        if any(isinstance(value, bool) for value in self.values[values]):
            return self.mapped(_number, values, like=node, written="number")
        return values

    def _numbers(self, node: Aggregate, values: Expression, what: str) -> None:
        odd = next((value for value in self.values[values] if not is_number(value)), 0)
        if not is_number(odd):
            raise UserError(
                f"{node.said} takes a {what} of values among which is {odd!r}: give numbers, declare that one key is "
                f"meant by by='best', or give what may be None a default."
            )

    def _sum(self, node: Aggregate, values: Expression, selector: Selector) -> Expression:
        self._numbers(node, values, "sum")
        terms = self.selectors.terms(selector, node)
        parts: list[tuple[Expression, Any]] = []
        known = self.values[values]
        for worth, flag in self._classes(known, values, node):
            leaf = Select(flag, self._constant(True, node), operator.eq, "==", node.place)
            fixed = self.selectors.fixed(self._node(leaf))
            for leaves, times in terms.items():
                chosen = leaves if fixed else leaves | {self._node(leaf)}
                if fixed is not False:
                    parts.append((self._width(frozenset(chosen), selector, node), times * worth))
        total = self._linear(parts, node)
        most = self.values.domain.max_length
        self.values.restrict(total, min(0, most * min(known)), max(0, most * max(known)))
        if node.default == 0:
            return total
        count = self._count(selector, node)
        empty = self.mapped(operator.eq, count, self._constant(0, node), like=node, written="==")
        default = self._constant(node.default, node)
        return self.mapped(_choose, empty, default, total, like=node, written="where")

    def _classes(self, known: tuple[Any, ...], values: Expression, node: Expression) -> list[tuple[Any, Expression]]:
        """Give what to count, each with what one of it is worth: values one by one, or binary digits of a number."""
        least = min(known)
        if len(known) <= MOST_CLASSES or not all(isinstance(value, int) for value in known):
            return [
                (value, self.mapped(_is(value), values, like=node, written=f"is {value}")) for value in known if value
            ]
        digits = int(max(known) - min(0, least)).bit_length()
        lowest = min(0, least)
        counted = [
            (2**place, self.mapped(_digit(lowest, place), values, like=node, written=f"binary digit {place}"))
            for place in range(digits)
        ]
        return [*counted, (lowest, self._constant(True, node))] if lowest else counted


@cache
def weighted(weights: tuple[Any, ...]) -> Callable[..., Any]:
    """Give the sum of so many numbers, each times its weight."""

    def total(*values: Any) -> Any:
        return sum(weight * value for weight, value in zip(weights, values, strict=True))

    total.weights = weights  # type: ignore[attr-defined]  # so that sums need not be gone through one by one
    return total


@cache
def _is(value: Any) -> Callable[[Any], bool]:
    def same(other: Any) -> bool:
        return bool(other == value)

    return same


@cache
def _digit(lowest: int, place: int) -> Callable[[Any], bool]:
    def set_(value: Any) -> bool:
        return bool((int(value) - lowest) >> place & 1)

    return set_


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _choose(condition: Any, then: Any, otherwise: Any) -> Any:
    return then if condition else otherwise
