"""Programs that add decimal numbers: as at school, all columns at once, and digit after digit."""

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.nodes import Expression
from headstock.programs.program import BIDIRECTIONAL, CAUSAL

DIGITS = "0123456789"
NUMBER_OF = {digit: int(digit) for digit in DIGITS}
END = "."


def _columns() -> tuple[Expression, Expression, Expression]:
    """Give the sum of each column, the carry into it, and whether the input is two numbers with one plus between.

    The columns are those of the second number, right-aligned; they go on to its left under the plus and the first
    number, so that the answer has a place for every digit and for the carry.
    """
    is_plus = p.select(p.tokens, "+", "==")
    plus = p.aggregate(is_plus, p.indices, by="best", default=-1)
    own = p.lookup(NUMBER_OF, p.tokens, default=0)
    upper = p.aggregate(p.select(p.indices, p.indices + plus - p.length, "=="), own, by="best", default=0)
    after_plus = p.select(p.indices, plus, ">")
    lower = p.aggregate(p.offset(0) & after_plus, own, by="best", default=0)
    column = upper + lower
    # A column of 9 hands on what it is handed; the nearest other one to the right decides.
    decides = p.select(column != 9, True, "==") & p.select(p.indices, p.indices, ">")
    carry = p.aggregate(decides, p.where(column > 9, 1, 0), by="best", ties="first", default=0)
    last_plus = p.aggregate(is_plus, p.indices, by="best", ties="last", default=-1)
    asked = (plus == last_plus) & (plus > 0) & (plus < p.length - 1)
    return column, carry, asked


@p.program(vocabulary=DIGITS + "+", modes=(BIDIRECTIONAL,))
def long_addition() -> Expression:
    """The sum of two numbers as taught at school, right-aligned, a digit a position, with zeros before it.

    >>> p.interpret(p.zoo.long_addition, "683+345")
    [0, 0, 0, 1, 0, 2, 8]
    >>> p.interpret(p.zoo.long_addition, "7+95")
    [0, 1, 0, 2]

    The numbers may differ in length. Anything but one plus with digits on both sides gives None everywhere.
    """
    column, carry, asked = _columns()
    return p.where(asked, (column + carry) % 10, None)


@p.program(vocabulary=DIGITS + "+", modes=(BIDIRECTIONAL,))
def carries() -> Expression:
    """What each column of a long addition is handed from the columns to its right, 1 or 0.

    >>> p.interpret(p.zoo.carries, "683+345")
    [0, 0, 0, 1, 1, 0, 0]

    None everywhere where `long-addition` is.
    """
    _, carry, asked = _columns()
    return p.where(asked, carry, None)


@p.program(vocabulary=DIGITS + "+=" + END, max_length=lambda digits: 3 * digits + 4, modes=(CAUSAL,), end=END)
def addition(digits: int = 3) -> Expression:
    """The next token after `12+34=`: the sum's digits from the left, without leading zeros, and then a full stop.

    >>> p.interpret(p.zoo.addition(2), "95+7=102.")
    [None, None, None, None, '1', '0', '2', '.', '.']

    Both numbers have 1 to `digits` digits. None before the `=`, and where the prompt is anything else. Of what stands
    after the `=` only the number of tokens counts, except that a second `+` or `=` there gives None too.
    """
    if digits < 1:
        raise UserError(f"digits is {digits}: give 1 or more.")
    is_plus = p.select(p.tokens, "+", "==") & p.up_to_here
    is_equals = p.select(p.tokens, "=", "==") & p.up_to_here
    plus = p.aggregate(is_plus, p.indices, by="best", default=0)
    equals = p.aggregate(is_equals, p.indices, by="best", default=0)
    end = p.aggregate(p.select(p.tokens, END, "==") & p.up_to_here, p.indices, by="best", default=-1)
    own = p.lookup(NUMBER_OF, p.tokens, default=0)
    after_plus = p.select(p.indices, plus, ">")

    handed_on = p.constant(0)
    answer: list[Expression] = []
    for place in range(digits):
        upper = p.aggregate(_only(plus - 1 - place), own, by="best", default=0)
        lower = p.aggregate(_only(equals - 1 - place) & after_plus, own, by="best", default=0)
        column = upper + lower
        answer.append((column + (handed_on > 0)) % 10)
        # Of the columns so far the highest that is not 9 decides, for it weighs more than all below it together.
        handed_on = handed_on + 2**place * p.map(_decides, column)
    answer.append(p.where(handed_on > 0, 1, 0))

    not_zero = p.constant(0)
    for place, digit in enumerate(answer):
        not_zero = not_zero + 2**place * (digit > 0)
    highest = p.constant(0)
    for place in range(1, digits + 1):
        highest = highest + (not_zero >= 2**place)
    wanted = highest + equals - p.indices  # the place whose digit comes next: 0 is that of the ones

    code = p.where(wanted < 0, 10, 0)
    for place, digit in enumerate(answer):
        code = code + p.where(wanted == place, digit, 0)
    one_of_each = (p.width(is_plus) == 1) & (p.width(is_equals) == 1) & ((end < 0) | (end > equals))
    upper_fits = (plus >= 1) & (plus <= digits)
    lower_fits = (equals - plus >= 2) & (equals - plus <= digits + 1)
    asked = one_of_each & upper_fits & lower_fits
    return p.where(asked, p.lookup(dict(enumerate(DIGITS)), code, default=END), None)


def _only(position: Expression) -> p.Selector:
    return p.select(p.indices, position, "==") & p.up_to_here


def _decides(column: int) -> int:
    return (column > 9) - (column < 9)
