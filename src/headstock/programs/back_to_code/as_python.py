"""Machines and look-ups as Python modules that import nothing but sys, and read lines of tokens when they are run."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headstock.programs.back_to_code.domain import Domain
from headstock.programs.back_to_code.spelling import Spelling, counted, described, described_loop, foretold, spelling

if TYPE_CHECKING:
    from headstock.programs.back_to_code.closed_loops import ClosedLoop
    from headstock.programs.back_to_code.lookups import Lookup
    from headstock.programs.back_to_code.machines import Machine
    from headstock.programs.back_to_code.whole import WholeLookup

_MAIN = """

if __name__ == "__main__":
    import sys

    for line in sys.stdin:
        tokens = {read}
        print({answer})
"""


def machine_in_python(machine: "Machine") -> str:
    """Give the source of `next_token(tokens)`: a row a state, a column a token."""
    domain = machine.domain
    spelt = spelling(domain, {said for said in machine.answers if said is not None})
    said = ["None" if answer is None else spelt.literal(answer) for answer in machine.answers]
    steps = [
        ", ".join(
            f"{spelt.literal(ident)}: {after}"
            for ident, after in zip(domain.alphabet, row, strict=True)
            if after is not None
        )
        for row in machine.steps
    ]
    return (
        _head([foretold("machine", machine.size, "state"), *described(domain, machine.verified, spelt)])
        + _table("SAYS", "[", said, "]")
        + _table("NEXT", "[", [f"{{{row}}}" for row in steps], "]")
        + _opened(domain, spelt)
        + "    state = 0\n    for token in tokens:\n        state = NEXT[state][token]\n    return SAYS[state]\n"
        + _main(spelt)
    )


def lookup_in_python(lookup: "Lookup") -> str:
    """Give the source of `next_token(tokens)`: a row an ending, None before the first token."""
    domain = lookup.domain
    spelt = spelling(domain, {row.answer for row in lookup.rows})
    rows = []
    for row in lookup.rows:
        ending = [*(["None"] if row.whole else []), *map(spelt.literal, row.ending)]
        rows.append(f"({', '.join(ending)}{',' if len(ending) == 1 else ''}): {spelt.literal(row.answer)}")
    longest = max(len(row.ending) + row.whole for row in lookup.rows)
    return (
        _head([foretold("look-up", lookup.size, "row"), *described(domain, lookup.verified, spelt)])
        + _table("SAYS", "{", rows, "}")
        + _opened(domain, spelt)
        + "    seen = (None, *tokens)\n"
        + f"    for length in range(min({longest}, len(seen)), -1, -1):\n"
        + "        ending = seen[len(seen) - length :]\n"
        + "        if ending in SAYS:\n            return SAYS[ending]\n"
        + _main(spelt)
    )


def whole_in_python(whole: "WholeLookup") -> str:
    """Give the source of `tokens_of(tokens)`: a row a sequence."""
    domain = whole.domain
    spelt = spelling(domain, {ident for _, said in whole.rows for ident in said})
    rows = [f"{_tuple(spelt, ids)}: {_tuple(spelt, said)}" for ids, said in whole.rows]
    form = f"The tokens that a model holds likeliest on each position: a look-up of {counted(whole.size, 'row')}."
    return (
        _head([form, *described(domain, whole.verified, spelt)])
        + _table("SAYS", "{", rows, "}")
        + "\n\ndef tokens_of(tokens):\n"
        + f'    """Give the token on each position of these, {domain.reach}; raise ValueError for others."""\n'
        + "    tokens = tuple(tokens)\n"
        + '    if tokens not in SAYS:\n        raise ValueError("not a sequence of the domain")\n'
        + "    return list(SAYS[tokens])\n"
        + _main(spelt, "*tokens_of(tokens)")
    )


def closed_loop_in_python(loop: "ClosedLoop") -> str:
    """Give the source of `generate(prompt, count)`: a row a state, and the first state of each prompt."""
    spelt = spelling(loop.domain, set(loop.says))
    prompts = [f"{_tuple(spelt, ids)}: {state}" for ids, state in loop.prompts]
    return (
        _head(described_loop(loop))
        + _table("SAYS", "[", map(spelt.literal, loop.says), "]")
        + _table("THEN", "[", map(str, loop.after), "]")
        + _table("FIRST", "{", prompts, "}")
        + "\n\ndef generate(prompt, count):\n"
        + '    """Give the count tokens generated after a prompt; raise ValueError for one that is not in FIRST."""\n'
        + '    if tuple(prompt) not in FIRST:\n        raise ValueError("not one of the prompts")\n'
        + "    state, said = FIRST[tuple(prompt)], []\n"
        + "    for _ in range(count):\n        said.append(SAYS[state])\n        state = THEN[state]\n"
        + "    return said\n"
        + _main(spelt, "*generate(tokens, 10)")
    )


def _tuple(spelt: Spelling, ids: Iterable[int]) -> str:
    literals = [spelt.literal(ident) for ident in ids]
    return f"({', '.join(literals)}{',' if len(literals) == 1 else ''})"


def _head(lines: Sequence[str]) -> str:
    text = "\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return f'"""{text}\n"""\n\n'


def _table(name: str, opening: str, rows: Iterable[str], closing: str) -> str:
    return f"{name} = {opening}\n" + "".join(f"    {row},\n" for row in rows) + f"{closing}\n"


def _opened(domain: Domain, spelt: Spelling) -> str:
    """Begin the function with its refusals: what it was not checked on it does not answer."""
    read = ", ".join(map(spelt.literal, domain.alphabet))
    lines = [
        f"READ = {{{read}}}\n\n",
        "def next_token(tokens):",
        f'    """Give the token after these, {domain.reach}; raise ValueError for others."""',
        "    tokens = tuple(tokens)",
        "    if not READ.issuperset(tokens):",
        '        raise ValueError("a token is not of the alphabet")',
    ]
    if domain.start is None:
        lines += ["    if not tokens:", '        raise ValueError("give at least one token")']
    if not domain.endless:
        lines += [
            f"    if len(tokens) > {domain.longest}:",
            f'        raise ValueError("give at most {domain.longest} tokens")',
        ]
    return "\n".join(lines) + "\n"


def _main(spelt: Spelling, answer: str = "next_token(tokens)") -> str:
    return _MAIN.format(read="line.split()" if spelt.by_name else "[int(word) for word in line.split()]", answer=answer)
