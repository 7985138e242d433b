"""Which values an expression can take, over the whole domain: never too few, sometimes more than really occur.

What is computed at one position from the same few sources is followed exactly, so `length - 1 - indices` is never
below 0. What a head gives is a source of its own: how it hangs together with others is not followed.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from headstock.errors import UserError
from headstock.programs.compiler.domain import MOST_POINTS, Domain
from headstock.programs.compiler.selection import always_picks, picks_one_at_most
from headstock.programs.nodes import (
    Aggregate,
    Conjoined,
    Constant,
    Expression,
    Indices,
    Length,
    Map,
    Select,
    Selector,
    Tokens,
    Width,
)
from headstock.programs.values import Value, applied, canonical, in_order, is_number

MOST_VALUES = 20_000
"""Different values that an expression may have."""
MOST_DIGITS = 80
"""Of the size of a number, or of its inverse: products of a few of them are still floats."""

_NEVER = object()
"""In place of a value at a point that never occurs."""
Point = dict[Expression, Value]
"""A value for each source."""


class Values:
    """The values of every expression, worked out when they are asked for."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._sources: dict[Expression, tuple[Expression, ...]] = {}
        self._values: dict[Expression, tuple[Value, ...]] = {}
        self._tables: dict[Expression, dict[tuple[Value, ...], Value]] = {}

    def sources(self, node: Expression) -> tuple[Expression, ...]:
        """Give what a value is computed from at its own position: tokens, indices, length, and what heads give."""
        if node not in self._sources:
            if isinstance(node, Constant):
                found: tuple[Expression, ...] = ()
            elif isinstance(node, Map):
                found = tuple(dict.fromkeys(source for part in node.arguments for source in self.sources(part)))
            else:
                found = (node,)
            self._sources[node] = found
        return self._sources[node]

    def __getitem__(self, node: Expression) -> tuple[Value, ...]:
        """Give the values, in order. Raises UserError where there are too many to go through."""
        if node not in self._values:
            found = in_order(self._of(node))
            if len(found) > MOST_VALUES:
                raise self._too_many(node, len(found))
            odd = next((value for value in found if is_number(value) and not _is_in_reach(value)), None)
            if odd is not None:
                raise UserError(
                    f"{node.said} can be about {_about(odd)}, beyond what weights hold: let numbers stay between "
                    f"1e-{MOST_DIGITS} and 1e+{MOST_DIGITS}, or be 0."
                )
            self._values[node] = tuple(found)
        return self._values[node]

    def _too_many(self, node: Expression, count: int) -> UserError:
        return UserError(
            f"{node.said} can have {count:,} different values, more than the {MOST_VALUES:,} that can be compiled: "
            f"declare a smaller max_length or vocabulary, or clip it."
        )

    def points(self, sources: tuple[Expression, ...]) -> Iterator[Point]:
        """Give every combination of values that the sources can have at one position."""
        most = self.domain.max_length
        others = [source for source in sources if not isinstance(source, Length)]
        for values in product(*(self[source] for source in others)):
            point = dict(zip(others, values, strict=True))
            if len(others) == len(sources):
                yield point
                continue
            index = next((value for source, value in point.items() if isinstance(source, Indices)), 0)
            length = next(source for source in sources if isinstance(source, Length))
            yield from ({**point, length: n} for n in range(index + 1, most + 1))

    def positional(self, node: Expression) -> list[Value] | None:
        """Give a value for each position, where nothing but the position decides it."""
        sources = self.sources(node)
        if len(sources) != 1 or not isinstance(sources[0], Indices):
            return None
        return [self.at(node, {sources[0]: index}) for index in range(self.domain.max_length)]

    def restrict(self, node: Expression, low: Any, high: Any) -> None:
        """Remember bounds that a sum of counts keeps, whatever its terms could be each by itself.

        Points outside of them never occur, and are left out of its table.
        """
        if isinstance(node, Constant) or all(low <= value <= high for value in self[node]):
            return
        self._values[node] = tuple(value for value in self[node] if low <= value <= high)
        if node in self._tables:
            self._tables[node] = {point: value for point, value in self._tables[node].items() if low <= value <= high}

    def count(self, sources: tuple[Expression, ...]) -> int:
        """Say how many combinations those are at most."""
        return math.prod(len(self[source]) for source in sources)

    def at(self, node: Expression, point: Point) -> Value:
        """Give a value at one point, which says a value for each of its sources, or for parts nearer to it."""
        if node in point:
            return point[node]
        if isinstance(node, Constant):
            return node.value
        known = self._values.get(node, ())
        if len(known) == 1:
            return known[0]
        assert isinstance(node, Map)
        return applied(node.function, [self.at(part, point) for part in node.arguments], node)

    def table(self, node: Expression) -> dict[tuple[Value, ...], Value]:
        """Give the value for every combination of values of its sources, in their order.

        For what `is_followed`: each part's table is made once, and looked up in.
        """
        if node not in self._tables:
            sources = self.sources(node)
            if not isinstance(node, Map):
                self._tables[node] = {tuple(point.values()): self.at(node, point) for point in self.points(sources)}
            else:
                where = {source: place for place, source in enumerate(sources)}
                parts = [
                    (self.table(part), [where[source] for source in self.sources(part)]) for part in node.arguments
                ]
                made = {point: applied(node.function, given, node) for point, given in self._looked_up(sources, parts)}
                known = self._values.get(node)
                kept = set(made.values()) if known is None else set(known)
                self._tables[node] = {point: value for point, value in made.items() if value in kept}
        return self._tables[node]

    def is_followed(self, node: Expression) -> bool:
        """Whether its sources have few enough combinations to go through them all."""
        return self.count(self.sources(node)) <= MOST_POINTS

    def together(self, parts: Sequence[Expression], of: Expression) -> list[tuple[Value, ...]]:
        """Give the combinations of values that several expressions can have at one position.

        All that really occur; where there are too many combinations of sources, each part is taken by itself. Raises
        UserError where those are too many too, naming the function `of` them.
        """
        apart = not self.hang_together(parts) and math.prod(len(self[part]) for part in parts) <= MOST_POINTS
        if apart:  # each value of one meets each of the others: what they come from need not be gone through
            return list(product(*(self[part] for part in parts)))
        sources = tuple(dict.fromkeys(source for part in parts for source in self.sources(part)))
        if self.count(sources) > MOST_POINTS:
            count = math.prod(len(self[part]) for part in parts)
            if count > MOST_POINTS:
                raise UserError(
                    f"{of.said} is a function of {count:,} combinations of values, more than the {MOST_POINTS:,} that "
                    f"can be gone through: declare {self._smaller(sources)}, or work on fewer sequences at a time."
                )
            return list(product(*(self[part] for part in parts)))
        where = {source: place for place, source in enumerate(sources)}
        held = [(self.table(part), [where[source] for source in self.sources(part)]) for part in parts]
        return list(dict.fromkeys(tuple(given) for _, given in self._looked_up(sources, held)))

    def _smaller(self, sources: tuple[Expression, ...]) -> str:
        """Say which domain has few enough combinations: how short, where tokens, positions and length are all there is.

        What a head gives depends on the lengths too, in ways of its own.
        """
        placed = sum(isinstance(source, (Indices, Length)) for source in sources)
        others = math.prod(len(self[source]) for source in sources if not isinstance(source, (Indices, Length)))
        fits = next((n for n in range(self.domain.max_length - 1, 0, -1) if others * n**placed <= MOST_POINTS), 0)
        known = all(isinstance(source, (Tokens, Indices, Length)) for source in sources)
        return f"max_length={fits} or less" if known and fits else "a smaller max_length or vocabulary"

    def _looked_up(
        self, sources: tuple[Expression, ...], parts: list[tuple[dict[tuple[Value, ...], Value], list[int]]]
    ) -> Iterator[tuple[tuple[Value, ...], list[Value]]]:
        """Give every point that can occur, and what the parts' tables say of it."""
        for point in self._tuples(sources):
            given = [held.get(tuple(point[place] for place in places), _NEVER) for held, places in parts]
            if not any(value is _NEVER for value in given):
                yield point, given

    def _tuples(self, sources: tuple[Expression, ...]) -> Iterator[tuple[Value, ...]]:
        """Give the points as tuples in the order of the sources."""
        for point in self.points(sources):
            yield tuple(point[source] for source in sources)

    def _of(self, node: Expression) -> set[Value]:
        n = self.domain.max_length
        match node:
            case Tokens():
                return set(self.domain.vocabulary)
            case Indices():
                return set(range(n))
            case Length():
                return set(range(1, n + 1))
            case Constant():
                return {node.value}
            case Map():
                return self._of_map(node)
            case Width():
                leaves = _leaves(node.selector)
                least = 1 if always_picks(leaves, self) else 0
                return set(range(least, 1 + (1 if picks_one_at_most(leaves, self) else n)))
            case Aggregate():
                found = self._together(node)
                if always_picks(_leaves(node.selector), self):
                    return found
                return _alike([*found, node.default], node)
        raise AssertionError(node)

    def _of_map(self, node: Map) -> set[Value]:
        weights = getattr(node.function, "weights", None)
        alone = len(self.sources(node)) == 1  # whose table is wanted later too
        followed = self.is_followed(node) and (alone or self.hang_together(node.arguments))
        if weights is not None and not followed:
            return self._of_sum(node, weights)
        if followed:
            return _alike(self.table(node).values(), node)
        return _alike((applied(node.function, given, node) for given in self.together(node.arguments, node)), node)

    def hang_together(self, parts: Sequence[Expression]) -> bool:
        """Whether parts come from the same sources, or from the index and the length, which is larger."""
        sources = [source for part in parts for source in self.sources(part)]
        kinds = set(map(type, sources))
        return len(set(sources)) < len(sources) or {Indices, Length} <= kinds

    def _of_sum(self, node: Map, weights: tuple[Any, ...]) -> set[Value]:
        """Give what a weighted sum can be, one part after the other."""
        totals: set[Value] = {0}
        for weight, part in zip(weights, node.arguments, strict=True):
            totals = {total + weight * value for total in totals for value in self[part]}
            if len(totals) > MOST_VALUES:
                raise self._too_many(node, len(totals))
        return {canonical(total, node) for total in totals}

    def _together(self, node: Aggregate) -> set[Value]:
        values, n = self[node.values], self.domain.max_length
        if node.by in ("best", "max", "min"):
            return set(values)
        if node.by == "mean" and not all(map(is_number, values)):
            return set(values)  # of values that differ the interpreter takes no mean, nor does a compiled model
        step = _step(values)
        low, high = (canonical(Fraction(edge), node) for edge in (min(values), max(values)))
        if step == 0:
            return {low} if node.by == "mean" else {low * k for k in range(1, n + 1)}
        if (high - low) * n / step > MOST_VALUES:  # of n keys alone
            raise self._too_many(node, int((high - low) * n / step) + 1)
        found: set[Value] = set()
        for k in range(n, 0, -1):  # of n keys there are the most, each of them another value
            places = range(int((high - low) * k / step) + 1)
            if max(len(found), len(places)) > MOST_VALUES:
                raise self._too_many(node, max(len(found), len(places)))
            found.update(low * k + step * j if node.by == "sum" else low + Fraction(step * j, k) for j in places)
        return {canonical(value, node) for value in found}


