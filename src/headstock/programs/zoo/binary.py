"""Programs over the digits 0 and 1."""

from headstock import programs as p
from headstock.programs.nodes import Expression
from headstock.programs.program import BIDIRECTIONAL


@p.program(vocabulary="01")
def parity() -> Expression:
    """Whether the ones up to here are odd in number, 1 or 0, read off the position that bears their number.

    >>> p.interpret(p.zoo.parity, "10110")
    [1, 1, 0, 1, 1]

    Counts the ones and looks at the position of that number, which knows whether it is odd: no function of a long
    count is computed. Source: Chiang and Cholak, "Overcoming a Theoretical Limitation of Self-Attention" (2022).
    """
    ones = p.width(p.select(p.tokens, "1", "==") & p.up_to_here)
    # Positions are numbered from 0, so the k-th has the number k - 1; without a one there is none, and 0 is even.
    position_of_that_number = p.select(p.indices, ones - 1, "==") & p.up_to_here
    return p.aggregate(position_of_that_number, (p.indices + 1) % 2, by="best", default=0)


@p.program(vocabulary="01", modes=(BIDIRECTIONAL,))
def increment() -> Expression:
    """A binary number plus one, in as many digits; None everywhere where they are all 1 and it has no room.

    >>> "".join(p.interpret(p.zoo.increment, "01011"))
    '01100'
    >>> p.interpret(p.zoo.increment, "11")
    [None, None]
    """
    last_zero = p.aggregate(p.select(p.tokens, "0", "=="), p.indices, by="best", ties="last", default=-1)
    carried = p.where(p.indices == last_zero, "1", "0")
    digit = p.where(p.indices < last_zero, p.tokens, carried)
    return p.where(last_zero < 0, None, digit)
