"""What is selected, as heads: counted, averaged, or one key picked, by scores that leave no doubt.

Of the ways to score a selector the first that is sure is taken: see scoring.py.
"""

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from headstock.errors import UserError
from headstock.programs.compiler.heads import Dimension, Kind, PlannedHead, score_error
from headstock.programs.compiler.plan import Decision
from headstock.programs.compiler.quantities import Affine, Form, Quantity, common_grid, power_of_two_from
from headstock.programs.compiler.scoring import Scoring
from headstock.programs.compiler.selection import always_picks, picks_one_at_most
from headstock.programs.nodes import Aggregate, Conjoined, Expression, Indices, Width
from headstock.programs.values import Value, is_number

if TYPE_CHECKING:
    from headstock.programs.compiler.lower import Lowering


class Attending:
    """Heads, for one program."""

    def __init__(self, lowering: "Lowering") -> None:
        self._of = lowering
        self._scoring = Scoring(lowering)
        self._heads: dict[tuple[Any, ...], PlannedHead] = {}
        self._counted: dict[Width, Quantity] = {}

    # Counting

    def counted(self, node: Width) -> Quantity:
        """Give the weight of the start token, 1/(1 + selected)."""
        if node not in self._counted:
            domain, start = self._of.domain, self._of.plan.start
            assert start is not None
            assert isinstance(node.selector, Conjoined)
            dimensions = self._strict(node.selector, Fraction(domain.gap), node)
            head = self._head("count", self._guarded(dimensions), [Affine.of(start)], node)
            relative = 8 * domain.rounding + 2.1 * head.score_error
            least = Fraction(1, domain.max_length + 1)
            raw = Quantity(
                f"{node.name} weight", head.time, least, Fraction(1), Fraction(1), 0.0, relative, place=node.place
            )
            head.carried.append((Affine.of(start), raw))
            self._counted[node] = raw
        return self._counted[node]

    def snapped(self, node: Width) -> Form | None:
        """Give a count without noise: the number of the place that stands at it, the start token's being 0.

        There always is one: of n tokens no more than n are counted, and in causal mode of those seen no more than seen.
        """
        form = self._of.form(node)
        place = self._of.place()
        squared = self._of.index(
            [Fraction((index + 1) ** 2) for index in range(self._of.domain.max_length)], "place squared"
        )
        gap = Fraction(self._of.domain.gap)
        dimensions = self._guarded(
            [Dimension(form.affine.times(2 * gap), place), Dimension(Affine({}, -gap), Affine.of(squared))]
        )
        # Of two places one apart the noise of the query moves the scores by 2·gap·noise against each other.
        rounding = score_error(dimensions, self._of.domain, rounding_alone=True)
        slack = self._slack(gap * (1 - 2 * Fraction(form.error)), rounding)
        if slack < 1:
            return None
        return self._carried(node, "pick", dimensions, place, dict(form.codes), Fraction(0), slack, exactly=True)

    # The length

    def length(self, node: Expression) -> Form:
        """Give the length: what the last position says."""
        return self.of_length(node, node)

    def of_length(self, node: Expression, length: Expression) -> Form:
        """Give a function of the length alone: the last position carries what it would be, were it the last."""
        domain, codes = self._of.domain, self._of.codes(node)
        found = self._of.values.table(node)
        held = [codes[found[index + 1,]] for index in range(domain.max_length)]
        values = self._of.in_terms_of_index(held, node.name)
        last = self._of.form(self._of.simplify(Indices())).affine.times(domain.gap)
        dimensions = self._guarded(
            [Dimension(Affine({}, Fraction(1)), last.vanishing(self._of.plan.start)), *self._level()]
        )
        slack = self._slack(Fraction(domain.gap), score_error(dimensions, domain))
        if slack < 1:
            raise UserError(self._unsure(node))
        return self._carried(node, "pick", dimensions, values, codes, values.start, slack)

    # Aggregates

    def aggregate(self, node: Aggregate, *, exact: bool) -> Form:
        """Give a mean, or the value of the best key."""
        assert isinstance(node.selector, Conjoined)
        values = self._of.exact_form(node.values) if exact else self._of.form(node.values)
        if values is None:
            values = self._of.form(node.values)
        codes = dict(values.codes)
        for value in self._of.values[node]:
            if value not in codes and node.by == "best":
                number = is_number(value) and all(map(is_number, codes))
                codes[value] = Fraction(value) if number else Fraction(int(max(codes.values())) + 1)
        if node.by == "mean":
            return self._mean(node, values)
        gap = Fraction(self._of.domain.gap)
        for ranked, total in self._rankings(node):
            for dimensions in self._scoring.tolerant(node.selector, power_of_two_from(total + 2 * gap), node):
                all_ = self._guarded([*dimensions, *ranked, *self._level()])
                slack = self._slack(gap, score_error(all_, self._of.domain))
                if slack >= 1:
                    default = codes[node.default] if self._may_be_empty(node) else values.affine.start
                    return self._carried(node, "pick", all_, values.affine, codes, default, slack)
        raise UserError(self._unsure(node))

    def _mean(self, node: Aggregate, values: Form) -> Form:
        domain = self._of.domain
        assert isinstance(node.selector, Conjoined)
        codes = self._of.codes(node)
        dimensions = self._strict(node.selector, 2 * Fraction(domain.gap), node)
        all_ = self._guarded([*dimensions, *self._level()])
        default = codes[node.default] if self._may_be_empty(node) else values.affine.start
        return self._carried(node, "mean", all_, values.affine, codes, default, self._slack(Fraction(domain.gap), 0.0))

    def _may_be_empty(self, node: Aggregate) -> bool:
        assert isinstance(node.selector, Conjoined)
        return not always_picks(node.selector.leaves, self._of.values)

    def _rankings(self, node: Aggregate) -> list[tuple[list[Dimension], Fraction]]:
        """Give ways to score the keys among those selected, each with the largest score; the least is 0.

        Two keys of different rank lie a gap apart or more, and of the same rank as far as their positions.
        """
        assert isinstance(node.selector, Conjoined)
        values, domain = self._of.values, self._of.domain
        if picks_one_at_most(node.selector.leaves, values):
            return [([], Fraction(0))]
        gap, last = Fraction(domain.gap), domain.max_length - 1
        index = self._of.form(self._of.simplify(Indices())).affine
        by_position = index if node.ties == "last" else index.times(-1).shifted(last)
        if node.score is None:
            return [self._ranked(by_position.times(gap), gap * last)]
        found = []
        forms = [self._of.form(node.score), self._of.exact_form(node.score)]
        sources = values.sources(node.score)
        tells_apart = len(sources) == 1 and isinstance(sources[0], Indices) and len(values[node.score]) == last + 1
        for form in dict.fromkeys(form for form in forms if form is not None):
            numbers = sorted(form.codes.values())
            finest = min((b - a for a, b in itertools.pairwise(numbers)), default=Fraction(1))
            each = Fraction(1 if tells_apart else last + 1) / finest
            rank = form.affine.shifted(-numbers[0]).times(each)
            total = (numbers[-1] - numbers[0]) * each
            if not tells_apart:
                rank, total = rank.plus(by_position), total + last
            found.append(self._ranked(rank.times(gap), total * gap))
        return found

    def _ranked(self, rank: Affine, total: Fraction) -> tuple[list[Dimension], Fraction]:
        return [Dimension(Affine({}, Fraction(1)), rank.vanishing(self._of.plan.start))], total

    # Making heads

    def _strict(self, selector: Conjoined, penalty: Fraction, node: Expression) -> list[Dimension]:
        dimensions = self._scoring.strict(selector, penalty, node)
        if dimensions is None:
            raise UserError(self._unsure(node))
        return dimensions

    def _level(self) -> list[Dimension]:
        """Let the start token lie a gap below what is selected and a gap above what is not."""
        start = self._of.plan.start
        if start is None:
            return []
        return [Dimension(Affine({}, Fraction(-self._of.domain.gap)), Affine.of(start))]

    def _guarded(self, dimensions: list[Dimension]) -> tuple[Dimension, ...]:
        """Let the start token see itself alone, so that what it holds is known; in causal mode it sees no other."""
        start, gap = self._of.plan.start, Fraction(self._of.domain.gap)
        if start is None or self._of.domain.causal:
            return tuple(dimensions)
        kept = [replace(d, query=d.query.vanishing(start)) for d in dimensions]
        alone = Dimension(Affine({start: -2 * gap}), Affine({start: Fraction(-1)}, Fraction(1)))
        return (*kept, alone)

    def _slack(self, gap: Fraction, error: float) -> float:
        return (float(gap) - 2 * error) / self._of.domain.needed_gap

    def _head(self, kind: Kind, dimensions: tuple[Dimension, ...], read: list[Affine], node: Expression) -> PlannedHead:
        """Give the head that scores so, one for all that ask for it at the same time."""
        time = max([part.time for d in dimensions for part in (d.query, d.key)] + [part.time for part in read] + [0])
        time += 1 + time % 2
        key = time, kind, tuple((_key(d.query), _key(d.key)) for d in dimensions)
        if key not in self._heads:
            error = score_error(dimensions, self._of.domain)
            self._heads[key] = PlannedHead(node.name, kind, time, dimensions, node.place, error, 1.0)
            self._of.plan.heads.append(self._heads[key])
        return self._heads[key]

    def _carried(
        self,
        node: Expression,
        kind: Kind,
        dimensions: tuple[Dimension, ...],
        read: Affine,
        codes: dict[Value, Fraction],
        at_start: Fraction,
        slack: float,
        *,
        exactly: bool = False,
    ) -> Form:
        domain, start = self._of.domain, self._of.plan.start
        if start is not None and at_start != read.start:
            read = read.plus(Affine({start: at_start - read.start}))
        head = self._head(kind, dimensions, [read], node)
        head.slack = slack
        low, high = min(codes.values()), max(codes.values())
        error, grid = read.error(domain), read.grid
        if kind == "mean":
            size = float(max(abs(low), abs(high), abs(at_start)))
            error += ((domain.max_length + 8) * domain.rounding + 2.1 * head.score_error) * size
            error += (domain.max_length + 8) * domain.smallest
        if kind == "mean" or error:
            grid = None
        else:
            grid = common_grid([part for part in (grid, *codes.values(), at_start) if part is not None])
        quantity = Quantity(node.name, head.time, low, high, at_start, error, grid=grid, place=node.place)
        head.carried.append((read, quantity))
        self._of.plan.decisions.append(Decision(node.said, f"a head, {kind}", error, slack))
        return self._of.as_form(Affine.of(quantity), codes)

    def _unsure(self, node: Expression) -> str:
        return (
            f"{node.said} cannot be certified in {self._of.domain.dtype}: its selected keys cannot be told from the "
            f"others with certainty; declare a smaller max_length or vocabulary{self._of.domain.wider}, or "
            f"compare values that take fewer different numbers."
        )


def _key(affine: Affine) -> tuple[Any, ...]:
    return tuple(sorted((id(part), times) for part, times in affine.terms.items())), affine.constant
