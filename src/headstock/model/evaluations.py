"""Which evaluation of ours ran: each notes its name while someone listens. Knows nothing of torch's kernels."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_heard: ContextVar[set[str] | None] = ContextVar("heard", default=None)


def note(evaluation: str) -> None:
    """Say that an evaluation is running."""
    if torch.compiler.is_compiling():  # a compiled graph cannot tell
        return
    heard = _heard.get()
    if heard is not None:
        heard.add(evaluation)


@contextmanager
def listening() -> Iterator[set[str]]:
    """Collect the names of the evaluations that run inside."""
    heard: set[str] = set()
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)
