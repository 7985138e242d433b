"""`headstock compile`, `run`, `generate` and the others on programs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import headstock as hs
from headstock.cli.advice import advice_in_options
from headstock.cli.compile_program import vocabulary_of
from headstock.errors import UserError
from headstock.programs import load, zoo
from headstock.programs.compiler import trying
from headstock.programs.compiler.domain import Domain
from tests.cli.conftest import Headstock, tree

MINE = """
from headstock import programs as p
same = p.select(p.tokens, p.tokens, "==")
hist = p.width(same)
"""
HIST = ["compile", "hist", "--vocab", "ab", "--max-length", "3"]
REPEAT = ["compile", "repeat", "--vocab", "ab|", "--max-length", "6"]


COMPILED: dict[tuple[str, ...], dict[str, bytes]] = {}
"""The files of what was compiled once, by the command's words."""


def made(headstock: Headstock, out: str = "m", words: list[str] = HIST) -> None:
    """Compile a small program into a folder, or copy what the same words have made before."""
    if tuple(words) not in COMPILED:
        said = headstock(*words, "-o", out)
        assert said.status == 0, said.err
        COMPILED[tuple(words)] = tree(Path(out))
        return
    Path(out).mkdir()
    for name, content in COMPILED[tuple(words)].items():
        (Path(out) / name).write_bytes(content)


def test_compiling_prints_the_certificate_and_the_size(headstock: Headstock, here: Path) -> None:
    said = headstock(*HIST, "-o", "deep/er/m")
    assert said.status == 0, said.err
    loaded = load("deep/er/m")
    assert str(loaded.certificate) in said.out
    assert loaded.size().table() in said.out
    assert said.out.splitlines()[-1] == "Saved: deep/er/m"
    assert loaded("aba") == [2, 1, 2]


def test_what_is_compiled_is_what_was_asked_for(headstock: Headstock, here: Path) -> None:
    words = ["compile", "hist", "--vocab", "1,2,30", "--max-length", "2", "--causal", "--dtype", "float64"]
    said = headstock(*words, "--prove", "exhaustive", "-o", "m", "--json")
    told = json.loads(said.out)
    assert told["domain"] == {"vocabulary": [1, 2, 30], "max_length": 2, "causal": True, "dtype": "float64"}
    assert (told["certificate"]["exhaustive"], told["certificate"]["compared"]) == (True, 3 + 9)
    assert told["size"]["width"] == hs.load("m").config.d_model
    assert told["folder"] == "m"
    headstock("compile", "hist", "--vocab", "ab", "--max-length", "2", "--bidirectional", "-o", "both")
    assert not load("both").domain.causal


def test_a_program_in_a_file_is_compiled(headstock: Headstock, here: Path) -> None:
    Path("mine.py").write_text(MINE, encoding="utf-8")
    made(headstock, words=["compile", "mine.py:hist", "--vocab", "red,green", "--max-length", "3"])
    said = headstock("run", "m", "red green red")
    assert [line.split() for line in said.out.splitlines()] == [
        ["#", "token", "value"],
        ["0", "red", "2"],
        ["1", "green", "1"],
        ["2", "red", "2"],
    ]
    assert "the word 'gren' is not in the program's vocabulary: did you mean 'green'?" in (
        headstock("run", "m", "red gren").complaint
    )


def test_the_same_command_again_is_fine_and_writes_nothing(headstock: Headstock, here: Path) -> None:
    made(headstock)
    before = {path: path.stat().st_mtime_ns for path in Path("m").iterdir()}
    said = headstock(*HIST, "-o", "m")
    assert said.status == 0
    assert said.out.splitlines()[-1] == "It is there already: m"
    assert {path: path.stat().st_mtime_ns for path in Path("m").iterdir()} == before


def test_a_folder_with_anything_else_is_left_as_it_is(headstock: Headstock, here: Path) -> None:
    made(headstock)
    Path("other").mkdir()
    Path("other/notes.txt").write_text("mine", encoding="utf-8")
    Path("file").write_text("mine", encoding="utf-8")
    before = tree(here)
    assert "other holds something else" in headstock(*HIST, "-o", "other").complaint
    assert "file is a file" in headstock(*HIST, "-o", "file").complaint
    longer = [*HIST[:-1], "4"]
    assert "m holds hist compiled otherwise" in headstock(*longer, "-o", "m").complaint
    assert tree(here) == before
    model = hs.load("m")
    model.embed.weight.data[0, 0] += 1
    hs.save(model, "m")
    before = tree(here)
    assert "with weights that were changed since" in headstock(*HIST, "-o", "m").complaint
    assert tree(here) == before


