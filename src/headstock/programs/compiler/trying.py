"""Trials: a model beside its program on sequences, in every number of its residual."""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from typing import TYPE_CHECKING

from headstock.errors import UserError
from headstock.programs.compiler.certificate import Certificate, every_sequence
from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.selection import leaves_of
from headstock.programs.interpreter import Reading
from headstock.programs.nodes import Aggregate, Expression, Map, Select, Selector, Width
from headstock.programs.values import Value, applied, shown

if TYPE_CHECKING:
    from headstock.programs.compiled import Compiled

SECONDS = 0.5
"""What comparing the whole domain may take, where nobody asks for it."""
TOGETHER = 256
"""Sequences that a model reads at a time."""
TIMES = 16
"""How often a function is asked the same when a model and its program differ."""
MOST_SHOWN = 30
"""Tokens that a sentence shows."""
MOST_SEQUENCES = 2_000_000
"""Sequences that a domain may have to be compared as a whole."""


def certified(compiled: "Compiled", *, exhaustively: bool = False) -> Certificate:
    """Compare a model with its program, and give the certificate.

    exhaustively: on the whole domain, however long that takes; else where it takes less than half a second.
    Raises UserError where they differ, which no bound foresaw: then the model is not given out.
    """
    domain = compiled.domain
    if exhaustively and domain.sequences > MOST_SEQUENCES:
        raise UserError(
            f"the domain has {_about(domain.sequences)} sequences, more than the {MOST_SEQUENCES:,} that can be gone "
            f"through: declare a smaller max_length or vocabulary, or leave the exhaustive proof out."
        )
    begun = time.perf_counter()
    drawn = [Reading(sequence, causal=domain.causal) for sequence in drawn_sequences(domain)]
    worst = compare_numbers(compiled, drawn)
    compare_outputs(compiled, drawn)
    each = (time.perf_counter() - begun) / len(drawn)
    whole = exhaustively or domain.sequences < 2 * SECONDS / each
    if whole:
        compare_outputs(compiled, (Reading(sequence, causal=domain.causal) for sequence in every_sequence(domain)))
    count = domain.sequences if whole else len(drawn)
    decisions = tuple(compiled.built.plan.decisions)
    return Certificate(compiled.program.name, domain, decisions, len(drawn), whole, count, worst)


def drawn_sequences(domain: Domain) -> list[tuple[Value, ...]]:
    """Give sequences to try, the same every time: a longest, a single token, one token repeated, others at random."""
    draws = random.Random(0)
    count = min(128, max(8, 20_000 // domain.max_length**2))
    longest = domain.max_length
    tokens = domain.vocabulary
    lengths = [draws.randint(1, longest) for _ in range(count)]
    special = [tuple(draws.choice(tokens) for _ in range(longest)), (tokens[-1],), (tokens[0],) * longest]
    return [*special, *(tuple(draws.choice(tokens) for _ in range(length)) for length in lengths)]


def compare_outputs(compiled: "Compiled", readings: Iterable[Reading]) -> None:
    """Raise UserError for the first sequence on which a model and its program give different values."""
    for together in _batches(readings):
        given = compiled.batch([reading.tokens for reading in together])
        for reading, values in zip(together, given, strict=True):
            right = reading[compiled.program.output]
            if values != right:
                _refuse_unsteady(compiled.program.output, reading)
                raise UserError(_differs(compiled, reading.tokens, values, right))


def _batches(readings: Iterable[Reading]) -> Iterator[list[Reading]]:
    waiting = iter(readings)
    while together := list(islice(waiting, TOGETHER)):
        yield together


def compare_numbers(compiled: "Compiled", readings: list[Reading]) -> float:
    """Give the largest error of any code in the residual.

    Raises UserError where one is further from the program's value than its bound allows.
    """
    worst = 0.0
    for found in compiled.numbers([reading.tokens for reading in readings]):
        for reading, held in zip(readings, found.held, strict=True):
            for place, (value, number) in enumerate(zip(reading[found.node], held.tolist(), strict=True)):
                error = abs(number - float(found.form.codes[value]))
                if not error <= found.form.error:
                    _refuse_unsteady(compiled.program.output, reading)
                    raise UserError(
                        f"{compiled.program.name} is not certified: {found.node.said} is off by {error:.1e} at "
                        f"position {place} of {_text(reading.tokens)}, and its bound is {found.form.error:.1e}; this "
                        f"is a fault of the compiler, so please report it."
                    )
                worst = max(worst, error)
    return worst


def _refuse_unsteady(output: Expression, reading: Reading) -> None:
    """Raise UserError for a function of the program that gives another value each time, such as chance or a count."""
    waiting: list[Expression | Selector] = [output]
    seen: list[Expression | Selector] = []
    while waiting:
        node = waiting.pop()
        if any(node is known for known in seen):
            continue
        seen.append(node)
        waiting += node.inputs
        waiting += [node.selector, *leaves_of(node.selector)] if isinstance(node, (Aggregate, Width)) else []
    for node in seen:
        if isinstance(node, Map):
            given = set(zip(*(reading[part] for part in node.arguments), strict=True))
            function = node.function
        elif isinstance(node, Select):
            given = set(product(reading[node.keys], reading[node.queries]))
            function = node.predicate
        else:
            continue
        for values in given:
            if len({applied(function, values, node) for _ in range(TIMES)}) > 1:
                raise UserError(
                    f"{node.said} gives one value of {', '.join(map(repr, values))} now and another then: let it "
                    f"depend on what it is given alone."
                )


def _differs(compiled: "Compiled", sequence: Sequence[Value], given: list[Value], right: list[Value]) -> str:
    return (
        f"{compiled.program.name} is not certified: of {_text(sequence)} the model makes {_text(given)} and the "
        f"program {_text(right)}; this is a fault of the compiler, so please report it."
    )


def _about(count: int) -> str:
    return f"{count:,}" if count < 10**9 else f"about 10^{len(str(count)) - 1}"


def _text(values: Sequence[Value]) -> str:
    first = " ".join(map(shown, values[:MOST_SHOWN]))
    return first if len(values) <= MOST_SHOWN else f"{first} … ({len(values)} tokens)"
