"""Rows to ask a program about: random sequences of its domain, or ones that it has something to say of.

Programs that add get sums, and programs that match brackets get brackets of which most can still be matched; all
others get tokens drawn evenly.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from headstock.errors import UserError
from headstock.programs.compiler.domain import Domain
from headstock.programs.interpreter import Reading
from headstock.programs.program import Program
from headstock.programs.values import Value
from headstock.tasks.drawing import draw

Row = tuple[Value, ...]
Purpose = tuple[str | int, ...]
Numbers = Iterator[int]
"""Drawn numbers, each large; a rule takes as many as it needs."""
Rule = Callable[[Domain, Numbers], Row]
MOST_NUMBERS = 4
"""Drawn numbers a token: more than any rule takes."""
LARGE = 2**62
SHORTEST_SUM = len("9+9=18.")
LEGAL = 16
"""One bracket of so many is drawn without a look at what it closes."""


def rows(program: Program, domain: Domain, count: int, *purpose: str | int) -> list[Row]:
    """Draw rows, decided by `purpose` alone. Raises UserError where the longest are too short for any."""
    each = MOST_NUMBERS * (domain.max_length + 2)
    drawn = draw(LARGE, count * each, program.name, *purpose).tolist()
    rule = _rule_of(program, domain)
    if rule is whole_sums:
        if domain.max_length < SHORTEST_SUM:
            raise UserError(
                f"{domain.max_length} tokens have no room for a sum and its answer, such as 9+9=18.: give a length of "
                f"{SHORTEST_SUM} or more."
            )
        domain = replace(domain, max_length=min(domain.max_length, program.max_length))  # no more digits than it takes
    return [rule(domain, iter(drawn[place * each : (place + 1) * each])) for place in range(count)]


def answers(program: Program, domain: Domain, row: Row) -> list[Value]:
    """Give the program's value at every position of a row that was drawn, None where there is nothing to be said.

    A whole sum is the program's own answer written out, so what it gives is the token that follows; all others are
    worked out.
    """
    if _rule_of(program, domain) is whole_sums:
        asked = row.index("=")
        return [None] * asked + [*row[asked + 1 :], None]
    return Reading(row, causal=domain.causal)[program.output]


def how_drawn(program: Program, domain: Domain) -> str:
    """Say in a sentence how rows are drawn."""
    said: dict[Rule, str] = {
        evenly: "Every token is drawn evenly from the vocabulary.",
        whole_sums: "Two numbers, each of 1 to as many digits as the program takes, every number of digits as often; "
        "with its answer each makes one row.",
        sums: "Two numbers with a plus between, which stands anywhere, every digit drawn evenly.",
        brackets: f"Brackets that open something or close what is open, but for one in {LEGAL} drawn evenly.",
    }
    return said[_rule_of(program, domain)]


def _rule_of(program: Program, domain: Domain) -> Rule:
    name = program.name.partition(",")[0]
    if name == "addition":
        return whole_sums
    if name in ("long-addition", "carries") and domain.max_length > 2:
        return sums
    if name in ("dyck", "shuffle-dyck"):
        return brackets
    return evenly


def evenly(domain: Domain, numbers: Numbers) -> Row:
    """Draw every token evenly."""
    return tuple(_one_of(domain.vocabulary, numbers) for _ in range(domain.max_length))


def whole_sums(domain: Domain, numbers: Numbers) -> Row:
    """Draw a sum with its answer: `95+7=102.`, with as many digits as there is room for."""
    most = max(1, (domain.max_length - 4) // 3)
    upper, lower = _number(most, numbers), _number(most, numbers)
    return tuple(f"{upper}+{lower}={int(upper) + int(lower)}.")


def sums(domain: Domain, numbers: Numbers) -> Row:
    """Draw two numbers with a plus between that fill the row: `683+345`."""
    plus = 1 + next(numbers) % (domain.max_length - 2)
    digits = [str(next(numbers) % 10) for _ in range(domain.max_length)]
    return tuple("+" if place == plus else digit for place, digit in enumerate(digits))


def brackets(domain: Domain, numbers: Numbers) -> Row:
    """Draw brackets, most of which open something or close what is open."""
    opening = dict(zip(domain.vocabulary[1::2], domain.vocabulary[::2], strict=False))
    row: list[Value] = []
    opened: list[Value] = []
    for _ in range(domain.max_length):
        fitting = [
            token for token in domain.vocabulary if token not in opening or (opened and opened[-1] == opening[token])
        ]
        token = _one_of(fitting if next(numbers) % LEGAL else domain.vocabulary, numbers)
        if token not in opening:
            opened.append(token)
        elif opened and opened[-1] == opening[token]:
            opened.pop()
        row.append(token)
    return tuple(row)


def _number(most: int, numbers: Numbers) -> str:
    """Draw a number of 1 to `most` digits without zeros in front."""
    digits = 1 + next(numbers) % most
    lowest = 10 ** (digits - 1) if digits > 1 else 0
    return str(lowest + next(numbers) % (10**digits - lowest))


def _one_of(tokens: Sequence[Value], numbers: Numbers) -> Value:
    return tokens[next(numbers) % len(tokens)]
