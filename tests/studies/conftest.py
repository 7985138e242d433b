"""The toy study, run once for all tests; its folder is only to be copied."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstock.studies.base import Study
from headstock.studies.results import StudyResult
from headstock.studies.running import run_study
from tests.studies.toy import STUDY

Toy = tuple[StudyResult, Path]
Again = Callable[..., tuple[StudyResult, list[str]]]


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """Give the toy's result at the quick budget, and its folder."""
    folder = tmp_path_factory.mktemp("studies") / "toy"
    return run_study(STUDY, out=folder, jobs=1), folder


@pytest.fixture
def copied(toy: Toy, tmp_path: Path) -> Path:
    """Give a copy of the toy's folder."""
    folder = tmp_path / "toy"
    shutil.copytree(toy[1], folder)
    return folder


@pytest.fixture
def again(copied: Path) -> Again:
    """Run the toy, or what became of it, in the copy; give the result and what was trained, in order."""

    def run(study: Study = STUDY, **asked: Any) -> tuple[StudyResult, list[str]]:
        trained: list[str] = []

        def watch(event: Any, over: int, total: int) -> None:
            if event.kind in ("finished", "failed"):
                trained.append(f"{event.cell.label} {event.cell.training.seed}")

        return run_study(study, out=copied, jobs=1, watch=watch, **asked), trained

    return run
