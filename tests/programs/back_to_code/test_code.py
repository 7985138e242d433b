"""The printed code stands alone, and says on the whole domain what the model says, in Python and in C."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from headstock.programs.back_to_code import Function, closed_loop, extract, lookup, machine, whole_lookup
from headstock.programs.handmade import aab
from tests.programs.back_to_code.functions import Ids, foretelling, lively, of_table, sequences
from tests.programs.back_to_code.test_whole import sorting

GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(GCC is None, reason="needs gcc")
NO_WORDS = {"named with blanks": ["a b", "c"], "named by comments": ["*/", "c"]}
ODD = ["a", '"', "\\", "?", "'", "%"]
FORMS: dict[str, Callable[..., Any]] = {"machine": machine, "lookup": lookup}
Case = tuple[Any, list[list[str]], list[list[str]]]
"""What was extracted, lines of tokens, and the words that the model answers to each."""


def answers_of(model: Any, names: list[str], lines: list[Ids], start: list[int]) -> list[list[str]]:
    """Ask the model itself, after all lines that it sees as many tokens of at once."""
    context = model.context if isinstance(model, Function) else model.config.context
    read = model.rows if isinstance(model, Function) else model
    seen = [(*start, *ids)[-context:] for ids in lines]
    said: dict[Ids, str] = {}
    for length in {len(ids) for ids in seen}:
        alike = [ids for ids in seen if len(ids) == length]
        answers = read(torch.tensor(alike))[:, -1].argmax(-1).tolist()
        said |= {ids: names[answer] for ids, answer in zip(alike, answers, strict=True)}
    return [[said[ids]] for ids in seen]


@cache
def foretold(form: str, kind: str) -> Case:
    """Extract one of several models, and ask it for all of its domain and, where that is endless, for more."""
    numbers = ["0", "1", "2"]
    if kind == "by hand":
        model, names, choices, lines = aab.model(), ["a", "b"], {"names": "ab"}, sequences(2, 5)
    elif kind == "sliding":
        model, names, choices, lines = lively("softmax"), numbers, {"overflow": "slide"}, sequences(3, 5)
    elif kind == "started":
        model, names = lively("softmax"), ["x", "y", "z"]
        choices = {"start": "y", "names": names, "overflow": "slide"}
        lines = [tuple(2 * at for at in ids) for ids in sequences(2, 6, 0)]
    elif kind == "oddly named":
        model = foretelling(lambda ids: (ids[-1] + len(ids)) % 6, vocab_size=6, context=3)
        names, choices, lines = (
            ODD,
            {"names": ODD, "alphabet": ODD[1:]},
            [tuple(1 + at for at in ids) for ids in sequences(5, 3)],
        )
    else:  # names that are no words are written as ids
        model = of_table({ids: sum(ids) % 2 for ids in sequences(2, 3)}, 2, 3)
        names, choices, lines = ["0", "1"], {"names": NO_WORDS[kind]}, sequences(2, 3)
    start = [1] if kind == "started" else []
    said = answers_of(model, names, lines, start)
    return FORMS[form](model, **choices), [[names[at] for at in ids] for ids in lines], said


@cache
def whole() -> Case:
    found = whole_lookup(Function(sorting, vocab_size=3, context=4, causal=False), names="abc", longest=3)
    lines = sequences(3, 3)
    return found, [["abc"[at] for at in ids] for ids in lines], [["abc"[at] for at in sorted(ids)] for ids in lines]


@cache
def looped() -> Case:
    model, prompts = lively("softmax"), [(0,), (1, 2), (2, 2, 1, 0, 1)]
    said = [model.generate(torch.tensor([ids]), 10, overflow="slide")[0, len(ids) :].tolist() for ids in prompts]
    return closed_loop(model, prompts), [list(map(str, ids)) for ids in prompts], [list(map(str, ids)) for ids in said]


KINDS = ["by hand", "sliding", "started", "oddly named", *NO_WORDS]
CASES = [
    pytest.param(lambda form=form, kind=kind: foretold(form, kind), id=f"{form}-{kind}")
    for form in FORMS
    for kind in KINDS
]
CASES += [pytest.param(whole, id="whole"), pytest.param(looped, id="closed loop")]
every_case = pytest.mark.parametrize("case", CASES)


def answered(command: list[str], lines: list[list[str]]) -> list[list[str]]:
    given = "".join(" ".join(words) + "\n" for words in lines)
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def compiled(source: str, folder: Path) -> str:
    assert GCC is not None
    (folder / "code.c").write_text(source)
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([GCC, *strict, "-o", str(folder / "code"), str(folder / "code.c")], check=True)
    return str(folder / "code")


@every_case
def test_the_python_says_on_the_whole_domain_what_the_model_says(case: Callable[[], Case]) -> None:
    found, lines, said = case()
    module: dict[str, Any] = {"__name__": "alone"}
    exec(compile(found.python(), "alone.py", "exec"), module)
    by_id = (lines[0][0:1] and lines[0][0].isdigit()) or found.domain.names is None
    tokens = [[int(word) for word in words] if by_id else words for words in lines]
    if found.kind == "closed loop":
        answers = [module["generate"](words, 10) for words in tokens]
    elif found.kind == "whole look-up":
        answers = [module["tokens_of"](words) for words in tokens]
    else:
        answers = [[module["next_token"](words)] for words in tokens]
    assert [[str(token) for token in row] for row in answers] == said


@needs_gcc
@every_case
def test_the_c_says_on_the_whole_domain_what_the_model_says(case: Callable[[], Case], tmp_path: Path) -> None:
    found, lines, said = case()
    assert answered([compiled(found.c(), tmp_path)], lines) == said


@pytest.mark.parametrize("case", [lambda: foretold("machine", "by hand"), looped, whole])
def test_the_python_answers_lines_when_it_is_run(case: Callable[[], Case], tmp_path: Path) -> None:
    found, lines, said = case()
    (tmp_path / "code.py").write_text(found.python())
    assert answered([sys.executable, "-I", str(tmp_path / "code.py")], lines) == said


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tokens", ["", "aabaab", "axa"])
def test_the_python_refuses_what_was_not_checked(form: str, tokens: str) -> None:
    module: dict[str, Any] = {"__name__": "alone"}
    exec(foretold(form, "by hand")[0].python(), module)
    with pytest.raises(ValueError, match=r"give at|not of the alphabet"):
        module["next_token"](tokens)


@needs_gcc
@pytest.mark.parametrize(
    ("case", "refused"),
    [
        (lambda: foretold("machine", "by hand"), [[], list("aabaab"), list("axa")]),
        (lambda: foretold("lookup", "by hand"), [[], list("aabaab"), list("axa")]),
        (whole, [[], list("aabc"), ["d"]]),
        (looped, [[], ["0", "0"], ["1", "0"], ["3"]]),
    ],
)
def test_the_c_refuses_what_was_not_checked(case: Callable[[], Case], refused: list[list[str]], tmp_path: Path) -> None:
    found, lines, said = case()
    assert answered([compiled(found.c(), tmp_path)], [*refused, lines[0]]) == [*[["?"]] * len(refused), said[0]]


@needs_gcc
def test_a_last_line_without_an_end_is_answered_and_one_too_long_is_not(tmp_path: Path) -> None:
    command = compiled(machine(aab.model(), names="ab", overflow="slide").c(), tmp_path)
    done = subprocess.run([command], input="a a", capture_output=True, text=True, check=True)
    assert done.stdout == "b\n"
    long = subprocess.run([command], input="a " * 40_000 + "\n", capture_output=True, text=True, check=True)
    assert long.stdout.splitlines()[0] == "?"


def test_the_smaller_form_is_extracted_and_the_machine_of_two_alike() -> None:
    found = extract(aab.model(), names="ab")
    assert (found.kind, found.size, found.verified) == ("machine", 3, 62)
    previous = foretelling(lambda ids: ids[-2] if len(ids) > 1 else ids[0], vocab_size=3, context=4)
    assert extract(previous).kind == "lookup"
    assert lookup(previous).size < machine(previous).size
    counting = foretelling(lambda ids: sum(ids) % 2, vocab_size=2, context=6)
    assert extract(counting).kind == "machine"
    assert machine(counting).size == 2 < lookup(counting).size


def test_the_code_says_what_it_is_and_what_was_checked() -> None:
    for text in (extract(aab.model(), names="ab", overflow="slide").python(), extract(aab.model(), names="ab").c()):
        assert "a machine of 3 states" in text
        assert "all 62 sequences of up to 5 tokens" in text
