"""One run by itself: trained, gone on with, scored and read from."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import headstock as hs
from headstock.cli.by_difficulty import probes_table
from tests.cli.conftest import TINY, Compared, Headstock, tiny_run, tree
from tests.comparison.here import MIXERS


def test_a_run_shows_its_figures_on_both_splits_and_is_there_at_once_when_asked_for_again(
    headstock: Headstock, here: Path
) -> None:
    said = tiny_run(headstock, "run")
    assert said.err == f"{said.err.splitlines()[0]}\n"
    assert said.err.startswith("3/3  train loss ")
    assert "held-out" in said.out
    assert "train" in said.out
    before = tree(here)
    assert tiny_run(headstock, "run").err == ""
    assert tree(here) == before


def test_a_run_that_is_given_no_folder_is_found_by_the_same_command(headstock: Headstock, here: Path) -> None:
    words = ["train", "softmax", "--task", "crossing", "--steps", "2", *TINY, "--json"]
    first, again = headstock(*words), headstock(*words)
    assert json.loads(first.out) == json.loads(again.out)
    assert [folder.name for folder in (here / "runs").iterdir()] == [Path(json.loads(first.out)["folder"]).name]


def test_a_run_is_the_one_that_a_comparison_makes(headstock: Headstock, here: Path, compared: Compared) -> None:
    answer = json.loads((compared.folder / "comparison.json").read_text())
    cell = answer["tasks"][0]["arms"][0]["cells"][1]
    words = ["train", "softmax", "--task", "crossing", "--steps", "4", "--seed", "1", *TINY, "--json"]
    alone = json.loads(headstock(*words).out)
    assert alone["metrics"] == cell["metrics"]
    assert alone["curve"] == cell["curve"]


def test_a_comparisons_run_is_scored_on_its_own_task(headstock: Headstock, here: Path, compared: Compared) -> None:
    cell = json.loads((compared.folder / "comparison.json").read_text())["tasks"][0]["arms"][0]["cells"][0]
    scored = json.loads(headstock("eval", str(compared.folder / cell["folder"]), "--json").out)
    assert scored["metrics"] == cell["metrics"]
    assert scored["task"] == "crossing,held_out=0.2"
    refused = headstock("eval", str(compared.folder)).complaint
    assert "holds a comparison, which has many models: give one of its runs, such as" in refused


def test_scoring_gives_the_runs_own_figures_again(headstock: Headstock, here: Path) -> None:
    trained = json.loads(tiny_run(headstock, "run", "--json", task="text,context=16").out)
    scored = json.loads(headstock("eval", "run", "--json").out)
    assert scored["metrics"] == trained["metrics"]
    alone = json.loads(headstock("eval", "run", "--split", "train", "--json").out)
    assert alone["metrics"] == {"train": trained["metrics"]["train"]}


def test_a_run_and_its_scoring_show_each_difficulty_in_a_row(headstock: Headstock, here: Path) -> None:
    said = tiny_run(headstock, "run", task="induction,length=8")
    rows = said.out.partition("Held-out, by length\n")[2].splitlines()
    assert rows[0].split() == ["length", "loss", "perplexity", "accuracy"]
    assert [row.split()[0] for row in rows[1:5]] == ["8", "16", "32", "64"]
    trained = json.loads(tiny_run(headstock, "run", "--json", task="induction,length=8").out)
    assert [probe["at"] for probe in trained["probes"]] == [{"length": length} for length in (8, 16, 32, 64)]
    assert rows[2].split()[3] == f"{trained['probes'][1]['metrics']['accuracy']:.4f}"
    assert json.loads(headstock("eval", "run", "--json").out)["probes"] == trained["probes"]
    assert "\n".join(rows[:5]) in headstock("eval", "run").out
    assert json.loads(headstock("eval", "run", "--split", "train", "--json").out)["probes"] == []
    assert "by length" not in headstock("eval", "run", "--split", "train").out


def test_two_difficulties_are_shown_as_a_grid() -> None:
    places = [(0.5, 64), (1.0, 64), (0.5, 128)]
    probes = [
        {"at": {"depth": depth, "length": length}, "metrics": {"loss": 9.0, "accuracy": place / 4}}
        for place, (depth, length) in enumerate(places)
    ]
    assert probes_table(probes, "accuracy").splitlines() == [
        "Held-out, by depth × length: accuracy",
        "  depth \\ length      64     128",
        "  0.5             0.0000  0.5000",
        "  1               0.2500       —",
    ]
    assert probes_table([], "accuracy") == ""


def test_a_task_without_difficulties_shows_none(headstock: Headstock, here: Path) -> None:
    assert "by " not in tiny_run(headstock, "run").out
    assert json.loads(headstock("eval", "run", "--json").out)["probes"] == []


def test_a_model_may_be_scored_on_another_text(headstock: Headstock, here: Path) -> None:
    tiny_run(headstock, "run", task="text,context=16")
    (here / "other.txt").write_text("It was the best of times, it was the worst of times. " * 20)
    said = json.loads(headstock("eval", "run", "--task", "text,corpus=other.txt,context=8", "--json").out)
    assert said["metrics"]["held-out"]["bits_per_byte"] > 0


def test_a_saved_model_has_no_task_of_its_own(headstock: Headstock, here: Path) -> None:
    hs.save(hs.build("softmax+rope", vocab_size=36, context=17, d_model=8, n_heads=2, n_layers=1), here / "model")
    assert "does not say what it was trained on" in headstock("eval", "model").complaint
    assert headstock("eval", "model", "--task", "crossing").status == 0
    assert "tokenizer.json cannot be read" in headstock("generate", "model").complaint


def test_a_run_goes_on_where_its_data_have_moved_to(headstock: Headstock, here: Path) -> None:
    for name in ("one.txt", "other.txt"):
        (here / name).write_text("to be or not to be " * 40)
    tiny_run(headstock, "run", task="text,corpus=one.txt,context=8")
    assert tiny_run(headstock, "run", task="text,corpus=other.txt,context=8").err == ""


def test_a_run_that_diverges_fails_with_its_reason(headstock: Headstock, here: Path) -> None:
    said = headstock("train", "softmax", "--task", "crossing", *TINY, "--steps", "9", "--lr", "1e30", "--out", "run")
    assert said.status == 1
    assert "the run failed: the" in said.err
    assert "holds a run that failed, so it has no model" in headstock("eval", "run").complaint


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_a_run_stopped_by_ctrl_c_goes_on_to_the_same_bits(headstock: Headstock, here: Path) -> None:
    words = ["train", "softmax", "--task", "crossing", *TINY, "--steps", "300", "--set", "evaluate_every=10"]
    process = subprocess.Popen(
        [sys.executable, "-m", "headstock", *words, "--out", "stopped"],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("10/300 ")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert said.splitlines()[-1].endswith("the same command goes on from here.")
    assert (here / "stopped" / "state.pt").exists()
    on = json.loads(headstock(*words, "--out", "stopped", "--json").out)
    whole = json.loads(headstock(*words, "--out", "whole", "--json").out)
    assert on["curve"] == whole["curve"]
    weights = [(here / name / "model.safetensors").read_bytes() for name in ("stopped", "whole")]
    assert weights[0] == weights[1]


def test_text_goes_on_in_the_runs_own_tokens(headstock: Headstock, here: Path) -> None:
    tiny_run(headstock, "run", task="text,context=16")
    said = json.loads(headstock("generate", "run", "Café", "--tokens", "6", "--json").out)
    assert said["text"] == "Café" + said["new"]
    assert said["tokens"] == 6
    again = headstock("generate", "run", "Café", "--tokens", "6")
    assert again.out == said["text"] + "\n"
    assert json.loads(headstock("generate", "run", "--json").out)["prompt"] == "\n"
    longer = json.loads(headstock("generate", "run", "Café", "--tokens", "40", "--slide", "--json").out)
    assert longer["tokens"] == 40


def test_what_is_drawn_follows_from_the_seed(headstock: Headstock, here: Path) -> None:
    tiny_run(headstock, "run", task="text,context=64")
    words = ["generate", "run", "The", "--temperature", "1", "--top-k", "50", "--top-p", "0.9", "--seed"]
    assert headstock(*words, "1").out == headstock(*words, "1").out
    assert headstock(*words, "1").out != headstock(*words, "2").out


def test_generation_ends_before_the_stop(headstock: Headstock, here: Path) -> None:
    tiny_run(headstock, "run", task="text,context=64")
    words = ["generate", "run", "The", "--temperature", "1", "--json"]
    whole = json.loads(headstock(*words).out)["new"]
    for stop in (whole[5], whole[5:8]):
        assert json.loads(headstock(*words, "--stop", stop).out)["new"] == whole.partition(stop)[0]


def test_words_go_on_in_words_and_stop_at_whole_ones(headstock: Headstock, here: Path) -> None:
    tiny_run(headstock, "run")
    words = ["generate", "run", "the herd", "--temperature", "1", "--json"]
    said = json.loads(headstock(*words).out)
    assert said["text"].startswith("the herd ")
    new = said["new"].split()
    assert said["tokens"] == len(new) == 16
    for stop in (new[4], " ".join(new[4:6])):
        stopped = json.loads(headstock(*words, "--stop", stop).out)["new"].split()
        assert stopped == new[: len(stopped)]
        assert new[len(stopped) :][: len(stop.split())] == stop.split()
        assert len(stopped) <= 4


def test_what_a_mixer_prints_is_kept_out_of_the_results(headstock: Headstock, here: Path) -> None:
    chatty = f"{MIXERS}:Talkative"
    trained = headstock("train", chatty, "--task", "crossing", "--steps", "2", *TINY, "--out", "run", "--json")
    assert json.loads(trained.out)["folder"] == "run"
    assert json.loads(headstock("eval", "run", "--json").out)["folder"] == "run"
    assert json.loads(headstock("generate", "run", "the herd", "--tokens", "1", "--json").out)["tokens"] == 1
    words = ["compare", "softmax", chatty, "--task", "crossing", "--steps", "2", *TINY, "--match", "none"]
    assert json.loads(headstock(*words, "--dry-run", "--json").out)["runs"] == 16
    assert json.loads(headstock(*words, "--seeds", "1", "--jobs", "1", "--json").out)["seeds"] == 1


@pytest.mark.parametrize("command", ["eval", "generate"])
def test_a_mixer_that_fails_when_a_model_is_opened_again_is_one_sentence(
    headstock: Headstock, here: Path, command: str
) -> None:
    good = "from headstock.model.mixers.softmax import Softmax\n\n\nclass Mine(Softmax):\n    x = 1\n"
    Path("mine.py").write_text(good)
    assert headstock("train", "./mine.py:Mine", "--task", "crossing", "--steps", "1", "--out", "run").status == 0
    Path("mine.py").write_text(f"{good}\n    def mix_fast(self, q, k, v, visible):\n        return 1 / 0\n")
    os.utime("mine.py", ns=(1, 1))  # another file, however coarse the clock is
    assert "./mine.py:Mine failed at line 8: ZeroDivisionError" in headstock(command, "run").complaint
