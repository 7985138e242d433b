"""The page of programs lists the zoo as it is."""

import inspect
from pathlib import Path

from headstock.programs import zoo

PAGE = Path(__file__).parent.parent / "docs" / "programs.md"


def row(name: str) -> str:
    """Give the line of the page's table that tells of a program."""
    make = zoo.PROGRAMS[name]
    program = make()
    choices = ", ".join(f"{key}={choice.default}" for key, choice in inspect.signature(make).parameters.items())
    modes = "both" if len(program.modes) > 1 else program.modes[0]
    return f"| `{name}` | {choices} | {program.says.splitlines()[0]} | {modes} |"


def test_the_page_lists_every_program_of_the_zoo_with_what_it_says_of_itself():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    first = lines.index("| program | choices | gives | modes |") + 2
    assert lines[first : first + len(zoo.PROGRAMS) + 1] == [*map(row, zoo.PROGRAMS), ""]
