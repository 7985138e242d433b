"""A program is named as one of the zoo, or as FILE.py:NAME."""

from pathlib import Path

import pytest

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.named import program_named

FILE = """
from headstock import programs as p
hist = p.width(p.select(p.tokens, p.tokens, "=="))

@p.program(vocabulary="xy")
def counted():
    return hist

def unnamed():
    return p.where(hist > 1, 1, 0)

def fails():
    return 1 / 0

def looks():
    return p.select(hist, 1, "=>")

plain = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_a_name_of_the_zoo_is_that_program() -> None:
    assert program_named("shift,by=2").name == "shift,by=2"
    with pytest.raises(UserError, match="did you mean 'sort'"):
        program_named("sorrt")


def test_an_expression_a_program_and_a_function_can_be_named(file: Path) -> None:
    for name, values in (("hist", [2, 1, 2]), ("counted", [2, 1, 2]), ("unnamed", [1, 0, 1])):
        program = program_named(f"{file}:{name}")
        assert program.name == name
        assert p.interpret(program, "xyx") == values
    assert program_named(f"{file}:counted").vocabulary == ("x", "y")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("his", "holds no program 'his': did you mean 'hist'?"),
        ("plain", "is 3: name an expression, a Program, or a function of one."),
        ("fails", "fails fails at line 13: ZeroDivisionError: division by zero."),
        ("looks", r"unknown predicate '=>' \(mine.py:16\)"),
        ("", "holds no program ''"),
    ],
)
def test_what_is_no_program_is_refused(file: Path, name: str, part: str) -> None:
    with pytest.raises(UserError, match=part if part[0] == "u" else part.replace("?", r"\?").replace("fails ", "", 1)):
        program_named(f"{file}:{name}")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no file"):
        program_named(str(tmp_path / "nowhere.py:x"))
    with pytest.raises(UserError, match="names a file and no program in it"):
        program_named("mine.py")
    for text, part in (("x = (", "cannot be read as Python"), ("\nimport nowhere_at_all", "imported at line 2")):
        path = tmp_path / "bad.py"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=part):
            program_named(f"{path}:x")
