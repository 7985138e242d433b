"""Scores for a conjunction of comparisons: 0 for a pair that all of them select, far below for any other.

Each comparison takes something off the score of a pair that it does not select, so of several the scores are added.
    squares    −P·(k − q)², for ==, in three numbers, whatever the number of values
    classes    −P where the key's class and the query's do not go together, a number of the head for each class of keys,
               or of queries: for any predicate
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from headstock.errors import UserError
from headstock.programs.compiler.heads import Dimension, score_error
from headstock.programs.compiler.quantities import Affine, Form
from headstock.programs.compiler.selection import holds
from headstock.programs.nodes import Conjoined, Constant, Expression, Select
from headstock.programs.values import Value

if TYPE_CHECKING:
    from headstock.programs.compiler.lower import Lowering

MOST_CLASSES = 400
"""Numbers of a head that one comparison may take."""

Way = Callable[[], list[Dimension] | None]


class Scoring:
    """Dimensions of heads, for one program."""

    def __init__(self, lowering: "Lowering") -> None:
        self._of = lowering

    def strict(self, selector: Conjoined, penalty: Fraction, node: Expression) -> list[Dimension] | None:
        """Give dimensions that score a selected pair exactly 0, so that all that is selected weighs the same."""
        dimensions: list[Dimension] = []
        for leaf in selector.leaves:
            ways = (way() for way in self._ways(leaf, penalty, node, exact=True))
            sure = (way for way in ways if way is not None and score_error(tuple(way), self._of.domain) == 0.0)
            found = next(sure, None)
            if found is None:
                return None
            dimensions += found
        if score_error(tuple(dimensions), self._of.domain) == 0.0:
            return dimensions
        return self._by_classes(selector, penalty, node)

    def tolerant(self, selector: Conjoined, penalty: Fraction, node: Expression) -> Iterator[list[Dimension]]:
        """Give ways to score, the cheapest first, whatever the noise in what they compare: the caller bounds it."""
        for exact in (False, True):
            whole: list[Dimension] = []
            for leaf in selector.leaves:
                ways = (way() for way in self._ways(leaf, penalty, node, exact=exact))
                found = next((way for way in ways if way is not None), None)
                if found is None:
                    break
                whole += found
            else:
                yield whole
        by_classes = self._by_classes(selector, penalty, node)
        if by_classes is not None:
            yield by_classes

    def _by_classes(self, selector: Conjoined, penalty: Fraction, node: Expression) -> list[Dimension] | None:
        dimensions: list[Dimension] = []
        for leaf in selector.leaves:
            found = self._classes(leaf, penalty, node, exact=True)
            if found is None:
                return None
            dimensions += found
        return dimensions

    def _ways(self, leaf: Select, penalty: Fraction, node: Expression, *, exact: bool) -> Iterator[Way]:
        if not isinstance(leaf.keys, Constant) and not isinstance(leaf.queries, Constant):
            yield lambda: self._squares(leaf, penalty, exact=exact)
        yield lambda: self._classes(leaf, penalty, node, exact=exact)

    # Squares

    def _squares(self, leaf: Select, penalty: Fraction, *, exact: bool) -> list[Dimension] | None:
        keys, queries = self._form(leaf.keys, exact=exact), self._form(leaf.queries, exact=exact)
        if keys is None or queries is None:
            return None
        gap = self._equality_gap(leaf, keys, queries)
        if gap is None:
            return None
        factor = penalty
        while factor * gap * gap < penalty:
            factor *= 2
        codes = [*keys.codes.values(), *queries.codes.values()]
        shift = Fraction(int((min(codes) + max(codes)) / 2))
        key_reach = max(abs(code - shift) for code in keys.codes.values())
        query_reach = max(abs(code - shift) for code in queries.codes.values())
        key, query = keys.affine.shifted(-shift), queries.affine.shifted(-shift)
        key_squared = self._of.squares(leaf.keys, shift, exact=exact)
        if key_squared is None:
            return None
        start = self._of.plan.start
        dimensions = [
            Dimension(query.times(2 * factor), key.vanishing(start), 2 * factor * query_reach, key_reach),
            Dimension(Affine({}, -factor), key_squared.affine.vanishing(start), factor, key_reach**2),
        ]
        if start is None:
            return dimensions  # the query's own square moves all its scores alike
        query_squared = self._of.squares(leaf.queries, shift, exact=exact)
        if query_squared is None:
            return None
        real = Affine({}, Fraction(1)).vanishing(start)
        return [*dimensions, Dimension(query_squared.affine.times(-factor), real, factor * query_reach**2, Fraction(1))]

    def _equality_gap(self, leaf: Select, keys: Form, queries: Form) -> Fraction | None:
        """Give the smallest difference of codes that are not selected; None where selected is not the same as equal."""
        gap: Fraction | None = None
        for key, k in keys.codes.items():
            for query, q in queries.codes.items():
                if holds(leaf, key, query) != (k == q):
                    return None
                if k != q:
                    gap = abs(k - q) if gap is None else min(gap, abs(k - q))
        return Fraction(1) if gap is None else gap

    def _form(self, node: Expression, *, exact: bool) -> Form | None:
        return self._of.exact_form(node) if exact else self._of.form(node)

    # Classes

    def _classes(self, leaf: Select, penalty: Fraction, node: Expression, *, exact: bool) -> list[Dimension] | None:
        keys, queries = self._of.values[leaf.keys], self._of.values[leaf.queries]
        rows: dict[tuple[bool, ...], set[Value]] = {}
        columns: dict[tuple[bool, ...], set[Value]] = {}
        for key in keys:
            rows.setdefault(tuple(holds(leaf, key, query) for query in queries), set()).add(key)
        for query in queries:
            columns.setdefault(tuple(holds(leaf, key, query) for key in keys), set()).add(query)
        dimensions: list[Dimension] = []
        by_keys = sum(not all(row) for row in rows) <= sum(not all(column) for column in columns)
        classes = rows if by_keys else columns
        if sum(not all(held) for held in classes) > MOST_CLASSES:
            raise UserError(
                f"{node.said} compares values that fall into {len(classes)} classes, more than {MOST_CLASSES}: declare "
                f"a smaller max_length or vocabulary, or compare values that take fewer."
            )
        mine, theirs = (leaf.keys, leaf.queries) if by_keys else (leaf.queries, leaf.keys)
        others = queries if by_keys else keys
        for held, members in classes.items():
            if all(held):
                continue
            refused = frozenset(other for other, yes in zip(others, held, strict=True) if not yes)
            ours = self._flag(mine, frozenset(members), node, exact=exact)
            foreign = self._flag(theirs, refused, node, exact=exact)
            if ours is None or foreign is None:
                return None
            key, query = (ours, foreign) if by_keys else (foreign, ours)
            dimensions.append(Dimension(query.times(-penalty), key.vanishing(self._of.plan.start)))
        return dimensions

    def _flag(self, node: Expression, members: frozenset[Value], like: Expression, *, exact: bool) -> Affine | None:
        """Give 1 where a value is one of these, else 0."""
        if members >= set(self._of.values[node]):
            return Affine({}, Fraction(1))
        flag = self._of.simplify.mapped(_among(members), node, like=like, written="is one of")
        form = self._form(flag, exact=exact)
        return None if form is None else form.affine


@cache
def _among(members: frozenset[Any]) -> Callable[[Any], bool]:
    def among(value: Any) -> bool:
        return value in members

    return among
