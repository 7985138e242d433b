"""What every test of tasks stands on: a cache of its own, no network, and Shakespeare where it lies."""

import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from headstock.tasks.corpora import SHAKESPEARE_FILE


@pytest.fixture(scope="session", autouse=True)
def _own_cache_and_no_network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a test reached for the network")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADSTOCK_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(urllib.request, "urlopen", refuse)
        yield


@pytest.fixture
def shakespeare(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the file of Tiny Shakespeare and let HEADSTOCK_DATA find it."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(os.environ.get("HEADSTOCK_DATA", beside))
    if not (folder / SHAKESPEARE_FILE).is_file():
        pytest.skip(f"needs {SHAKESPEARE_FILE} in $HEADSTOCK_DATA")
    monkeypatch.setenv("HEADSTOCK_DATA", str(folder))
    return folder / SHAKESPEARE_FILE
