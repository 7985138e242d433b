"""What was extracted as C99 programs of their own, with a main that answers lines of tokens."""

from typing import TYPE_CHECKING

from headstock.programs.back_to_code.c_frame import framed, numbers, rows
from headstock.programs.back_to_code.domain import Domain
from headstock.programs.back_to_code.spelling import counted, described, described_loop, foretold, spelling

if TYPE_CHECKING:
    from headstock.programs.back_to_code.closed_loops import ClosedLoop
    from headstock.programs.back_to_code.lookups import Lookup
    from headstock.programs.back_to_code.machines import Machine
    from headstock.programs.back_to_code.whole import WholeLookup

_ONE = "said[0] = next_token(ids, count);\n    return said[0] < 0 ? -1 : 1;"


def machine_in_c(machine: "Machine") -> str:
    """Give the source of `next_token`: a row a state, a column a token; -1 where the domain ends."""
    domain = machine.domain
    spelt = spelling(domain, {said for said in machine.answers if said is not None})
    lines = [foretold("machine", machine.size, "state"), *described(domain, machine.verified, spelt)]
    tables = (
        f"enum {{ STATES = {machine.size} }};\n"
        + rows("static const int NEXT[STATES][READ]", machine.steps)
        + numbers("static const int SAYS[STATES]", machine.answers)
    )
    function = f"""\
{_next_token(domain)}
    for (at = 0; at < count; at++) {{
        int place = place_of(ids[at]);
        if (place < 0)
            return -1;
        node = NEXT[node][place];
    }}
    return SAYS[node];
}}
"""
    return framed(lines, spelt, tables, function, _ONE)


def lookup_in_c(lookup: "Lookup") -> str:
    """Give the source of `next_token`: endings as a tree, walked from the last token back; last column the start."""
    domain = lookup.domain
    spelt = spelling(domain, {row.answer for row in lookup.rows})
    lines = [foretold("look-up", lookup.size, "row"), *described(domain, lookup.verified, spelt)]
    before, says = _tree(lookup)
    tables = (
        f"enum {{ NODES = {len(says)} }};\n"
        + rows("static const int BEFORE[NODES][READ + 1]", before)
        + numbers("static const int SAYS[NODES]", says)
    )
    function = f"""\
{_next_token(domain)}
    int said = SAYS[0];
    for (at = 0; at < count; at++)
        if (place_of(ids[at]) < 0)
            return -1;
    for (at = count - 1; at >= -1; at--) {{
        node = BEFORE[node][at < 0 ? READ : place_of(ids[at])];
        if (node < 0)
            break;
        if (SAYS[node] >= 0)
            said = SAYS[node];
    }}
    return said;
}}
"""
    return framed(lines, spelt, tables, function, _ONE)


def whole_in_c(whole: "WholeLookup") -> str:
    """Give the source of `tokens_of`: sequences of a length one after another, in the order of their numbers."""
    domain = whole.domain
    spelt = spelling(domain, {ident for _, said in whole.rows for ident in said})
    lines = [
        f"The tokens that a model holds likeliest on each position: a look-up of {counted(whole.size, 'row')}.",
        *described(domain, whole.verified, spelt),
    ]
    said = [ident for _, row in whole.rows for ident in row]
    function = f"""\
/* Writes the token on each position of these, {domain.reach}; gives 0, or -1 for others. */
int tokens_of(const int *ids, int count, int *said)
{{
    long number = 0, first = 0, sequences = READ;
    int at;
    if (count < 1 || count > {domain.longest})
        return -1;
    for (at = 0; at < count; at++) {{
        int place = place_of(ids[at]);
        if (place < 0)
            return -1;
        number = number * READ + place;
    }}
    for (at = 1; at < count; at++) {{
        first += at * sequences;
        sequences *= READ;
    }}
    for (at = 0; at < count; at++)
        said[at] = SAYS[first + number * count + at];
    return 0;
}}
"""
    answer = "return tokens_of(ids, count, said) < 0 ? -1 : count;"
    return framed(lines, spelt, numbers(f"static const int SAYS[{len(said)}]", said), function, answer)


def closed_loop_in_c(loop: "ClosedLoop") -> str:
    """Give the source of `generate`: a row a state, and the first state of each prompt."""
    spelt = spelling(loop.domain, set(loop.says))
    longest = max(len(ids) for ids, _ in loop.prompts)
    prompts = [[len(ids), state, *ids, *[-1] * (longest - len(ids))] for ids, state in loop.prompts]
    tables = (
        f"enum {{ STATES = {loop.size}, PROMPTS = {len(prompts)} }};\n"
        + numbers("static const int SAYS[STATES]", loop.says)
        + numbers("static const int THEN[STATES]", loop.after)
        + "/* Of each prompt its length, its first state, its tokens. */\n"
        + rows(f"static const int PROMPT[PROMPTS][{longest + 2}]", prompts)
    )
    function = """\
/* Writes the count tokens generated after a prompt; gives 0, or -1 where it is not one of PROMPT. */
int generate(const int *prompt, int length, int *said, int count)
{
    int one, at, state;
    for (one = 0; one < PROMPTS; one++) {
        if (PROMPT[one][0] != length)
            continue;
        for (at = 0; at < length && PROMPT[one][2 + at] == prompt[at]; at++)
            ;
        if (at < length)
            continue;
        state = PROMPT[one][1];
        for (at = 0; at < count; at++) {
            said[at] = SAYS[state];
            state = THEN[state];
        }
        return 0;
    }
    return -1;
}
"""
    answer = "return generate(ids, count, said, 10) < 0 ? -1 : 10;"
    return framed(described_loop(loop), spelt, tables, function, answer, needs_places=False)


def _tree(lookup: "Lookup") -> tuple[list[list[int | None]], list[int | None]]:
    """Give each ending's extension by one more token before it, or by the start, and what it says."""
    domain = lookup.domain
    place = {ident: at for at, ident in enumerate(domain.alphabet)}
    before: list[list[int | None]] = [[None] * (domain.base + 1)]
    says: list[int | None] = [None]
    for row in lookup.rows:
        node = 0
        for at in [*(place[ident] for ident in reversed(row.ending)), *([domain.base] if row.whole else [])]:
            after = before[node][at]
            if after is None:
                after = before[node][at] = len(says)
                before.append([None] * (domain.base + 1))
                says.append(None)
            node = after
        says[node] = row.answer
    return before, says


def _next_token(domain: Domain) -> str:
    """Begin the function with its refusals: what it was not checked on it does not answer."""
    most = "" if domain.endless else f" || count > {domain.longest}"
    return f"""\
/* Gives the id of the token after these, {domain.reach}; -1 for others. */
int next_token(const int *ids, int count)
{{
    int node = 0, at;
    if (count < {domain.lengths[0]}{most})
        return -1;"""
