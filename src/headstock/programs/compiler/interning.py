"""One node for every different thing a program says: common subexpressions become one, whatever line they stand on."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, TypeVar

from headstock.programs.nodes import (
    Aggregate,
    And,
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

Node = TypeVar("Node", bound=Expression | Selector)


class Interned:
    """The nodes known so far, each under what it says; the first to say it keeps its line and name."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}
        self._number: dict[int, int] = {}

    def node(self, node: Node) -> Node:
        """Give the one node that says what this one says; its parts are interned already."""
        key = self._key(node)
        held = self._known.setdefault(key, node)
        self._number.setdefault(id(held), len(self._number))
        if isinstance(held, Expression) and isinstance(node, Expression) and not held.given_name:
            object.__setattr__(held, "given_name", node.given_name)
        return held  # type: ignore[no-any-return]

    def number(self, node: Any) -> int:
        """Say as the how manyth a node came: an order that is the same in every process."""
        return self._number[id(node)]

    def _key(self, node: Any) -> Hashable:
        def of(part: Any) -> Hashable:
            return None if part is None else id(part)

        match node:
            case Tokens() | Indices() | Length():
                return type(node).__name__
            case Constant():
                return "constant", type(node.value).__name__, node.value
            case Map():
                return "map", function_key(node.function), tuple(map(of, node.arguments))
            case Width():
                return "width", of(node.selector)
            case Aggregate():
                said = node.by, type(node.default).__name__, node.default, node.ties
                return "aggregate", of(node.selector), of(node.values), of(node.score), said
            case Select():
                return "select", of(node.keys), of(node.queries), function_key(node.predicate)
            case And() | Or():
                return type(node).__name__, frozenset({of(node.left), of(node.right)})
            case Not():
                return "not", of(node.of)
        raise AssertionError(node)


def function_key(function: Callable[..., Any]) -> Hashable:
    """Give what tells two functions apart: code and what it holds on to; a line that runs twice gives one function."""
    code = getattr(function, "__code__", None)
    if code is None:
        return function if getattr(type(function), "__hash__", None) else id(function)
    held = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    held += list(getattr(function, "__defaults__", None) or ())
    held += [part for pair in (getattr(function, "__kwdefaults__", None) or {}).items() for part in pair]
    held.append(getattr(function, "__globals__", None))
    held.append(getattr(function, "__self__", None))
    key = tuple((type(value).__name__, value) if _is_plain(value) else id(value) for value in held)
    return code, key


def _is_plain(value: Any) -> bool:
    return isinstance(value, (int, str, float, type(None)))


def interned(node: Any, known: Interned, done: dict[int, Any]) -> Any:
    """Give a node, and all that it is made of, interned. `done` remembers which node became which."""
    if id(node) in done:
        return done[id(node)][1]
    match node:
        case Map():
            new: Any = replace(node, arguments=tuple(interned(part, known, done) for part in node.arguments))
        case Width():
            new = replace(node, selector=interned(node.selector, known, done))
        case Aggregate():
            score = None if node.score is None else interned(node.score, known, done)
            new = replace(
                node,
                selector=interned(node.selector, known, done),
                values=interned(node.values, known, done),
                score=score,
            )
        case Select():
            new = replace(node, keys=interned(node.keys, known, done), queries=interned(node.queries, known, done))
        case And() | Or():
            new = replace(node, left=interned(node.left, known, done), right=interned(node.right, known, done))
        case Not():
            new = replace(node, of=interned(node.of, known, done))
        case Expression() | Selector():
            new = node
        case _:
            raise AssertionError(node)
    new = known.node(new)
    done[id(node)] = node, new
    return new