def test_running_tells_a_changed_model_from_a_certified_one(headstock: Headstock, here: Path) -> None:
    made(headstock)
    assert "Note" not in headstock("run", "m", "ab").out
    assert json.loads(headstock("run", "m", "ab", "--json").out) == {
        "folder": "m",
        "program": "hist",
        "certified": True,
        "tokens": ["a", "b"],
        "values": [1, 1],
    }
    model = hs.load("m")
    model.embed.weight.data[0, 0] += 1e-3
    hs.save(model, "m")
    assert "Note: not certified any more" in headstock("run", "m", "ab").out
    assert json.loads(headstock("run", "m", "ab", "--json").out)["certified"] is False


def test_explaining_is_what_the_loaded_model_explains(headstock: Headstock, here: Path) -> None:
    made(headstock)
    found = load("m").explain("aba")
    assert headstock("run", "m", "aba", "--explain").out == f"{found}\n"
    told = json.loads(headstock("run", "m", "aba", "--explain", "--json").out)["explanation"]
    assert [one["name"] for one in told["expressions"]] == [one.name for one in found.expressions]
    assert told["expressions"][-1]["model"] == told["expressions"][-1]["program"] == ["2", "1", "2"]
    assert told["heads"][0]["weights"] == [list(row) for row in found.heads[0].weights]
    assert told["heads"][0]["lines"] == list(found.heads[0].part.lines)


def test_a_causal_program_generates_with_the_start_token_put_in_front(headstock: Headstock, here: Path) -> None:
    made(headstock, words=REPEAT)
    assert headstock("generate", "m", "ab|").out == "ab|ab|a\n"
    assert headstock("generate", "m", "ab|", "--tokens", "2").out == "ab|ab\n"
    assert headstock("generate", "m", "ab|", "--stop", "|").out == "ab|ab\n"
    assert json.loads(headstock("generate", "m", "ab|", "--json").out) == {
        "prompt": "ab|",
        "new": "ab|a",
        "text": "ab|ab|a",
        "tokens": 4,
        "ended_by": "length",
        "certified": True,
    }


def test_a_changed_program_generates_and_says_so(headstock: Headstock, here: Path) -> None:
    made(headstock, words=REPEAT)
    model = hs.load("m")
    model.embed.weight.data[0, 0] += 1e-3
    hs.save(model, "m")
    said = headstock("generate", "m", "ab|")
    assert (said.status, said.out) == (0, "ab|ab|a\n")
    assert said.err == "headstock: repeat is not certified any more: the weights have changed since it was compiled.\n"


@pytest.mark.full
def test_the_adder_adds(headstock: Headstock, here: Path) -> None:
    made(headstock, words=["compile", "addition,digits=2"])
    for prompt, text in (("12+34=", "12+34=46."), ("9+99=", "9+99=108."), ("95+7=1", "95+7=102.")):
        assert headstock("generate", "m", prompt).out == f"{text}\n"


