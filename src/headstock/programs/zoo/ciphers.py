"""Programs that change each letter alone."""

import string

from headstock import programs as p
from headstock.programs.nodes import Expression

ALPHABET = string.ascii_lowercase


@p.program(vocabulary=ALPHABET)
def caesar(by: int = 3) -> Expression:
    """Each letter from a to z, `by` letters on in the alphabet, which begins again after z.

    >>> "".join(p.interpret(p.zoo.caesar(3), "xyzab"))
    'abcde'

    What is no letter from a to z is refused.
    """
    moved = {letter: ALPHABET[(place + by) % len(ALPHABET)] for place, letter in enumerate(ALPHABET)}
    return p.lookup(moved, p.tokens)
