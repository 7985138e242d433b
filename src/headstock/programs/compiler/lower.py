"""From expressions to heads and units: each expression gets a form, the cheapest that is known to be sure.

a token, a position, a function of one of them    a column of the embedding: nothing to compute
a linear function                                 no column of its own: read as a sum of others
any other function of one position                ReLU units on one number (functions.py)
what is selected                                  heads (attending.py)
"""

import itertools
from fractions import Fraction

from headstock.programs.compiler.attending import Attending
from headstock.programs.compiler.functions import Functions
from headstock.programs.compiler.infer import Values
from headstock.programs.compiler.plan import Plan
from headstock.programs.compiler.quantities import Affine, Form, Quantity, common_grid
from headstock.programs.compiler.represent import CodeBook
from headstock.programs.compiler.selection import always_picks
from headstock.programs.compiler.simplify import Simplifying
from headstock.programs.nodes import Aggregate, Conjoined, Constant, Expression, Indices, Length, Map, Tokens, Width
from headstock.programs.values import Value


class Lowering:
    """One program on its way: the forms found so far, and the plan that they make."""

    def __init__(self, simplify: Simplifying, output: Expression) -> None:
        self.simplify = simplify
        self.values: Values = simplify.values
        self.domain = simplify.values.domain
        self.book = CodeBook(self.domain)
        start = Quantity("start", 0, Fraction(0), Fraction(0), Fraction(1), grid=Fraction(1), of_start=True)
        self.plan = Plan(start if needs_start(output, self.values) else None)
        self.functions = Functions(self)
        self.attending = Attending(self)
        self.forms: dict[tuple[Expression, bool], Form | None] = {}
        """Each simple expression's form, and its exact one."""
        self._tables: dict[tuple[str, tuple[Fraction, ...]], Quantity] = {}

    def form(self, node: Expression) -> Form:
        """Give the form of an expression. Raises UserError where there is none that is sure."""
        found = self._remembered(node, exact=False)
        assert found is not None
        return found

    def exact_form(self, node: Expression) -> Form | None:
        """Give a form that is exactly the code of its value, which may take a layer more; None where there is none."""
        found = self.form(node)
        return found if found.is_exact else self._remembered(node, exact=True)

    def _remembered(self, node: Expression, *, exact: bool) -> Form | None:
        if (node, exact) not in self.forms:
            found = self._exact(node) if exact else self._form(node)
            self.forms[node, exact] = found
        return self.forms[node, exact]

    def _form(self, node: Expression) -> Form:
        values = self.values[node]
        if isinstance(node, Constant) or len(values) == 1:
            codes = self.book.codes(values)
            return self.as_form(Affine({}, codes[values[0]]), codes)
        match node:
            case Tokens():
                return self.table(node)
            case Indices():
                return self.as_form(Affine.of(self.index(range(self.domain.max_length), "index")), self.codes(node))
            case Length():
                return self.attending.length(node)
            case Map():
                found = self.functions.form(node, exact=False)
                assert found is not None  # or it has refused
                return found
            case Width():
                return self.functions.of_width(node)
            case Aggregate():
                return self.attending.aggregate(node, exact=False)
        raise AssertionError(node)

    def _exact(self, node: Expression) -> Form | None:
        found: Form | None = None
        match node:
            case Map():
                found = self.functions.form(node, exact=True)
            case Width():
                found = self.attending.snapped(node)
            case Aggregate(by="best"):
                found = self.attending.aggregate(node, exact=True)
        return found if found is not None and found.is_exact else None

    def codes(self, node: Expression) -> dict[Value, Fraction]:
        """Give the code of each value of an expression."""
        return self.book.codes(self.values[node])

    def as_form(self, affine: Affine, codes: dict[Value, Fraction]) -> Form:
        """Give a sum of quantities as the form that it is."""
        return Form(affine, codes, affine.error(self.domain))

    # Columns of the embedding

    def table(self, node: Expression) -> Form:
        """Give a function of the token alone, or of the position alone."""
        (source,) = self.values.sources(node)
        codes = self.codes(node)
        found = self.values.table(node)
        if isinstance(source, Tokens):
            held = [codes[found[token,]] for token in self.domain.vocabulary]
            return self.as_form(self._token(held, node), codes)
        held = [codes[found[index,]] for index in range(self.domain.max_length)]
        return self.as_form(self.in_terms_of_index(held, node.name), codes)

    def _token(self, held: list[Fraction], node: Expression) -> Affine:
        vocabulary = self.domain.vocabulary
        quantity = self._column("token", tuple(held), node.name)
        if quantity.of_token is None:
            quantity.of_token = dict(zip(vocabulary, held, strict=True))
        return Affine.of(quantity)

    def in_terms_of_index(self, held: list[Fraction], name: str) -> Affine:
        """Give a number for each position: from the index itself where that will do, else a column of its own."""
        steps = {b - a for a, b in itertools.pairwise(held)}
        if len(steps) <= 1:  # on a line: the index itself will do
            step = steps.pop() if steps else Fraction(0)
            plain = self.index(range(self.domain.max_length), "index")
            return Affine.of(plain).times(step).shifted(held[0])
        return Affine.of(self.index(held, name))

    def index(self, held: "range | list[Fraction]", name: str) -> Quantity:
        """Give the column that holds such a number at each position, and 0 at the start token."""
        numbers = tuple(map(Fraction, held))
        quantity = self._column("index", numbers, name)
        quantity.of_index = numbers
        return quantity

    def place(self) -> Affine:
        """Give the number of each place, the start token's being 0."""
        numbers = [Fraction(index + 1) for index in range(self.domain.max_length)]
        return Affine.of(self.index(numbers, "place"))

    def _column(self, kind: str, held: tuple[Fraction, ...], name: str) -> Quantity:
        if (kind, held) not in self._tables:
            grid = common_grid(list(held))
            largest = max(map(abs, held))
            exact = grid is not None and grid >= self.domain.smallest and largest / grid < self.domain.whole
            error = 0.0 if exact else self.domain.rounding * float(largest) + self.domain.smallest
            self._tables[kind, held] = Quantity(
                name, 0, min(held), max(held), error=error, grid=grid if exact else None
            )
        return self._tables[kind, held]

    def squares(self, node: Expression, shift: Fraction, *, exact: bool) -> Form | None:
        """Give (code − shift)² of an expression, or None where it cannot be had so."""
        coded = self.functions.square(node, shift)
        return self.exact_form(coded) if exact else self.form(coded)


def needs_start(output: Expression, values: Values) -> bool:
    """Whether something is counted, or may select nothing: then a token is needed that is always there."""
    seen: set[int] = set()
    waiting = [output]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Width):
            return True
        if isinstance(node, Aggregate):
            assert isinstance(node.selector, Conjoined)
            if not always_picks(node.selector.leaves, values):
                return True
        waiting += node.inputs
    return False
