"""The expressions of a program that have a name of their own, in the order in which it computes them."""

from collections.abc import Iterator
from dataclasses import dataclass

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
from headstock.programs.places import Place


@dataclass(frozen=True)
class Named:
    """An expression under the name that its line gives it; names are made different by numbers."""

    name: str
    node: Expression


def in_written_order(output: Expression) -> list[Named]:
    """Give the named expressions that an output needs, itself the last.

    Of all that is computed on one line the whole has a name, and what other lines use of it. Constants have none.
    """
    order, users = _all_of(output)
    assigned: set[str] = set()
    found: list[Named] = []
    words: set[type] = set()
    for node in order:
        if isinstance(node, (Tokens, Indices, Length)):
            has_name = type(node) not in words
            words.add(type(node))
        else:
            has_name = not isinstance(node, Constant) and (bool(node.given_name) or _is_shared(node, users))
        if not has_name and node is not output:
            continue
        name = _unique(_name(node, users, is_output=node is output), assigned)
        assigned.add(name)
        found.append(Named(name, node))
    return found


def places_of(output: Expression) -> list[Place]:
    """Give every line that an output is written on, those of its selectors too."""
    order, users = _all_of(output)
    found = [*(node.place for node in order), *(place for uses in users.values() for _, place in uses)]
    return [place for place in dict.fromkeys(found) if place.is_authored]


Users = dict[int, list[tuple[Expression, Place]]]
"""For each expression, by its id, the expressions that use it, and the lines on which they do."""


def _all_of(output: Expression) -> tuple[list[Expression], Users]:
    """Give all expressions, each after those it is computed from, and who uses each."""
    order: list[Expression] = []
    users: Users = {}
    seen: set[int] = set()
    waiting: list[tuple[Expression, bool]] = [(output, False)]
    while waiting:
        node, is_done = waiting.pop()
        if is_done:
            order.append(node)
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        waiting.append((node, True))
        used = list(_used_by(node))
        for part, place in used:
            users.setdefault(id(part), []).append((node, place))
        waiting += [(part, False) for part, _ in reversed(used)]
    return order, users


def _used_by(node: Expression) -> Iterator[tuple[Expression, Place]]:
    match node:
        case Map():
            yield from ((part, node.place) for part in node.arguments)
        case Width():
            yield from _selected_by(node.selector)
        case Aggregate():
            yield from _selected_by(node.selector)
            yield node.values, node.place
            if node.score is not None:
                yield node.score, node.place


def _selected_by(selector: Selector) -> Iterator[tuple[Expression, Place]]:
    match selector:
        case Select():
            yield selector.keys, selector.place
            yield selector.queries, selector.place
        case And() | Or():
            yield from _selected_by(selector.left)
            yield from _selected_by(selector.right)
        case Not():
            yield from _selected_by(selector.of)


def _is_shared(node: Expression, users: Users) -> bool:
    return any(place != node.place for _, place in users.get(id(node), ()))


def _name(node: Expression, users: Users, *, is_output: bool) -> str:
    if node.given_name:
        return node.given_name
    if node.place.assigned and not _is_part_of_its_line(node, users):
        return node.place.assigned
    return "output" if is_output else node.symbol


def _is_part_of_its_line(node: Expression, users: Users) -> bool:
    """Whether another expression of the same line is computed from it, not at once but by way of another line.

    So it is with an argument of a function that a line calls, and not with a loop that builds upon its own last turn.
    """
    waiting = [user for user, place in users.get(id(node), ()) if place != node.place]
    seen: set[int] = set()
    while waiting:
        user = waiting.pop()
        if user.place == node.place:
            return True
        if id(user) not in seen:
            seen.add(id(user))
            waiting += [above for above, _ in users.get(id(user), ())]
    return False


def _unique(name: str, taken: set[str]) -> str:
    number, unique = 2, name
    while unique in taken:
        unique = f"{name} {number}"
        number += 1
    return unique
