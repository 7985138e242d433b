"""The main job on the command line: planned, run, stopped, gone on with, looked at again."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headstock.cli import main
from tests.cli.conftest import ARMS, SMALL, Compared, Headstock, tree

STOPPABLE = [*ARMS, "--steps", "60", "--seeds", "2", "--jobs", "1"]


def seeded(count: int) -> list[str]:
    """Give the small comparison with so many seeds."""
    words = [*SMALL]
    words[words.index("--seeds") + 1] = str(count)
    return words


def numbers(comparison: dict[str, Any]) -> list[Any]:
    """Give all that a comparison computed, without how long it took."""
    return [
        (arm["label"], cell["seed"], cell["status"], cell["metrics"], cell["curve"], cell["steps_to_solve"])
        for task in comparison["tasks"]
        for arm in task["arms"]
        for cell in arm["cells"]
    ]


def test_a_comparison_is_answered_kept_and_looked_at_again(
    headstock: Headstock, here: Path, compared: Compared
) -> None:
    first = compared.said
    assert first.status == 0, first.err
    assert "On crossing, neither uniform nor softmax solves the task" in first.out
    assert first.out.rstrip().endswith("Report: c/report.html")
    shutil.copytree(compared.folder, here / "c")
    assert (here / "c" / "report.html").exists()
    lines = first.err.splitlines()
    assert [line.partition(" ")[0] for line in lines] == [f"{k}/6" for k in range(1, 7)]
    assert "\x1b" not in first.out + first.err

    again = headstock(*SMALL, "--json")
    assert again.err == "6 of 6 runs were there already\n"
    found = json.loads(again.out)
    assert found["look"] == 1
    assert found["command"] == " ".join(["headstock", *SMALL, "--json"])

    before = tree(here)
    foreseen = json.loads(headstock(*seeded(4), "--dry-run", "--json").out)
    assert (foreseen["runs"], foreseen["known"], foreseen["look"]) == (8, 6, 2)
    assert foreseen["seconds"] > 0
    assert tree(here) == before

    other = headstock(*["5" if word == "4" else word for word in SMALL])
    assert "c holds another plan (steps 4 there, 5 here)" in other.complaint
    assert tree(here) == before

    fresh = headstock(*SMALL, "--fresh")
    assert fresh.status == 0
    assert {name.replace("c/", "c.old1/", 1) for name in before} <= set(tree(here))
    assert numbers(json.loads((here / "c" / "comparison.json").read_text())) == numbers(found)


def test_a_dry_run_says_what_a_comparison_would_be_and_writes_nothing(headstock: Headstock, here: Path) -> None:
    said = headstock("compare", "softmax", "differential", "uniform", "--dry-run")
    assert said.status == 0
    for part in (
        "crossing: evaluated every 20 steps",
        "text: evaluated every 50 steps",
        "uniform (floor)",
        "were made equal by feed-forward widths",
        "6 tests (3 contrasts × 2 tasks)",
        "48 runs: ",
        "That is an estimate",
    ):
        assert part in " ".join(said.out.split()), part
    assert tree(here) == {}


def test_a_dry_run_counts_the_runs_by_which_rates_are_chosen(headstock: Headstock) -> None:
    foreseen = json.loads(headstock(*ARMS, "--seeds", "3", "--tune", "2", "--dry-run", "--json").out)
    assert foreseen["runs"] == 2 * 2 * 2 + 2 * 3


def test_a_run_that_diverges_is_told_and_leaves_the_others_their_answer(headstock: Headstock, here: Path) -> None:
    said = headstock(*SMALL, "--lr", "1e30")
    assert said.status == 1
    assert "6 of 6 runs failed, the first because the" in said.err.splitlines()[-1]
    assert "loss is nan" in said.err or "loss is inf" in said.err
    assert (here / "c" / "report.html").exists()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Give the answer of the comparison that the others are stopped in."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    assert main([*STOPPABLE, "--out", str(folder / "whole")]) == 0
    found: dict[str, Any] = json.loads((folder / "whole" / "comparison.json").read_text())
    return found


def _interruptible() -> None:
    """Let Ctrl-C arrive, even where the tests run in the background of a shell, which hands on that it is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "Ctrl-C"])
def test_stopped_midway_and_run_again_it_computes_what_is_missing_and_ends_with_the_same_numbers(
    headstock: Headstock, here: Path, uninterrupted: dict[str, Any], how: signal.Signals
) -> None:
    words = [*STOPPABLE, "--out", "stopped"]
    process = subprocess.Popen(
        [sys.executable, "-m", "headstock", *words], stderr=subprocess.PIPE, text=True, preexec_fn=_interruptible
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("1/4 ")
    process.send_signal(how)
    _, said = process.communicate()
    if how == signal.SIGINT:
        assert process.returncode == 130
        last = "headstock: stopped, with what is done kept: the same command goes on from here."
        assert said.splitlines()[-1] == last
    before = _written_at(here / "stopped")
    assert 1 <= len(before) < 4

    again = headstock(*words)
    assert again.status == 0
    assert again.err.startswith(f"{len(before)} of 4 runs were there already\n")
    assert len(again.err.splitlines()) == 1 + 4 - len(before)
    after = _written_at(here / "stopped")
    assert {run: after[run] for run in before} == before
    found = json.loads((here / "stopped" / "comparison.json").read_text())
    assert numbers(found) == numbers(uninterrupted)
    assert [v["sentence"] for v in found["verdicts"]] == [v["sentence"] for v in uninterrupted["verdicts"]]


def _written_at(folder: Path) -> dict[str, int]:
    return {run.parent.name: run.stat().st_mtime_ns for run in folder.glob("cells/*/result.json")}
