"""Random programs, each with a domain: every word of the language, in every combination that has a meaning, and some
that have none. What is drawn comes from one function that picks, so hypothesis or a seed can stand behind it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from headstock import programs as p

Pick = Callable[[Sequence[Any]], Any]
"""Gives one of several."""

VOCABULARIES: list[list[Any]] = [
    ["a"],
    ["a", "b"],
    ["a", "b", "c"],
    ["x", "yy", "z", "w"],
    [1],
    [0, 1],
    [-2, 0, 3],
    [5, 2, 9, -7],
    ["a", 1],
]


@dataclass(frozen=True)
class Drawn:
    """A program and what it is to be compiled for."""

    output: p.Expression
    vocabulary: list[Any]
    max_length: int
    causal: bool
    written: str
    """The program as one could write it."""


def is_odd(value: Any) -> bool:
    return bool(value % 2)


def squared(value: Any) -> Any:
    return value * value


def zigzag(value: Any) -> Any:
    return (value * 7) % 5 - 2


def near(key: Any, query: Any) -> bool:
    return abs(key - query) <= 1


def divides(key: Any, query: Any) -> bool:
    return bool(key) and query % key == 0


def both_small(key: Any, query: Any) -> bool:
    return key + query < 3


def is_none(value: Any) -> bool:
    return value is None


def as_text(value: Any) -> str:
    return f"<{value}>"


def middle(a: Any, b: Any, c: Any) -> Any:
    return sorted((a, b, c))[1]


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}
Written = tuple[Any, str]
"""A node, and how it is written."""


class Writing:
    """One program being written: what is drawn first stands outermost."""

    def __init__(self, pick: Pick, vocabulary: list[Any], causal: bool) -> None:
        self.pick, self.vocabulary, self.causal = pick, vocabulary, causal
        self.counts = all(isinstance(token, int) for token in vocabulary)
        self.made: dict[str, list[Written]] = {"number": [], "flag": [], "anything": [], "selector": []}

    def again(self, kind: str, depth: int, write: Callable[[int], Written]) -> Written:
        """Write something new, or now and then take what stands in the program already."""
        if self.made[kind] and self.pick([False, False, False, True]):
            return self.pick(self.made[kind])  # type: ignore[no-any-return]
        found = write(depth)
        self.made[kind].append(found)
        return found

    def number(self, depth: int) -> Written:
        return self.again("number", depth, self._number)

    def flag(self, depth: int) -> Written:
        return self.again("flag", depth, self._flag)

    def anything(self, depth: int) -> Written:
        return self.again("anything", depth, self._anything)

    def selector(self, depth: int) -> Written:
        return self.again("selector", depth, self._selector)

    def _number(self, depth: int) -> Written:
        ways = ["indices", "constant", "indices"]
        ways += ["tokens", "tokens"] if self.counts else ["coded"]
        ways += [] if self.causal else ["length"]
        if depth > 0:
            ways = [ways[0], ways[-1], "width", "width", "op", "op", "where", "aggregate", "aggregate", "map"]
            ways += ["lookup", "over", "neg", "flag", "middle", "careless"]
        match self.pick(ways):
            case "indices":
                return p.indices, "p.indices"
            case "tokens":
                return p.tokens, "p.tokens"
            case "length":
                return p.length, "p.length"
            case "constant":
                value = self.pick([0, 1, 2, -1, 3, Fraction(1, 2), Fraction(-2, 3)])
                return p.constant(value), f"p.constant({value!r})"
            case "coded":
                table = {token: self.pick([0, 1, 2, -1]) for token in self.vocabulary}
                return p.lookup(table, p.tokens), f"p.lookup({table}, p.tokens)"
            case "lookup":
                table = {self.pick([-1, 0, 1, 2, 3]): self.pick([0, 1, 2, 5, -3]) for _ in range(3)}
                of, said = self.number(depth - 1)
                return p.lookup(table, of, default=-1), f"p.lookup({table}, {said}, default=-1)"
            case "width":
                of, said = self.selector(depth - 1)
                return p.width(of), f"p.width({said})"
            case "op":
                return self._binary(self.pick(["+", "-", "*"]), self.number, depth)
            case "over":
                of, said = self.number(depth - 1)
                sign, by = self.pick(["/", "//", "%"]), self.pick([2, 3, -2])
                return BINARY[sign](of, by), f"({said} {sign} {by})"
            case "neg":
                of, said = self.number(depth - 1)
                return (-of, f"(-{said})") if self.pick([True, False]) else (abs(of), f"abs({said})")
            case "where":
                return self._where(self.number, depth)
            case "flag":
                of, said = self.flag(depth - 1)
                return of + 0, f"({said} + 0)"
            case "map":
                function = self.pick([squared, zigzag])
                of, said = self.number(depth - 1)
                return p.map(function, of), f"p.map({function.__name__}, {said})"
            case "middle":
                (a, x), (b, y), (c, z) = (self.number(depth - 1) for _ in range(3))
                return p.map(middle, a, b, c), f"p.map(middle, {x}, {y}, {z})"
            case "careless":
                return self.anything(depth - 1) if self.pick([False] * 7 + [True]) else self.number(depth - 1)
            case _:
                return self._aggregate(self.number, depth, default=True)

    def _flag(self, depth: int) -> Written:
        if depth <= 0:
            (of, said), token = (p.tokens, "p.tokens"), self.pick(self.vocabulary)
            return of == token, f"({said} == {token!r})"
        match self.pick(["compare", "compare", "equal", "and", "not", "odd", "none"]):
            case "compare":
                return self._binary(self.pick(["<", "<=", ">", ">=", "=="]), self.number, depth)
            case "equal":
                return self._binary(self.pick(["==", "!="]), self.anything, depth)
            case "and":
                return self._binary(self.pick(["&", "|"]), self.flag, depth)
            case "not":
                of, said = self.flag(depth - 1)
                return ~of, f"(~{said})"
            case "odd":
                of, said = self.number(depth - 1)
                return p.map(is_odd, of), f"p.map(is_odd, {said})"
            case _:
                of, said = self.anything(depth - 1)
                return p.map(is_none, of), f"p.map(is_none, {said})"

    def _anything(self, depth: int) -> Written:
        ways = ["tokens", "tokens", "number", "flag"]
        ways += ["aggregate", "aggregate", "best", "where", "text"] if depth > 0 else []
        match self.pick(ways):
            case "tokens":
                return p.tokens, "p.tokens"
            case "number":
                return self.number(depth - 1)
            case "flag":
                return self.flag(depth - 1)
            case "where":
                return self._where(self.anything, depth)
            case "text":
                of, said = self.anything(depth - 1)
                return p.map(as_text, of), f"p.map(as_text, {said})"
            case "best":
                return self._best(self.anything, depth, default=self.pick([True, False]))
            case _:
                return self._aggregate(self.number, depth, default=False)

    def _binary(self, sign: str, side: Callable[[int], Written], depth: int) -> Written:
        (a, x), (b, y) = side(depth - 1), side(depth - 1)
        return BINARY[sign](a, b), f"({x} {sign} {y})"

    def _where(self, side: Callable[[int], Written], depth: int) -> Written:
        (condition, x), (then, y), (otherwise, z) = self.flag(depth - 1), side(depth - 1), side(depth - 1)
        return p.where(condition, then, otherwise), f"p.where({x}, {y}, {z})"

    def _aggregate(self, side: Callable[[int], Written], depth: int, *, default: bool) -> Written:
        by = self.pick(["mean", "sum", "max", "min", "best"])
        if by == "best":
            return self._best(side, depth, default=default)
        (selector, x), (values, y) = self.selector(depth - 1), side(depth - 1)
        if default:
            value = self.pick([0, 1, -1, Fraction(1, 2)])
            said = f"p.aggregate({x}, {y}, by={by!r}, default={value!r})"
            return p.aggregate(selector, values, by=by, default=value), said
        return p.aggregate(selector, values, by=by), f"p.aggregate({x}, {y}, by={by!r})"

    def _best(self, side: Callable[[int], Written], depth: int, *, default: bool) -> Written:
        (selector, x), (values, y) = self.selector(depth - 1), side(depth - 1)
        ties = self.pick(["first", "last"])
        score, z = self.number(depth - 1) if self.pick([True, False]) else (None, "None")
        rest = f"by='best', score={z}, ties={ties!r}"
        if default:
            value = self.pick([0, 1, -1])
            found = p.aggregate(selector, values, by="best", score=score, ties=ties, default=value)
            return found, f"p.aggregate({x}, {y}, {rest}, default={value})"
        return p.aggregate(selector, values, by="best", score=score, ties=ties), f"p.aggregate({x}, {y}, {rest})"

    def _selector(self, depth: int) -> Written:
        if self.causal and self.pick([True, True, False]):
            of, said = self._any_selector(depth)
            return of & p.up_to_here, f"({said} & p.up_to_here)"
        return self._any_selector(depth)

    def _any_selector(self, depth: int) -> Written:
        ways = ["equal", "order", "function", "offset", "before", "up_to_here", "everything", "constant"]
        ways += ["and", "or", "not", "equal", "order"] if depth > 0 else []
        match self.pick(ways):
            case "equal":
                (a, x), (b, y), sign = self.anything(depth - 1), self.anything(depth - 1), self.pick(["==", "!="])
                return p.select(a, b, sign), f"p.select({x}, {y}, {sign!r})"
            case "order":
                (a, x), (b, y) = self.number(depth - 1), self.number(depth - 1)
                sign = self.pick(["<", "<=", ">", ">=", "=="])
                return p.select(a, b, sign), f"p.select({x}, {y}, {sign!r})"
            case "function":
                (a, x), (b, y) = self.number(depth - 1), self.number(depth - 1)
                function = self.pick([near, divides, both_small])
                return p.select(a, b, function), f"p.select({x}, {y}, {function.__name__})"
            case "offset":
                by = self.pick([-1, -2, 0] if self.causal else [-1, -2, 0, 1, 2])
                return p.offset(by), f"p.offset({by})"
            case "constant":
                (a, x), token = (p.tokens, "p.tokens"), self.pick([*self.vocabulary, "nowhere"])
                return p.select(a, token), f"p.select({x}, {token!r})"
            case "and":
                (a, x), (b, y) = self.selector(depth - 1), self.selector(depth - 1)
                return a & b, f"({x} & {y})"
            case "or":
                (a, x), (b, y) = self.selector(depth - 1), self.selector(depth - 1)
                return a | b, f"({x} | {y})"
            case "not":
                a, x = self.selector(depth - 1)
                return ~a, f"(~{x})"
            case named:
                return getattr(p, named), f"p.{named}"


def drawn_by(pick: Pick, deepest: int = 3, longest: int = 6) -> Drawn:
    """Give a program and a domain; a vocabulary of four tokens goes with the shorter inputs."""
    vocabulary = pick(VOCABULARIES)
    causal = pick([False, True])
    max_length = min(pick(range(1, longest + 1)), longest + 1 - len(vocabulary) // 2)
    writing = Writing(pick, vocabulary, causal)
    output, written = getattr(writing, pick(["number", "anything"]))(pick(range(1, deepest + 1)))
    return Drawn(output, vocabulary, max_length, causal, written)


@st.composite
def programs(draw: Any, deepest: int = 3, longest: int = 6) -> Drawn:
    return drawn_by(lambda options: draw(st.sampled_from(options)), deepest, longest)
