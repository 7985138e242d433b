"""Bad input gets one sentence, exit status 2, no traceback; nothing is overwritten or lost, and nothing is left."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headstock as hs
from headstock.checkpoints import files
from tests.cli.conftest import TINY, Headstock, tiny_run, tree
from tests.comparison.here import MIXERS

ON_CROSSING = "--task crossing --steps 2 --seeds 2 --jobs 1"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (f"compare sofmax uniform {ON_CROSSING}", "unknown mixer 'sofmax': did you mean 'softmax'?"),
        (f"compare softmax+rop uniform {ON_CROSSING}", "unknown position 'rop' in 'softmax+rop': did you mean 'rope'?"),
        (f"compare softmax,n_head=2 uniform {ON_CROSSING}", "unknown key 'n_head' in 'softmax,n_head=2': did you mean"),
        (f"compare softmax uniform {ON_CROSSING} --set n_head=2", "unknown setting 'n_head': did you mean 'n_heads'?"),
        (f"compare softmax uniform {ON_CROSSING} --set n_heads", "--set 'n_heads' is not key=value"),
        (f"compare softmax uniform {ON_CROSSING} --set context=9", "'context' is not a setting: it follows from"),
        (f"compare softmax uniform {ON_CROSSING} --set mixer=table", "'mixer' is not a setting: every variant begins"),
        (f"compare {MIXERS}:Unbuildable softmax {ON_CROSSING}", "Unbuildable failed at line"),
        (f"train {MIXERS}:Unbuildable --task crossing --steps 2", "RuntimeError: no mixer today."),
        (f"compare softmax softmax,n_heads=4 {ON_CROSSING}", "are the same model once they are matched: name it once"),
        (f"compare softmax uniform {ON_CROSSING} d_model=8", "write --set before every setting"),
        ("compare softmax uniform --task crosing", "there is no task 'crosing': did you mean 'crossing'?"),
        ("compare softmax uniform --task text,contxt=9", "no option 'contxt': did you mean 'context'?"),
        ("compare", "nothing is compared: name two variants or more"),
        (f"compare softmax softmax {ON_CROSSING}", "the variant 'softmax' is named twice"),
        (f"compare softmax,n_heads=5 uniform {ON_CROSSING}", "softmax has 5 heads but the width is 64"),
        (f"compare differential,n_heads=1 softmax {ON_CROSSING}", "n_heads is 1: choose an even number"),
        (f"compare uniform+rope softmax {ON_CROSSING}", "uniform cannot use rope"),
        (f"compare softmax uniform,feedforward=none {ON_CROSSING}", "no width of its feed-forward makes them equal"),
        (f"compare __main__:Mine softmax {ON_CROSSING}", "a mixer defined in __main__ cannot be found again"),
        (f"compare nowhere.py:Mine softmax {ON_CROSSING}", "there is no file nowhere.py"),
        (f"compare softmax uniform {ON_CROSSING} --device gpu", "the device 'gpu' cannot be used"),
        (f"compare softmax uniform {ON_CROSSING} --device meta", "the device 'meta' cannot be used"),
        (f"compare softmax softmax,causal=false {ON_CROSSING}", "causal=false sees the very tokens that it would be"),
        ("train softmax,causal=false --task crossing --steps 2", "leave it out to train a model or to score it."),
        ("train sofmax", "unknown mixer 'sofmax': did you mean 'softmax'?"),
        ("train softmax --task text,corpus=absent.txt", "there is no file or folder absent.txt"),
        ("train softmax --task text,corpus=shakespear", "did you mean 'shakespeare'?"),
        ("train __main__:Mine --task crossing", "a mixer defined in __main__"),
        ("train softmax --task crossing --set warmup_steps=5 --steps 5", "warmup_steps=5 leaves none of the 5 steps"),
        ("eval nowhere", "there is no folder nowhere"),
        ("generate nowhere", "there is no folder nowhere"),
        ("runs nowhere", "there is no folder nowhere"),
        ("show crosing", "there is no task 'crosing': did you mean 'crossing'?"),
    ],
)
def test_a_mistake_is_told_before_anything_is_written(headstock: Headstock, here: Path, words: str, part: str) -> None:
    assert part in headstock(*words.split()).complaint
    assert tree(here) == {}


def test_a_mixer_that_fails_in_training_is_told_with_its_line(headstock: Headstock, here: Path) -> None:
    said = headstock("train", f"{MIXERS}:Raises", "--task", "crossing", "--steps", "2", "--out", "run")
    assert "Raises failed at line" in said.complaint
    assert "RuntimeError: no weights today." in said.complaint


@pytest.mark.parametrize("value", ["0", "-3"])
@pytest.mark.parametrize(
    "words",
    [
        *(
            f"compare softmax uniform --task crossing --{option}"
            for option in ["seeds", "steps", "lr", "batch", "jobs"]
        ),
        "compare softmax uniform --task crossing --dry-run --jobs",
        *(f"train softmax --task crossing --{option}" for option in ["steps", "lr", "batch"]),
        "train softmax --task text,context={}",
        "train softmax --task text,held_out={}",
        "train softmax --task text,tokenizer=bpe:{}",
        *(
            f"train softmax --task crossing --set {key}={{}}"
            for key in ["d_model", "n_heads", "d_ff", "eps", "threads"]
        ),
    ],
)
def test_zero_and_less_are_refused(headstock: Headstock, here: Path, words: str, value: str) -> None:
    line = words.format(value) if "{}" in words else f"{words} {value}"
    assert headstock(*line.split()).complaint
    assert tree(here) == {}


@pytest.mark.parametrize("words", ["compare softmax uniform --tune -1", "compare softmax uniform --tune 1"])
def test_so_few_learning_rates_are_no_choice(headstock: Headstock, words: str) -> None:
    assert "tune" in headstock(*words.split()).complaint


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_learning_rate_is_finite(headstock: Headstock, value: str) -> None:
    assert "finite" in headstock("train", "softmax", "--task", "crossing", "--lr", value).complaint


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "is empty"),
        (b"some text\0and more", "is a binary file"),
        (b"caf\xe9 and so on", "is not UTF-8"),
        (b"too short for this", "choose a smaller context or a longer text"),
    ],
    ids=["empty", "binary", "latin-1", "short"],
)
def test_a_corpus_that_is_no_text_or_too_little_is_refused(
    headstock: Headstock, here: Path, content: bytes, part: str
) -> None:
    (here / "corpus.txt").write_bytes(content)
    said = headstock("compare", "softmax", "uniform", "--task", "text,corpus=corpus.txt", "--steps", "2")
    assert part in said.complaint
    assert tree(here) == {"corpus.txt": content}


def test_a_folder_that_holds_something_else_is_left_alone(headstock: Headstock, here: Path) -> None:
    (here / "mine").mkdir()
    (here / "mine" / "notes.txt").write_text("dear diary")
    (here / "a-file").write_text("no folder")
    before = tree(here)
    for command in ("compare softmax uniform", "compare softmax uniform --fresh", "compare softmax uniform --dry-run"):
        said = headstock(*command.split(), *ON_CROSSING.split(), "--out", "mine")
        assert "is not empty and holds no comparison" in said.complaint
    assert "holds no run" in headstock("train", "softmax", "--task", "crossing", "--out", "mine").complaint
    assert "is a file" in headstock("compare", "softmax", "uniform", *ON_CROSSING.split(), "--out", "a-file").complaint
    assert "a-file" in headstock("train", "softmax", "--task", "crossing", "--steps", "2", "--out", "a-file").complaint
    assert tree(here) == before


def test_a_folder_that_holds_another_run_is_left_alone(headstock: Headstock, here: Path) -> None:
    tiny_run(headstock, "run")
    before = tree(here)
    said = headstock("train", "softmax", "--task", "crossing", "--steps", "4", *TINY, "--out", "run")
    assert "run holds another run" in said.complaint
    assert tree(here) == before


def test_a_sequence_longer_than_the_learned_table_is_refused(headstock: Headstock, here: Path) -> None:
    tiny_run(headstock, "run", task="text,context=8")
    said = headstock("generate", "run", "The yield", "--tokens", "5")
    assert "9 tokens and 5 more pass the model's context of 8" in said.complaint
    assert "--slide" in said.complaint
    assert "has learned 8 positions" in headstock("eval", "run", "--task", "text,context=16").complaint


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--tokens 0", "--tokens is 0: give 1 or more"),
        ("--tokens -1", "--tokens is -1"),
        ("--temperature -1", "the temperature is -1.0"),
        ("--temperature nan", "the temperature is nan"),
        ("--temperature 1 --top-k 0", "top_k is 0"),
        ("--temperature 1 --top-p 0", "top_p is 0.0"),
        ("--temperature 1 --top-p 1.5", "top_p is 1.5"),
        ("--top-k 3", "temperature=0 draws nothing"),
        ("--seed -1", "--seed is -1"),
        ("--device gpu", "the device 'gpu' cannot be used"),
    ],
)
def test_generating_refuses_what_means_nothing(headstock: Headstock, here: Path, words: str, part: str) -> None:
    tiny_run(headstock, "run")
    assert part in headstock("generate", "run", "the herd", *words.split()).complaint


def test_an_empty_or_unknown_text_is_refused(headstock: Headstock, here: Path) -> None:
    tiny_run(headstock, "run")
    assert "the prompt is empty" in headstock("generate", "run", "").complaint
    assert "the word 'heard' is not among" in headstock("generate", "run", "the heard").complaint
    assert "--stop is empty" in headstock("generate", "run", "the herd", "--stop", "").complaint


def test_a_model_is_not_scored_on_a_task_that_it_cannot_read(headstock: Headstock, here: Path) -> None:
    tiny_run(headstock, "run")
    assert "has 256 tokens and the model in run has 36" in headstock("eval", "run", "--task", "text").complaint
    for name, letters in {"a": "abcdef", "b": "uvwxyz"}.items():
        (here / f"{name}.txt").write_text(letters * 60)
    tiny_run(headstock, "a", task="text,corpus=a.txt,tokenizer=char,context=8")
    said = headstock("eval", "a", "--task", "text,corpus=b.txt,tokenizer=char,context=8")
    assert "has other tokens than the model in a was trained on" in said.complaint


def test_a_saved_model_that_sees_the_answer_is_not_scored(headstock: Headstock, here: Path) -> None:
    task = hs.tasks.get("crossing")
    hs.save(hs.build("softmax,causal=false", vocab_size=task.vocab_size, context=task.context), "both-ways")
    said = headstock("eval", "both-ways", "--task", "crossing")
    assert "both-ways has causal=false and sees the very tokens that crossing has it foretell" in said.complaint


def test_a_truncated_or_foreign_checkpoint_is_refused(headstock: Headstock, here: Path) -> None:
    tiny_run(headstock, "run")
    (here / "foreign").mkdir()
    (here / "foreign" / "config.json").write_text(json.dumps({"architectures": ["GPT2LMHeadModel"]}))
    assert "holds no Headstock model" in headstock("eval", "foreign", "--task", "text").complaint
    weights = here / "run" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    for words in (["eval", "run"], ["generate", "run", "the herd"]):
        assert "run/model.safetensors is damaged" in headstock(*words).complaint
    weights.unlink()
    assert "no model.safetensors" in headstock("eval", "run").complaint
    (here / "run" / "result.json").unlink()
    assert "has not finished" in headstock("eval", "run").complaint


@pytest.mark.parametrize("content", ["[]", "{}", '{"task_hash": 1, "task": 5, "task_spec": ["text"]}'])
def test_a_run_that_does_not_say_what_it_was_trained_on_is_refused(
    headstock: Headstock, here: Path, content: str
) -> None:
    tiny_run(headstock, "run")
    (here / "run" / "run.json").write_text(content)
    assert "name a task, as in --task text" in headstock("eval", "run").complaint


def test_a_damaged_state_is_told_and_not_thrown_away(headstock: Headstock, here: Path) -> None:
    tiny_run(headstock, "run")
    (here / "run" / "result.json").unlink()
    (here / "run" / "state.pt").write_bytes(b"half of it")
    said = headstock("train", "softmax", "--task", "crossing", "--steps", "3", *TINY, "--out", "run")
    assert "run/state.pt is damaged" in said.complaint
    assert (here / "run" / "state.pt").read_bytes() == b"half of it"


def test_a_run_whose_text_has_changed_says_so(headstock: Headstock, here: Path) -> None:
    (here / "corpus.txt").write_text("to be or not to be " * 40)
    tiny_run(headstock, "run", task="text,corpus=corpus.txt,context=8")
    assert headstock("eval", "run").status == 0
    (here / "corpus.txt").write_text("that is the question " * 40)
    assert "are not here any more, or have changed" in headstock("eval", "run").complaint
    assert headstock("eval", "run", "--task", "text,corpus=corpus.txt,context=8").status == 0


def test_a_disk_that_fills_up_is_told_and_costs_nothing_that_was_there(
    headstock: Headstock, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    tiny_run(headstock, "run")
    before = tree(here)
    monkeypatch.setattr(files, "_reach_the_disk", full)
    for words in (
        ["train", "softmax", "--task", "crossing", "--steps", "2", *TINY],
        ["compare", "softmax", "uniform", *ON_CROSSING.split()],
    ):
        said = headstock(*words, "--out", "new").complaint
        assert "No space left on device" in said
        assert "free some space" in said
        shutil.rmtree(here / "new")
    assert tree(here) == before


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_disk_that_fills_up_under_a_worker_stops_the_comparison_with_a_sentence(here: Path) -> None:
    """A limit on the size of files stands for the full disk: small ones can still be written, a run's state cannot."""
    words = ["compare", "softmax", "uniform", *ON_CROSSING.split(), "--out", "new"]
    program = (
        "import resource, sys; from headstock.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)); sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "state.pt could not be written" in done.stderr
    assert not list(here.rglob("result.json"))
    assert not list(here.rglob("*.part"))
