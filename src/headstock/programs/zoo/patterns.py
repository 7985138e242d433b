"""Programs that know a pattern: one to be found, and those that go on for ever."""

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.nodes import Expression
from headstock.programs.program import CAUSAL
from headstock.programs.zoo.letters import letters_with


@p.program(vocabulary=lambda pattern: letters_with(pattern))
def detect(pattern: str = "abc") -> Expression:
    """Whether a pattern of tokens ends here; None where fewer tokens stand than it has.

    >>> p.interpret(p.zoo.detect("abc"), "abcabc")
    [None, None, True, False, False, True]

    Source: Lindner et al., "Tracr" (2023).
    """
    if not pattern:
        raise UserError("the pattern to detect is empty: give the tokens to look for, such as 'abc'.")
    ends = p.tokens == pattern[-1]
    for back, token in enumerate(reversed(pattern[:-1]), start=1):
        stands = p.aggregate(p.offset(-back), p.tokens == token, by="best", default=False)
        ends = ends & stands
    return p.where(p.indices < len(pattern) - 1, None, ends) if len(pattern) > 1 else ends


@p.program(vocabulary="ab", modes=(CAUSAL,))
def aab() -> Expression:
    """The next token of aabaab…, from the last two: b after two of a, else a.

    >>> "".join(p.interpret(p.zoo.aab, "aabaab"))
    'bbaaba'

    One a alone may be the first of two or the second: b is said. What the pattern never has, such as bb, is followed
    by a, which leads back to it.
    """
    last_two = p.offset(0) | p.offset(-1)
    share_of_a = p.aggregate(last_two, p.tokens == "a", by="mean")
    return p.where(share_of_a == 1, "b", "a")


@p.program(vocabulary="ab", modes=(CAUSAL,))
def ab() -> Expression:
    """The next token of abab…: the other one. It needs no attention.

    >>> "".join(p.interpret(p.zoo.ab, "abab"))
    'baba'
    """
    return p.lookup({"a": "b", "b": "a"}, p.tokens)
