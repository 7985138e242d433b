"""Commands run in this process, in an empty folder with an empty cache, their output as a pipe would see it."""

import io
from collections.abc import Callable, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from headstock.cli import main

TINY = ["--set", "d_model=8", "--set", "n_layers=1", "--set", "n_heads=2"]
ARMS = ["compare", "softmax", "uniform", "--task", "crossing", *TINY, "--match", "none"]  # too narrow to be matched
SMALL = [*ARMS, "--steps", "4", "--seeds", "3", "--jobs", "1", "--out", "c"]


@dataclass(frozen=True)
class Said:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one sentence of a refusal; fails where there is anything else."""
        assert self.status == 2, (self.out, self.err)
        assert self.out == ""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        assert lines[0].startswith("headstock: ")
        return lines[0]


Headstock = Callable[..., Said]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, the cache and the data folder beside it."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HEADSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HEADSTOCK_DATA", raising=False)
    return folder


@pytest.fixture
def headstock(here: Path, capsys: pytest.CaptureFixture[str]) -> Headstock:
    """Run the command line as `headstock WORDS` does."""

    def run(*words: str) -> Said:
        capsys.readouterr()
        status = main(words)
        return Said(status, *capsys.readouterr())

    return run


@dataclass(frozen=True)
class Compared:
    """A small comparison that was run once for all tests: what it said, and its folder, which is only to be copied."""

    said: Said
    folder: Path


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """Run SMALL."""
    out, err = io.StringIO(), io.StringIO()
    place = tmp_path_factory.mktemp("compared")
    with chdir(place), redirect_stdout(out), redirect_stderr(err):
        status = main(SMALL)
    return Compared(Said(status, out.getvalue(), err.getvalue()), place / "c")


def tree(folder: Path) -> dict[str, bytes]:
    """Give every file below a folder with its bytes."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def tiny_run(headstock: Headstock, out: str, *more: str, task: str = "crossing") -> Said:
    """Train next to nothing into a folder."""
    words: Sequence[str] = ["train", "softmax", "--task", task, "--steps", "3", *TINY, "--out", out, *more]
    said = headstock(*words)
    assert said.status == 0, said.err
    return said
