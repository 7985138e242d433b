"""What a program means: its values at every position of a sequence, exactly, in whole numbers and fractions.

The plain form that every compiled model is held to. Knows nothing of weights, domains and dtypes.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from headstock.errors import UserError
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
from headstock.programs.values import Value, applied, canonical, is_number, tokens_of_input

Row = list[Value]
Selected = list[list[bool]]
"""[query][key]"""


class Reading:
    """One sequence, and every expression that has been worked out on it."""

    def __init__(self, sequence: Sequence[Any], *, causal: bool = False) -> None:
        self.tokens: Row = tokens_of_input(sequence)
        self.causal = causal
        self._known: dict[int, tuple[object, Any]] = {}

    def __getitem__(self, expression: Expression) -> Row:
        """Give the values of an expression, one a position. Raises UserError where it has none."""
        return self._remembered(expression, self._values)  # type: ignore[no-any-return]

    def selected(self, selector: Selector) -> Selected:
        """Give which keys each query selects, [query][key]; in causal mode none that stands after it."""
        held: Selected = self._remembered(selector, self._pairs)
        if not self.causal:
            return held
        return [[key <= query and yes for key, yes in enumerate(row)] for query, row in enumerate(held)]

    def _remembered(self, node: Any, work_out: Any) -> Any:
        if id(node) not in self._known:
            self._known[id(node)] = node, work_out(node)
        return self._known[id(node)][1]

    def _values(self, node: Expression) -> Row:
        n = len(self.tokens)
        match node:
            case Tokens():
                return self.tokens
            case Indices():
                return list(range(n))
            case Length():
                if self.causal:
                    raise UserError(f"{node.said} looks ahead: a causal program cannot know how long its input is.")
                return [n] * n
            case Constant():
                return [node.value] * n
            case Map():
                columns = [self[argument] for argument in node.arguments]
                said = node.said
                return [applied(node.function, values, said) for values in zip(*columns, strict=True)]
            case Width():
                return [sum(row) for row in self.selected(node.selector)]
            case Aggregate():
                values = self[node.values]
                scores = self[node.score] if node.score is not None else [0] * n
                rows = self.selected(node.selector)
                return [together(node, [k for k in range(n) if row[k]], values, scores) for row in rows]
        raise AssertionError(node)

    def _pairs(self, node: Selector) -> Selected:
        match node:
            case Select():
                keys, queries = self[node.keys], self[node.queries]
                known: dict[tuple[Value, Value], bool] = {}
                said = node.said
                for query in queries:
                    for key in keys:
                        if (key, query) not in known:
                            known[key, query] = bool(applied(node.predicate, (key, query), said))
                return [[known[key, query] for key in keys] for query in queries]
            case And():
                return _paired(self._both(node), lambda a, b: a and b)
            case Or():
                return _paired(self._both(node), lambda a, b: a or b)
            case Conjoined():
                pairs = [self._remembered(leaf, self._pairs) for leaf in node.leaves]
                every = range(len(self.tokens))
                return [[all(held[q][k] for held in pairs) for k in every] for q in every]
            case Not():
                return [[not yes for yes in row] for row in self._remembered(node.of, self._pairs)]
        raise AssertionError(node)

    def _both(self, node: And | Or) -> tuple[Selected, Selected]:
        return self._remembered(node.left, self._pairs), self._remembered(node.right, self._pairs)


def _paired(two: tuple[Selected, Selected], put: Any) -> Selected:
    return [[put(a, b) for a, b in zip(*rows, strict=True)] for rows in zip(*two, strict=True)]


def together(node: Aggregate, keys: list[int], values: Row, scores: Row) -> Value:
    """Put the values of the selected keys together as an aggregate says. Raises UserError where that means nothing."""
    if not keys:
        return node.default
    if node.by == "best":
        best = max(_comparable(node, [scores[key] for key in keys]))
        among = [key for key in keys if scores[key] == best]
        return values[among[0 if node.ties == "first" else -1]]
    chosen = [values[key] for key in keys]
    if node.by == "mean" and len(set(chosen)) == 1 and not is_number(chosen[0]):
        return chosen[0]
    numbers = _comparable(node, chosen)
    if node.by == "max":
        return canonical(max(numbers), node.said)
    if node.by == "min":
        return canonical(min(numbers), node.said)
    total = sum(numbers, Fraction(0))
    return canonical(total if node.by == "sum" else total / len(numbers), node.said)


def _comparable(node: Aggregate, values: Row) -> list[Fraction]:
    odd = next((value for value in values if not is_number(value)), 0)
    if not is_number(odd):
        what = "score" if node.by == "best" else node.by
        raise UserError(
            f"{node.said} has no {what} of {odd!r} among others: aggregate numbers, or take one key's value by='best'."
        )
    return [Fraction(value) for value in values]
