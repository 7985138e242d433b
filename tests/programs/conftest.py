"""What the tests of programs stand on."""

import pytest

from tests.programs.short_proofs import shorten_proofs


@pytest.fixture(autouse=True)
def _short_proofs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("full") is None:
        shorten_proofs(monkeypatch)
