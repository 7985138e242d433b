"""A study on the command line: run, shown, asked of before it runs, stopped and gone on with."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tests.studies.toy
from headstock import studies
from tests.cli.conftest import Headstock, tree
from tests.studies.conftest import Toy
from tests.studies.conftest import toy as toy

TOY = f"{tests.studies.toy.__file__}:STUDY"


@pytest.fixture
def there(toy: Toy, here: Path) -> Path:
    """Put the toy that was run already where the command puts it."""
    import shutil

    folder = here / "runs" / "study-toy-quick"
    shutil.copytree(toy[1], folder)
    return folder


def test_a_study_prints_its_verdicts_and_where_the_report_is(headstock: Headstock, there: Path) -> None:
    said = headstock("study", TOY)
    assert said.status == 0, said.err  # that a claim is not reproduced is an answer
    assert said.err == "4 of 4 runs were there already\n"
    assert said.out.startswith("A toy: 1 of 4 claims reproduced, 1 not reproduced, 2 not decidable at this budget\n")
    assert said.out.endswith("Report: runs/study-toy-quick/report.html\n")
    assert f"headstock study {TOY}" in (there / "README.md").read_text()

    found = json.loads(headstock("study", TOY, "--json").out)
    assert [claim["verdict"] for claim in found["claims"]][1] == "not reproduced"
    assert found["folder"] == "runs/study-toy-quick"


def test_a_dry_run_says_what_is_there_and_what_cannot_be_decided_and_writes_nothing(
    headstock: Headstock, there: Path, here: Path
) -> None:
    before = tree(here)
    said = headstock("study", TOY, "--seeds", "3", "--dry-run")
    assert said.status == 0
    words = " ".join(said.out.split())
    for part in (
        "9 runs, of which runs/study-toy-quick holds 6.",
        "2 of 3",
        "Not decidable at this budget: Softmax ends",
    ):
        assert part in words, part
    one = json.loads(headstock("study", TOY, "--seeds", "1", "--dry-run", "--json").out)
    assert one["said"] == "3 runs, all of which runs/study-toy-quick holds: nothing is left to run."
    assert one["undecidable"][-1].startswith("One seed decides no claim")
    assert tree(here) == before


def test_fewer_steps_are_a_folder_and_a_budget_of_their_own(headstock: Headstock, here: Path) -> None:
    said = headstock("study", TOY, "--steps", "1", "--seeds", "1", "--jobs", "1")
    assert said.status == 0, said.err
    lines = said.err.splitlines()
    assert lines[0] == "formula seed 0 is measured"
    assert [line.split(" after ")[0] for line in lines[1:] if " after " in line] == [
        "1/2 average on crossing seed 0 finished",
        "2/2 softmax on crossing seed 0 finished",
    ]
    assert "Quick budget, at most 1 step, 1 seed." in said.out
    assert (here / "runs" / "study-toy-quick-1-steps" / "report.html").exists()


def test_runs_and_eval_know_a_study(headstock: Headstock, there: Path) -> None:
    (found,) = json.loads(headstock("runs", "--json").out)
    assert (found["kind"], found["title"], found["status"]) == ("study", "toy, quick budget", "finished")
    assert found["detail"] == "2 seeds, 1 reproduced, 1 not reproduced, 2 not decidable"
    cell = next((there / "cells").glob("crossing-softmax-seed0-*"))
    scored = json.loads(headstock("eval", str(cell), "--json").out)
    assert scored["metrics"]["held-out"]["loss"] == pytest.approx(
        json.loads((cell / "result.json").read_text())["metrics"]["held-out"]["loss"]
    )
    refused = headstock("compare", "softmax", "uniform", "--task", "crossing", "--out", str(there)).complaint
    assert "holds another plan" in refused


def test_without_a_name_the_studies_are_listed(headstock: Headstock) -> None:
    found = json.loads(headstock("list", "studies", "--json").out)["studies"]
    assert {one["name"] for one in found} <= set(studies.study_names())
    assert all(one["asks"] and one["title"] for one in found)
    assert headstock("study").out == headstock("list", "studies").out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("lader", "there is no study 'lader': did you mean 'ladder'?"),
        ("nowhere.py:STUDY", "there is no file nowhere.py"),
        (f"{TOY} --budget quik", "--budget cannot be 'quik': did you mean 'quick'?"),
        (f"{TOY} --seeds 0", "seeds is 0: give 1 or more."),
        (f"{TOY} --steps -1", "steps is -1: give 1 or more."),
        (f"{TOY} --jobs 0", "jobs is 0: give 1 or more."),
        (f"{TOY} --jobs 0 --dry-run", "jobs is 0: give 1 or more."),
        (f"{TOY} --device gpu", "the device 'gpu' cannot be used"),
        (f"{TOY} --step 3", "has no option --step: did you mean '--steps'?"),
    ],
)
def test_a_mistake_is_told_before_anything_is_written(headstock: Headstock, here: Path, words: str, part: str) -> None:
    assert part in headstock("study", *words.split()).complaint
    assert tree(here) == {}


def test_a_failed_run_is_told_and_the_answer_stands(headstock: Headstock, here: Path) -> None:
    source = Path(tests.studies.toy.__file__).read_text(encoding="utf-8")
    assert "TINY = {" in source
    (here / "wild.py").write_text(source.replace("TINY = {", 'TINY = {"lr": 1e30, '), encoding="utf-8")
    said = headstock("study", "wild.py:STUDY", "--seeds", "1", "--jobs", "1", "--out", "w")
    assert said.status == 1
    assert "2 of 3 runs failed, the first because the" in said.err.splitlines()[-1]
    assert "average failed with seed 0" in " ".join(said.out.split())
    assert (here / "w" / "report.html").exists()


def _interruptible() -> None:
    """Let Ctrl-C arrive, even where the tests run in the background of a shell, which hands on that it is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "Ctrl-C"])
def test_stopped_midway_the_same_command_goes_on_to_the_same_numbers(
    headstock: Headstock, toy: Toy, here: Path, how: signal.Signals
) -> None:
    words = ["study", TOY, "--jobs", "1", "--out", "s"]
    process = subprocess.Popen(
        [sys.executable, "-m", "headstock", *words], stderr=subprocess.PIPE, text=True, preexec_fn=_interruptible
    )
    assert process.stderr is not None
    while not process.stderr.readline().startswith("1/4 "):
        assert process.poll() is None
    process.send_signal(how)
    _, said = process.communicate()
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert said.splitlines()[-1].endswith("the same command goes on from here.")
        assert (here / "s" / "study.json").exists()
    done = len(list((here / "s").glob("cells/*/result.json")))
    assert 1 <= done < 4
    again = headstock(*words)
    assert again.status == 0
    assert f"{done} of 4 runs were there already" in again.err
    found = json.loads((here / "s" / "study.json").read_text())
    expected = json.loads((toy[1] / "study.json").read_text())
    for one, other in zip(found["rows"], expected["rows"], strict=True):
        assert [run["figures"] for run in one["runs"]] == [run["figures"] for run in other["runs"]]


@pytest.mark.parametrize("option", [["--seeds", "2"], ["--dry-run"], ["--budget", "full"], ["--out", "x"]])
def test_an_option_without_a_study_is_refused_and_not_passed_over(headstock: Headstock, option: list[str]) -> None:
    said = headstock("study", *option)
    assert said.status == 2
    assert said.err.startswith(f"headstock: {option[0]} is given without a study: name one")
