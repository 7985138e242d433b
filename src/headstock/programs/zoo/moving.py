"""Programs that take a token from another place."""

from headstock import programs as p
from headstock.programs.nodes import Expression
from headstock.programs.program import BIDIRECTIONAL, CAUSAL
from headstock.programs.zoo.letters import LETTERS


@p.program(vocabulary=LETTERS)
def copy() -> Expression:
    """The tokens as they are: the smallest program.

    >>> p.interpret(p.zoo.copy, "dab")
    ['d', 'a', 'b']
    """
    return p.tokens


@p.program(vocabulary=LETTERS, modes=(BIDIRECTIONAL,))
def reverse() -> Expression:
    """The tokens from last to first.

    >>> p.interpret(p.zoo.reverse, "abcd")
    ['d', 'c', 'b', 'a']

    Source: Weiss et al., "Thinking Like Transformers" (2021).
    """
    opposite = p.length - 1 - p.indices
    return p.aggregate(p.select(p.indices, opposite, "=="), p.tokens, by="best")


@p.program(vocabulary=LETTERS, modes=lambda by: (BIDIRECTIONAL, CAUSAL) if by >= 0 else (BIDIRECTIONAL,))
def shift(by: int = 1) -> Expression:
    """The tokens, each moved `by` places to the right, or to the left where that is negative; None where none comes.

    >>> p.interpret(p.zoo.shift(2), "abcd")
    [None, None, 'a', 'b']
    >>> p.interpret(p.zoo.shift(-1), "abcd")
    ['b', 'c', 'd', None]
    """
    return p.aggregate(p.offset(-by), p.tokens, by="best")


@p.program(vocabulary=LETTERS)
def last_occurrence() -> Expression:
    """At which position, from 0, this token stood the last time before; None where it did not.

    >>> p.interpret(p.zoo.last_occurrence, "abcab")
    [None, None, None, 0, 1]
    """
    earlier = p.select(p.tokens, p.tokens, "==") & p.before
    return p.aggregate(earlier, p.indices, by="best", ties="last")


@p.program(vocabulary=LETTERS)
def induction() -> Expression:
    """The token that came after this one the last time before; None where this one has not stood before.

    >>> p.interpret(p.zoo.induction, "abcab")
    [None, None, None, 'b', 'c']

    Two heads, one after the other. Source: Olsson et al., "In-context Learning and Induction Heads" (2022).
    """
    previous = p.aggregate(p.offset(-1), p.tokens, by="best")
    came_after = p.select(previous, p.tokens, "==") & p.up_to_here
    return p.aggregate(came_after, p.tokens, by="best", ties="last")


@p.program(vocabulary=LETTERS + "|", modes=(CAUSAL,))
def repeat() -> Expression:
    """The next token where everything before the first bar is said again, with the bar; None before there is one.

    >>> p.interpret(p.zoo.repeat, "dab|dab|d")
    [None, None, None, 'd', 'a', 'b', '|', 'd', 'a']

    What stands after the bar is not read: only how many tokens they are.
    """
    bar = p.aggregate(p.select(p.tokens, "|", "==") & p.up_to_here, p.indices, by="best", default=-1)
    # Before the bar, bar is -1 and the key wanted is the next position, which up_to_here forbids.
    return p.aggregate(p.select(p.indices, p.indices - bar, "==") & p.up_to_here, p.tokens, by="best")
