"""What a program is made of: expressions, a value at every position, and selectors, pairs of a key and a query.

A node is a value that never changes and knows the line it was written on. Two nodes are equal only if they are one;
`==` and its kin are part of the language and make new nodes. Knows nothing of evaluation.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, NoReturn

from headstock.errors import UserError
from headstock.programs.not_yet_a_value import NotYetAValue
from headstock.programs.places import Place, here
from headstock.programs.values import Value, canonical

By = Literal["mean", "sum", "max", "min", "best"]
Ties = Literal["first", "last"]


def divide(a: Any, b: Any) -> Fraction:
    """Divide exactly."""
    return Fraction(a) / Fraction(b)


def power(a: Any, b: Any) -> Any:
    """Raise to a power, exactly: 2 to the −1 is a half."""
    return Fraction(a) ** b if isinstance(b, int) and b < 0 else a**b


def choose(condition: Any, then: Any, otherwise: Any) -> Any:
    """Choose: what `where` does at each position."""
    return then if condition else otherwise


def both(a: Any, b: Any) -> bool:
    """Both."""
    return bool(a) and bool(b)


def either(a: Any, b: Any) -> bool:
    """Either."""
    return bool(a) or bool(b)


def negated(a: Any) -> bool:
    """Not."""
    return not a


class Expression(NotYetAValue):
    """A sequence that a program computes: one value a position."""

    place: Place
    given_name: str

    @property
    def inputs(self) -> tuple["Expression", ...]:
        """The expressions that it is computed from, at the same position or at others."""
        return ()

    @property
    def symbol(self) -> str:
        """What it does, in a word."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The name it was given, else that of the variable its line assigns, else what it does."""
        return self.given_name or self.symbol

    @property
    def said(self) -> str:
        """How a sentence calls it: `hist (histogram.py:12)`."""
        return f"{self.given_name or self.place.assigned or self.symbol} ({self.place})"

    def named(self, name: str) -> "Expression":
        """Give the same expression under a name, which heads, columns and tables then bear."""
        from copy import copy

        same = copy(self)
        object.__setattr__(same, "given_name", name)
        return same

    def map(self, function: Callable[[Any], Any]) -> "Expression":
        """Apply a function to each value."""
        if not callable(function):
            raise UserError(f"map() needs a function, not {function!r} ({here()}).")
        return Map(function, (self,))

    def __add__(self, other: Any) -> "Expression":
        return _map("+", operator.add, self, other)

    def __radd__(self, other: Any) -> "Expression":
        return _map("+", operator.add, other, self)

    def __sub__(self, other: Any) -> "Expression":
        return _map("-", operator.sub, self, other)

    def __rsub__(self, other: Any) -> "Expression":
        return _map("-", operator.sub, other, self)

    def __mul__(self, other: Any) -> "Expression":
        return _map("*", operator.mul, self, other)

    def __rmul__(self, other: Any) -> "Expression":
        return _map("*", operator.mul, other, self)

    def __truediv__(self, other: Any) -> "Expression":
        return _map("/", divide, self, other)

    def __rtruediv__(self, other: Any) -> "Expression":
        return _map("/", divide, other, self)

    def __floordiv__(self, other: Any) -> "Expression":
        return _map("//", operator.floordiv, self, other)

    def __rfloordiv__(self, other: Any) -> "Expression":
        return _map("//", operator.floordiv, other, self)

    def __mod__(self, other: Any) -> "Expression":
        return _map("%", operator.mod, self, other)

    def __rmod__(self, other: Any) -> "Expression":
        return _map("%", operator.mod, other, self)

    def __pow__(self, other: Any) -> "Expression":
        return _map("**", power, self, other)

    def __rpow__(self, other: Any) -> "Expression":
        return _map("**", power, other, self)

    def __neg__(self) -> "Expression":
        return _map("-", operator.neg, self)

    def __abs__(self) -> "Expression":
        return _map("abs", operator.abs, self)

    def __eq__(self, other: object) -> "Expression":  # type: ignore[override]
        return _map("==", operator.eq, self, other)

    def __ne__(self, other: object) -> "Expression":  # type: ignore[override]
        return _map("!=", operator.ne, self, other)

    def __lt__(self, other: Any) -> "Expression":
        return _map("<", operator.lt, self, other)

    def __le__(self, other: Any) -> "Expression":
        return _map("<=", operator.le, self, other)

    def __gt__(self, other: Any) -> "Expression":
        return _map(">", operator.gt, self, other)

    def __ge__(self, other: Any) -> "Expression":
        return _map(">=", operator.ge, self, other)

    def __and__(self, other: Any) -> "Expression":
        return _map("&", both, self, other)

    def __rand__(self, other: Any) -> "Expression":
        return _map("&", both, other, self)

    def __or__(self, other: Any) -> "Expression":
        return _map("|", either, self, other)

    def __ror__(self, other: Any) -> "Expression":
        return _map("|", either, other, self)

    def __invert__(self) -> "Expression":
        return _map("~", negated, self)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise UserError(
            f"{self.said} has a value at every position and no truth of its own: in place of `if`, `and`, `or`, `not` "
            f"write where(), &, |, ~ ({here()})."
        )

    def __xor__(self, other: object) -> NoReturn:
        self._refuse("knows no ^", "of flags that are True or False one alone is x != y; for a power write **")

    __rxor__ = __xor__


@dataclass(frozen=True, eq=False)
class Tokens(Expression):
    """The token that stands at each position."""

    place: Place = field(default_factory=here)
    given_name: str = "tokens"
    symbol = "tokens"


@dataclass(frozen=True, eq=False)
class Indices(Expression):
    """The number of each position, from 0."""

    place: Place = field(default_factory=here)
    given_name: str = "indices"
    symbol = "indices"


