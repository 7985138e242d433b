"""Programs that match brackets."""

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.nodes import Expression

PAIRS = ("()", "{}", "[]")
BALANCED, OPEN, BROKEN = "balanced", "open", "broken"


def brackets(k: int) -> str:
    """Give k kinds of brackets; raises UserError where there are not so many."""
    if not 1 <= k <= len(PAIRS):
        raise UserError(f"k is {k}: choose 1, 2 or 3 kinds of brackets, which are {', '.join(PAIRS)}.")
    return "".join(PAIRS[:k])


def _pairs(k: int) -> list[tuple[str, str]]:
    both = brackets(k)
    return list(zip(both[::2], both[1::2], strict=True))


@p.program(vocabulary="ab()")
def pair_balance() -> Expression:
    """The opening brackets up to here less the closing ones, as a part of the tokens up to here.

    >>> [str(part) for part in p.interpret(p.zoo.pair_balance, "a()b(c))")]
    ['0', '1/2', '0', '0', '1/5', '1/6', '0', '-1/8']

    Source: Lindner et al., "Tracr" (2023).
    """
    return p.aggregate(p.up_to_here, p.lookup({"(": 1, ")": -1}, p.tokens, default=0), by="mean")


@p.program(vocabulary=brackets)
def shuffle_dyck(k: int = 1) -> Expression:
    """Whether each kind of bracket is balanced by itself, 1 or 0: of the whole input; in causal mode, so far.

    >>> p.interpret(p.zoo.shuffle_dyck(2), "({)}")
    [1, 1, 1, 1]
    >>> p.interpret(p.zoo.shuffle_dyck(2), "(){)}")
    [0, 0, 0, 0, 0]
    >>> p.interpret(p.zoo.shuffle_dyck(2), "({)}", causal=True)
    [0, 0, 0, 1]

    Source: Bhattamishra et al., "On the Ability and Limitations of Transformers to Recognize Formal Languages" (2020).
    """
    pairs = _pairs(k)
    steps = [p.lookup({opening: 1, closing: -1}, p.tokens, default=0) for opening, closing in pairs]
    # Only signs are asked for, and a mean has the sign of its sum: nothing needs to be counted.
    went_under = p.constant(False)
    unequal = p.constant(False)
    for step in steps:
        so_far = p.aggregate(p.up_to_here, step, by="mean")
        in_all = p.aggregate(p.everything, step, by="mean")
        went_under = went_under | (so_far < 0)
        unequal = unequal | (in_all != 0)
    ever_under = p.aggregate(p.everything, went_under, by="mean") > 0
    return p.where(ever_under | unequal, 0, 1)


@p.program(vocabulary=brackets)
def dyck(k: int = 1) -> Expression:
    """Whether the brackets up to here are balanced, open (they can still be closed), or broken for good.

    >>> p.interpret(p.zoo.dyck(1), "(()))")
    ['open', 'open', 'open', 'balanced', 'broken']
    >>> p.interpret(p.zoo.dyck(2), "({)}")
    ['open', 'open', 'broken', 'broken']

    Source: Weiss et al., "Thinking Like Transformers" (2021), there with the answers T, P and F.
    """
    pairs = _pairs(k)
    step = p.lookup(
        {bracket: step for pair in pairs for bracket, step in zip(pair, (1, -1), strict=True)}, p.tokens, default=0
    )
    if k == 1:
        # Only the sign of the depth is asked for, and the mean of the steps has it: nothing needs to be counted.
        depth = p.aggregate(p.up_to_here, step, by="mean")
        wrong = depth < 0
    else:
        depth = p.aggregate(p.up_to_here, step, by="sum")
        closes = step < 0
        level = p.where(closes, depth + 1, depth)  # a bracket has the level of the one that it matches
        candidates = p.select(level, level, "==") & p.select(step, 1, "==") & p.before
        opening = p.aggregate(candidates, p.tokens, by="best", ties="last")
        wanted = p.lookup({second: first for first, second in pairs}, p.tokens, default=None)
        wrong = closes & (opening != wanted)
    ever_wrong = p.aggregate(p.up_to_here, wrong, by="mean") > 0
    return p.where(ever_wrong, BROKEN, p.where(depth == 0, BALANCED, OPEN))
