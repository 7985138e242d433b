"""Advice of `programs` in the words of the command line: --bidirectional for Python's causal=False, and so on."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from headstock.errors import UserError

OPTIONS = (
    (r"\bcausal=False\b", "--bidirectional"),
    (r"\bcausal=True\b", "--causal"),
    (r"\bdtype='(\w+)'", r"--dtype \1"),
    (r"\bvocab='(\w+)'", r"--vocab \1"),
    (r"\bmax_length=(\d+)", r"--max-length \1"),
    (r"\bmax_length\b(?! \()", "--max-length"),  # and not the name of an expression, which its line follows
)


@contextmanager
def advice_in_options() -> Iterator[None]:
    """Let a refusal speak of the options of `headstock compile`."""
    try:
        yield
    except UserError as refusal:
        said = str(refusal)
        for word, option in OPTIONS:
            said = re.sub(word, option, said)
        raise UserError(said) from None
