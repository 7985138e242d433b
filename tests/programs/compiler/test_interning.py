from typing import Any

from headstock import programs as p
from headstock.programs.compiler.interning import Interned, function_key, interned


def one_node(*expressions: Any) -> bool:
    known, done = Interned(), {}  # type: ignore[var-annotated]
    return len({id(interned(expression, known, done)) for expression in expressions}) == 1


def plus(k: int) -> p.Expression:
    return p.map(lambda at: at + k, p.indices)


def plus_by_keyword(k: int) -> p.Expression:
    return p.map(lambda at, *, by=k: at + by, p.indices)


def test_the_same_said_twice_is_one_node() -> None:
    assert one_node(p.indices + 1, p.indices + 1)
    assert one_node(p.width(p.select(p.tokens, p.tokens)), p.width(p.select(p.tokens, p.tokens, "==")))
    assert one_node(plus(2), plus(2))
    either, other = p.select(p.tokens, "a"), p.select(p.tokens, "b")
    assert one_node(p.width(either & other), p.width(other & either))


def test_what_differs_in_anything_stays_two_nodes() -> None:
    assert not one_node(p.indices + 1, p.indices + 2)
    assert not one_node(p.indices - 1, 1 - p.indices)
    assert not one_node(plus(1), plus(2))
    assert not one_node(plus_by_keyword(1), plus_by_keyword(2))
    assert not one_node(p.constant(1), p.constant(True))
    by = {"by": "best", "ties": "first"}
    assert not one_node(*(p.aggregate(p.before, p.indices, **{**by, "ties": t}) for t in ("first", "last")))  # type: ignore[arg-type]
    assert not one_node(*(p.aggregate(p.before, p.indices, default=d) for d in (0, False, None)))


def test_a_function_is_told_by_what_it_finds_where_it_was_written() -> None:
    found = []
    for k in (1, 2):
        held: dict[str, Any] = {"K": k}
        exec("def f(at): return at + K", held)
        found.append(held["f"])
    assert function_key(found[0]) != function_key(found[1])
    assert function_key(found[0]) == function_key(found[0])


def test_a_later_name_is_given_to_a_node_that_had_none() -> None:
    known, done = Interned(), {}  # type: ignore[var-annotated]
    node = interned(p.indices + 1, known, done)
    interned((p.indices + 1).named("place"), known, done)
    assert node.name == "place"