@dataclass(frozen=True, eq=False)
class Length(Expression):
    """How many tokens there are: the same at every position."""

    place: Place = field(default_factory=here)
    given_name: str = "length"
    symbol = "length"


@dataclass(frozen=True, eq=False)
class Constant(Expression):
    """One value everywhere."""

    value: Value
    place: Place = field(default_factory=here)
    given_name: str = ""

    @property
    def symbol(self) -> str:
        """The value itself."""
        return repr(self.value)


@dataclass(frozen=True, eq=False)
class Map(Expression):
    """A function of the values at one position."""

    function: Callable[..., Any]
    arguments: tuple[Expression, ...]
    written: str = ""
    place: Place = field(default_factory=here)
    given_name: str = ""

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """Its arguments."""
        return self.arguments

    @property
    def symbol(self) -> str:
        """The operator, or the function's name."""
        return self.written or getattr(self.function, "__name__", "map").replace("<lambda>", "map")


@dataclass(frozen=True, eq=False)
class Aggregate(Expression):
    """What the selected keys' values are together."""

    selector: "Selector"
    values: Expression
    by: By
    default: Value = None
    score: Expression | None = None
    ties: Ties = "first"
    place: Place = field(default_factory=here)
    given_name: str = ""

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """What its selector reads, its values, and the score of `best`."""
        return (*self.selector.inputs, self.values, *(() if self.score is None else (self.score,)))

    @property
    def symbol(self) -> str:
        """How it puts values together."""
        return self.by


@dataclass(frozen=True, eq=False)
class Width(Expression):
    """How many keys are selected."""

    selector: "Selector"
    place: Place = field(default_factory=here)
    given_name: str = ""
    symbol = "width"

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """What its selector reads."""
        return self.selector.inputs


class Selector(NotYetAValue):
    """For every pair of a key and a query: whether the query selects the key."""

    place: Place

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """The expressions that it compares."""
        raise NotImplementedError

    @property
    def said(self) -> str:
        """How a sentence calls it."""
        return f"{self.place.assigned or 'a selector'} ({self.place})"

    def __and__(self, other: "Selector") -> "Selector":
        return And(self, _selector(other))

    def __or__(self, other: "Selector") -> "Selector":
        return Or(self, _selector(other))

    def __invert__(self) -> "Selector":
        return Not(self)

    def __bool__(self) -> bool:
        raise UserError(f"{self.said} has no truth of its own: put selectors together by &, | and ~ ({here()}).")

    def _refuse(self, why: str = "", instead: str = "") -> NoReturn:
        """Whatever Python asks of it, it is no sequence."""
        raise UserError(
            f"{self.said} is a selector and no sequence: give width() or aggregate() of it in its place ({here()})."
        )

    def _no_sequence(self, *others: object) -> NoReturn:
        self._refuse()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_sequence
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __abs__ = _no_sequence
    __lt__ = __le__ = __gt__ = __ge__ = __rand__ = __ror__ = __xor__ = __rxor__ = _no_sequence


@dataclass(frozen=True, eq=False)
class Select(Selector):
    """Whether predicate(key, query) holds of the two positions' values."""

    keys: Expression
    queries: Expression
    predicate: Callable[[Any, Any], Any]
    written: str = ""
    place: Place = field(default_factory=here)

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """Keys and queries."""
        return self.keys, self.queries


@dataclass(frozen=True, eq=False)
class And(Selector):
    """Both select."""

    left: Selector
    right: Selector
    place: Place = field(default_factory=here)

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """What the two compare."""
        return (*self.left.inputs, *self.right.inputs)


@dataclass(frozen=True, eq=False)
class Or(Selector):
    """Either selects."""

    left: Selector
    right: Selector
    place: Place = field(default_factory=here)

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """What the two compare."""
        return (*self.left.inputs, *self.right.inputs)


@dataclass(frozen=True, eq=False)
class Not(Selector):
    """The other does not select."""

    of: Selector
    place: Place = field(default_factory=here)

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """What the other compares."""
        return self.of.inputs


@dataclass(frozen=True, eq=False)
class Conjoined(Selector):
    """All of these comparisons select; of none, every key is selected. What the compiler makes of a selector."""

    leaves: tuple[Select, ...]
    place: Place

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """What they compare."""
        return tuple(part for leaf in self.leaves for part in leaf.inputs)


def too_deep(output: Expression) -> UserError:
    """Give the refusal of a program whose expressions are built one upon the other too many times."""
    return UserError(
        f"{output.said} is built from expressions one upon the other, more deeply than Python goes: write one function "
        f"of a value where a loop makes many, or raise sys.setrecursionlimit."
    )


def expression(value: Any) -> Expression:
    """Give an expression as it is, and any other value as a constant. Raises UserError for a value no program has."""
    if isinstance(value, Expression):
        return value
    place = here()
    if isinstance(value, Selector):
        raise UserError(
            f"a selector stands where a sequence is needed ({place}): give aggregate() or width() of it instead."
        )
    return Constant(canonical(value, f"a constant ({place})"), place)


def _selector(value: Any) -> Selector:
    if not isinstance(value, Selector):
        raise UserError(f"{value!r} is no selector ({here()}): put select() of two sequences in its place.")
    return value


def _map(symbol: str, function: Callable[..., Any], *arguments: Any) -> Expression:
    if any(isinstance(argument, Selector) for argument in arguments):
        raise UserError(f"{symbol!r} has a sequence on one side and a selector on the other ({here()}).")
    return Map(function, tuple(expression(argument) for argument in arguments), symbol)
