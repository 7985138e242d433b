"""What can be known of a selector before any input: whether it selects something, at most one key, or a key ahead."""

import operator
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

from headstock.errors import UserError
from headstock.programs.compiler.domain import MOST_POINTS
from headstock.programs.nodes import And, Constant, Expression, Indices, Length, Not, Or, Select, Selector
from headstock.programs.values import Value, applied

if TYPE_CHECKING:
    from headstock.programs.compiler.infer import Values


def holds(leaf: Select, key: Value, query: Value) -> bool:
    """Whether a pair of values is selected."""
    return bool(applied(leaf.predicate, (key, query), leaf))


def is_equality(leaf: Select) -> bool:
    """Whether it is the plain ==."""
    return leaf.predicate is operator.eq


def picks_one_at_most(leaves: tuple[Select, ...], values: "Values") -> bool:
    """Whether no query can select two keys: one of the leaves asks for a position, which only one key has."""
    return any(is_equality(leaf) and _tells_positions_apart(leaf.keys, values) for leaf in leaves)


def _tells_positions_apart(keys: Expression, values: "Values") -> bool:
    sources = values.sources(keys)
    if len(sources) != 1 or not isinstance(sources[0], Indices):
        return False
    found = list(values.table(keys).values())
    return len(found) == len(set(found))


def always_picks(leaves: tuple[Select, ...], values: "Values") -> bool:
    """Whether every query is known to select a key: its own, or one at a position that is always there."""
    return all(_selects_itself(leaf, values) for leaf in leaves) or (
        len(leaves) == 1 and _asks_for_a_position_there(leaves[0], values)
    )


def _selects_itself(leaf: Select, values: "Values") -> bool:
    sources = tuple(dict.fromkeys([*values.sources(leaf.keys), *values.sources(leaf.queries)]))
    if values.count(sources) > MOST_POINTS:
        return leaf.keys is leaf.queries and leaf.predicate in (operator.eq, operator.le, operator.ge)
    return all(holds(leaf, values.at(leaf.keys, at), values.at(leaf.queries, at)) for at in values.points(sources))


def _asks_for_a_position_there(leaf: Select, values: "Values") -> bool:
    if not is_equality(leaf) or not isinstance(leaf.keys, Indices):
        return False
    # What is asked for must be among 0 … the last position seen, which index and length say.
    seen: Expression = leaf.keys if values.domain.causal else Length(leaf.place)
    known = next((source for source in values.sources(leaf.queries) if isinstance(source, type(seen))), seen)
    sources = tuple(dict.fromkeys([*values.sources(leaf.queries), leaf.keys, known]))
    if values.count(sources) > MOST_POINTS:
        return False
    edge = 1 if values.domain.causal else 0
    for point in values.points(sources):
        asked = values.at(leaf.queries, point)
        if not isinstance(asked, (int, Fraction)) or asked not in range(point[known] + edge):
            return False
    return True


def refuse_looking_ahead(selector: Selector, values: "Values", said: str) -> None:
    """Raise UserError where a causal program aims at a position after the query.

    Content that stands ahead is simply not seen yet; but who asks for a position by its number means that position.
    """
    positional = [leaf for leaf in leaves_of(selector) if _is_about_positions(leaf, values)]
    if not positional:
        return
    others = [leaf for leaf in leaves_of(selector) if leaf not in positional]
    n = values.domain.max_length
    pairs = [(key, query) for query in range(n) for key in range(query + 1, n)]
    patterns: dict[tuple[bool, ...], tuple[int, int]] = {}
    for key, query in pairs:
        held = tuple(_could_hold(leaf, key, query, values) for leaf in positional)
        patterns.setdefault(held, (key, query))
    for content in product((False, True), repeat=min(len(others), 10)):
        contents = dict(zip(others, content, strict=False))
        whatever = all(
            _truth(selector, {**contents, **dict(zip(positional, held, strict=True))})
            for held in product((False, True), repeat=len(positional))
        )
        if whatever:
            continue  # selected for its content alone
        for held, (key, query) in patterns.items():
            if _truth(selector, {**contents, **dict(zip(positional, held, strict=True))}):
                raise UserError(
                    f"{said} reads position {key} from position {query} ({selector.place}): a causal model cannot look "
                    f"ahead; compile it with causal=False, or add `& p.up_to_here` if only what stands before is meant."
                )


def leaves_of(selector: Selector) -> list[Select]:
    """Give the comparisons that a selector is put together from."""
    match selector:
        case Select():
            return [selector]
        case And() | Or():
            return list(dict.fromkeys([*leaves_of(selector.left), *leaves_of(selector.right)]))
        case Not():
            return leaves_of(selector.of)
    raise AssertionError(selector)


def _truth(selector: Selector, held: dict[Select, bool]) -> bool:
    match selector:
        case Select():
            return held.get(selector, False)
        case And():
            return _truth(selector.left, held) and _truth(selector.right, held)
        case Or():
            return _truth(selector.left, held) or _truth(selector.right, held)
        case Not():
            return not _truth(selector.of, held)
    raise AssertionError(selector)


def _is_about_positions(leaf: Select, values: "Values") -> bool:
    """Whether what is asked for, or where it is looked for, is a number of a position."""
    if isinstance(leaf.keys, Constant) or isinstance(leaf.queries, Constant):
        return False
    return any(_is_positional(side, values) for side in (leaf.keys, leaf.queries))


def _is_positional(node: Expression, values: "Values") -> bool:
    sources = values.sources(node)
    return len(sources) == 1 and isinstance(sources[0], Indices) and len(values[node]) > 1


def _could_hold(leaf: Select, key: int, query: int, values: "Values") -> bool:
    def possible(node: Expression, position: int) -> tuple[Value, ...]:
        if _is_positional(node, values):
            return (values.at(node, {values.sources(node)[0]: position}),)
        return values[node]

    return any(holds(leaf, a, b) for a in possible(leaf.keys, key) for b in possible(leaf.queries, query))
