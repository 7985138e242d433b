"""Programs that count: tokens, kinds of tokens, shares."""

from headstock import programs as p
from headstock.programs.nodes import Expression
from headstock.programs.program import BIDIRECTIONAL
from headstock.programs.zoo.letters import LETTERS, letters_with, one_token


@p.program(vocabulary=LETTERS)
def length() -> Expression:
    """How many tokens there are; in causal mode, so far.

    >>> p.interpret(p.zoo.length, "abc")
    [3, 3, 3]
    >>> p.interpret(p.zoo.length, "abcd", causal=True)
    [1, 2, 3, 4]
    """
    return p.width(p.everything)


@p.program(vocabulary=LETTERS)
def hist() -> Expression:
    """How often each token stands in the input; in causal mode, so far.

    >>> p.interpret(p.zoo.hist, "abac")
    [2, 1, 2, 1]
    >>> p.interpret(p.zoo.hist, "abac", causal=True)
    [1, 1, 2, 1]

    Source: Weiss et al., "Thinking Like Transformers" (2021).
    """
    return p.width(p.select(p.tokens, p.tokens, "=="))


def firsts() -> Expression:
    """Whether this token has not stood before."""
    earlier = p.select(p.tokens, p.tokens, "==") & p.before
    return p.width(earlier) == 0


@p.program(vocabulary=LETTERS, modes=(BIDIRECTIONAL,))
def double_hist() -> Expression:
    """How many different tokens stand in the input as often as this one does, itself included.

    >>> p.interpret(p.zoo.double_hist, "abbc")
    [2, 1, 1, 2]

    Source: Weiss et al., "Thinking Like Transformers" (2021).
    """
    often = p.width(p.select(p.tokens, p.tokens, "=="))
    first = firsts()
    return p.width(p.select(often, often, "==") & p.select(first, True, "=="))


@p.program(vocabulary=letters_with)
def count(token: str = "a") -> Expression:
    """How often one token stands in the input; in causal mode, so far.

    >>> p.interpret(p.zoo.count("a"), "abac")
    [2, 2, 2, 2]
    >>> p.interpret(p.zoo.count("a"), "abac", causal=True)
    [1, 1, 2, 2]
    """
    return p.width(p.select(p.tokens, one_token(token), "=="))


@p.program(vocabulary=letters_with)
def fraction_of_previous(token: str = "a") -> Expression:
    """Which part of the tokens up to here is one token.

    >>> [str(part) for part in p.interpret(p.zoo.fraction_of_previous("l"), "hello")]
    ['0', '0', '1/3', '1/2', '2/5']

    Source: Lindner et al., "Tracr" (2023).
    """
    is_token = p.tokens == one_token(token)
    return p.aggregate(p.up_to_here, is_token, by="mean")
