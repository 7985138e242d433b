"""What was run is listed from the folders themselves; the index only saves reading them again."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headstock.comparison import index
from headstock.tasks.files import cache_folder
from tests.cli.conftest import TINY, Compared, Headstock, tiny_run


@pytest.fixture
def some(headstock: Headstock, here: Path) -> Path:
    """A run, a run inside another folder, one that failed, and a comparison that has only its plan."""
    tiny_run(headstock, "runs/first")
    tiny_run(headstock, "runs/deeper/text", task="text,context=16")
    failed = headstock("train", "softmax", "--task", "crossing", *TINY, "--lr", "1e30", "--out", "runs/failed")
    assert failed.status == 1
    plan = {"tasks": [{"task": "crossing,held_out=0.2", "arms": [{"label": "softmax"}, {"label": "uniform"}]}]}
    (here / "runs" / "planned" / "cells").mkdir(parents=True)
    (here / "runs" / "planned" / "plan.json").write_text(json.dumps(plan))
    shutil.copytree(here / "runs" / "first", here / "runs" / "planned" / "cells" / "one")
    return here / "runs"


def listed(headstock: Headstock, *words: str) -> dict[str, dict[str, Any]]:
    return {one["folder"]: one for one in json.loads(headstock("runs", *words, "--json").out)}


def test_runs_and_comparisons_are_listed_with_what_they_found(headstock: Headstock, some: Path) -> None:
    found = listed(headstock)
    assert set(found) == {"runs/first", "runs/deeper/text", "runs/failed", "runs/planned"}
    assert found["runs/first"]["status"] == "finished"
    assert found["runs/first"]["metrics"] == {"crossing": "accuracy"}
    figures = json.loads((some / "first" / "result.json").read_text())["metrics"]["held-out"]
    assert found["runs/first"]["figures"] == {"crossing": {"softmax": figures["accuracy"]}}
    assert found["runs/deeper/text"]["metrics"] == {"text": "bits_per_byte"}
    assert found["runs/failed"]["status"] == "failed"
    assert "loss" in found["runs/failed"]["detail"]
    assert found["runs/planned"]["status"] == "unfinished"
    assert found["runs/planned"]["detail"] == "1 runs are over"
    said = headstock("runs")
    assert said.status == 0
    for folder in found:
        assert folder in said.out.splitlines()


def test_a_finished_comparison_is_listed_with_a_figure_an_arm(
    headstock: Headstock, here: Path, compared: Compared
) -> None:
    shutil.copytree(compared.folder, here / "runs" / "c")
    found = listed(headstock)["runs/c"]
    assert (found["kind"], found["status"]) == ("comparison", "finished")
    assert found["title"] == "softmax, uniform on crossing"
    assert set(found["figures"]["crossing"]) == {"softmax", "uniform"}
    assert found["detail"] == "3 seeds, 0 of 1 verdicts claim a difference"


def test_the_index_can_be_deleted_or_damaged_and_nothing_is_lost(headstock: Headstock, some: Path) -> None:
    found = listed(headstock)
    path = cache_folder() / index.FILE_NAME
    path.unlink()
    assert listed(headstock) == found
    path.write_bytes(b"this is no database, whatever its name says" * 100)
    assert listed(headstock) == found
    assert listed(headstock) == found
    with sqlite3.connect(path) as opened:
        assert opened.execute("SELECT count(*) FROM found").fetchone() == (4,)


def test_what_has_not_changed_is_not_read_again(
    headstock: Headstock, some: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = listed(headstock)
    read: list[str] = []
    really = index._read

    def reading(place: Path, stamp: index.Stamp) -> index.Found:
        read.append(place.name)
        return really(place, stamp)

    monkeypatch.setattr(index, "_read", reading)
    assert listed(headstock) == found
    assert read == []
    tiny_run(headstock, "runs/second")
    shutil.rmtree(some / "failed")
    assert set(listed(headstock)) == {*found, "runs/second"} - {"runs/failed"}
    assert read == ["second"]


def test_a_damaged_run_is_listed_as_damaged_beside_the_others(headstock: Headstock, some: Path) -> None:
    (some / "first" / "result.json").write_text('{"status": "fini')
    found = listed(headstock)
    assert found["runs/first"]["status"] == "damaged"
    assert found["runs/deeper/text"]["status"] == "finished"


def test_a_cache_that_cannot_be_used_costs_nothing_but_time(
    headstock: Headstock, some: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = listed(headstock)
    (tmp_path / "a-file").write_text("in the way")
    monkeypatch.setenv("HEADSTOCK_CACHE", str(tmp_path / "a-file"))
    assert listed(headstock) == found


def test_a_folder_without_runs_is_said_to_hold_none(headstock: Headstock, here: Path) -> None:
    said = headstock("runs", ".")
    assert said.status == 0
    assert said.out == "No run and no comparison lies below ..\n"


def test_listing_runs_needs_no_torch() -> None:
    program = "import sys, headstock.comparison.index; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
