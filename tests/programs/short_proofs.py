"""Short proofs: a compile of the daily tests tries its model less than a user's does; its bounds are as they are.

`test_every_case_is_exact_on_its_whole_domain` and the other full tests try it more.
"""

import pytest

from headstock.programs.compiler import trying

TRIALS = 32
SECONDS = 0.05


def shorten_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a compile try so many sequences, and all of its domain where that takes so many seconds."""
    drawn = trying.drawn_sequences
    monkeypatch.setattr(trying, "drawn_sequences", lambda domain: drawn(domain)[:TRIALS])
    monkeypatch.setattr(trying, "SECONDS", SECONDS)