def _alike(values: Iterable[Value], node: Expression) -> set[Value]:
    """Give the different values. Raises UserError where True and 1 are among them, or False and 0.

    Python holds the two for equal, so a set has one of them; which, nobody has said.
    """
    kinds: dict[Value, bool] = {}
    for value in values:
        if kinds.setdefault(value, isinstance(value, bool)) != isinstance(value, bool):
            raise UserError(
                f"{node.said} gives {bool(value)} at one place and {int(value)} at another, which count as the same "
                f"value: let it give one of the two everywhere."
            )
    return set(kinds)


def _bits(number: Any) -> int:
    """Give how many bits a number's size has, or has before it after the point; to within one."""
    return int(abs(number.numerator).bit_length() - number.denominator.bit_length())


def _is_in_reach(number: Any) -> bool:
    return number == 0 or abs(_bits(number)) * math.log10(2) < MOST_DIGITS


def _about(number: Any) -> str:
    return f"{'-' if number < 0 else ''}1e{round(_bits(number) * math.log10(2)):+d}"


def _leaves(selector: Selector) -> tuple[Select, ...]:
    assert isinstance(selector, Conjoined)
    return selector.leaves


def _step(values: tuple[Any, ...]) -> Fraction:
    """Give the largest step of which all differences are multiples; 0 for one value alone."""
    step = Fraction(0)
    for value in values:
        difference = abs(Fraction(value) - Fraction(values[0]))
        if difference:
            a, b = (step, difference) if step else (difference, difference)
            common = math.lcm(a.denominator, b.denominator)
            step = Fraction(math.gcd(int(a * common), int(b * common)), common)
    return step
