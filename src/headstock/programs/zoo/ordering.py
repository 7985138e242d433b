"""Programs that put tokens in order: each token works out its place, and each position takes the token of its place."""

from headstock import programs as p
from headstock.programs.nodes import Expression
from headstock.programs.program import BIDIRECTIONAL
from headstock.programs.zoo.counting import firsts
from headstock.programs.zoo.letters import LETTERS


@p.program(vocabulary=LETTERS, modes=(BIDIRECTIONAL,))
def sort() -> Expression:
    """The tokens in order, words by their letters and numbers by size; equal ones are all kept.

    >>> p.interpret(p.zoo.sort, [2, 4, 1, 2])
    [1, 2, 2, 4]
    >>> p.interpret(p.zoo.sort, "dab")
    ['a', 'b', 'd']
    """
    smaller = p.select(p.tokens, p.tokens, "<")
    same_before = p.select(p.tokens, p.tokens, "==") & p.before
    rank = p.width(smaller | same_before)
    return p.aggregate(p.select(rank, p.indices, "=="), p.tokens, by="best")


@p.program(vocabulary=LETTERS, modes=(BIDIRECTIONAL,))
def sort_freq() -> Expression:
    """The tokens by how often they stand in the input, the most frequent first; among equals, as they stand.

    >>> p.interpret(p.zoo.sort_freq, [2, 4, 2, 1])
    [2, 2, 4, 1]

    Source: Lindner et al., "Tracr" (2023).
    """
    often = p.width(p.select(p.tokens, p.tokens, "=="))
    more_often = p.select(often, often, ">")
    same_before = p.select(often, often, "==") & p.before
    rank = p.width(more_often | same_before)
    return p.aggregate(p.select(rank, p.indices, "=="), p.tokens, by="best")


@p.program(vocabulary=LETTERS, modes=(BIDIRECTIONAL,))
def most_frequent() -> Expression:
    """Each different token once, the most frequent first, among equals the one that stands first; then None.

    >>> p.interpret(p.zoo.most_frequent, "abbccddd")
    ['d', 'b', 'c', 'a', None, None, None, None]

    Source: Weiss et al., "Thinking Like Transformers" (2021).
    """
    often = p.width(p.select(p.tokens, p.tokens, "=="))
    first = firsts()
    of_first = p.select(first, True, "==")
    more_often = p.select(often, often, ">")
    same_before = p.select(often, often, "==") & p.before
    rank = p.width((more_often | same_before) & of_first)
    return p.aggregate(p.select(rank, p.indices, "==") & of_first, p.tokens, by="best")