def test_inspect_reads_a_program_with_its_start_token_in_sight(headstock: Headstock, here: Path) -> None:
    made(headstock, "both")
    made(headstock, "causal", REPEAT)
    for folder, text in (("both", "aba"), ("causal", "ab|a")):
        said = json.loads(headstock("inspect", folder, text, "--json").out)
        assert [one["token"] for one in said["tokens"]] == ["<start>", *text]
    assert [one["predicts"][0]["token"] for one in said["tokens"]][3:] == ["a", "b"]
    assert headstock("inspect", "causal", "ab|a", "-o", "page.html").status == 0


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["compile", "hits", "-o", "x"], "there is no program 'hits' in the zoo: did you mean 'hist'?"),
        (["compile", "hist"], "--out needs a value"),
        (["compile", "hist", "--causal", "--bidirectional", "-o", "x"], "are two modes: give one of them."),
        (["compile", "reverse", "--causal", "-o", "x"], "is not causal: it looks ahead; use --bidirectional."),
        (["compile", "repeat", "--bidirectional", "-o", "x"], "from left to right; use --causal."),
        (["compile", "reverse", "--max-length", "300", "-o", "x"], "declare --max-length 244 or less"),
        (["compile", "hist", "--vocab", "a,,b", "-o", "x"], "--vocab 'a,,b' has an empty word"),
        (["compile", "hist", "--vocab", "", "-o", "x"], "the vocabulary is empty"),
        (["compile", "hist", "--vocab", "aa", "-o", "x"], "the vocabulary has 'a' twice"),
        (["compile", "hist", "--max-length", "0", "-o", "x"], "--max-length is 0: give 1 or more"),
        (["compile", "hist", "--dtype", "float8", "-o", "x"], "--dtype cannot be 'float8'"),
        (["compile", "nowhere.py:hist", "-o", "x"], "there is no file nowhere.py"),
        (["run", "nowhere", "ab"], "there is no folder nowhere"),
        (["run", "m", "abc"], "the character 'c' is not in the program's vocabulary: choose one of a, b."),
        (["run", "m", "aaaa"], "for 1 to 3: compile it again with a larger --max-length."),
        (["run", "m", ""], "the input has 0 tokens"),
        (["generate", "m", "ab"], "hist is compiled bidirectional, and only a causal model can go on"),
        (["generate", "m", "ab", "--slide"], "--slide would take a program out of what it is compiled for"),
        (["generate", "m", "ab", "--temperature", "1"], "a program's next token is certain"),
        (["generate", "m"], "needs something to go on with: give a prompt."),
        (["eval", "m"], "m holds a compiled program, which no task was set"),
        (["eval", "m", "--task", "crossing"], "causal=false"),
        (["inspect", "m", "abc"], "the character 'c' is not in the program's vocabulary"),
        (["inspect", "m", "aaaa"], "the text is 5 tokens long and the model's context 4"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(
    headstock: Headstock, here: Path, words: list[str], part: str
) -> None:
    made(headstock)
    before = tree(here)
    assert part in headstock(*words).complaint
    assert tree(here) == before


def test_a_vocabulary_is_characters_or_what_commas_part() -> None:
    assert vocabulary_of("ab+") == ["a", "b", "+"]
    assert vocabulary_of("12") == ["1", "2"]
    assert vocabulary_of("1,2,-30") == [1, 2, -30]
    assert vocabulary_of("red, green") == ["red", "green"]
    assert vocabulary_of(",") == [","]
    with pytest.raises(UserError, match="has an empty word"):
        vocabulary_of("a,b,")


def test_every_program_is_listed_with_what_it_computes(headstock: Headstock) -> None:
    found = json.loads(headstock("list", "programs", "--json").out)["programs"]
    assert [one["name"] for one in found] == list(zoo.PROGRAMS)
    assert all(one["meaning"].endswith(".") and one["modes"] for one in found)
    shift = next(one for one in found if one["name"] == "shift")
    assert shift["choices"] == [{"key": "by", "default": 1}]
    said = headstock("list", "programs").out
    assert "shift,by=1" in said
    assert max(len(line) for line in said.splitlines()) <= 110
    for one in found:
        choices = [f"{choice['key']}={choice['default']}" for choice in one["choices"]]
        assert zoo.get(",".join([one["name"], *choices])).says == zoo.get(one["name"]).says


def test_ctrl_c_in_an_exhaustive_proof_is_one_line_and_leaves_nothing(
    headstock: Headstock, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(domain: Domain) -> Iterator[tuple[str, ...]]:
        yield ("a",)
        raise KeyboardInterrupt

    monkeypatch.setattr(trying, "every_sequence", stopped)
    said = headstock(*HIST, "--prove", "exhaustive", "-o", "m")
    assert (said.status, said.out, said.err) == (130, "", "headstock: stopped.\n")
    assert tree(here) == {}
    assert list(here.iterdir()) == []


def test_advice_leaves_the_names_of_expressions_alone() -> None:
    with pytest.raises(UserError) as said, advice_in_options():
        raise UserError("max_length (mine.py:2) is off: use causal=False, dtype='float64' or a smaller max_length.")
    assert str(said.value) == (
        "max_length (mine.py:2) is off: use --bidirectional, --dtype float64 or a smaller --max-length."
    )
