"""The one exception for a user's mistake: its text is a sentence that says what was wrong and what to do.

Commands print it and leave with exit status 2; in Python it is a ValueError like any other.
"""

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """What was asked for cannot be done; the message says why and what to do instead."""


def near_name(name: str, known: Iterable[str]) -> str:
    """Give the end of a sentence about an unknown name: the nearest known one, or all of them."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(known)}."
