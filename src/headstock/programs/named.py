"""A program by its name on a command line: one of the zoo, or one's own in a file."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from headstock.errors import UserError, near_name
from headstock.programs import zoo
from headstock.programs.nodes import Expression
from headstock.programs.program import NAMELESS, Program, as_program
from headstock.user_code import at_line, module_named, said


def program_named(name: str) -> Program:
    """Give the program that `sort`, `shift,by=2` or `FILE.py:NAME` names; NAME is an expression, a Program, or a
    function that makes one.

    Raises UserError, with the author's line where there is one, for whatever is no program.
    """
    file, _, attribute = name.rpartition(":")
    if file.endswith(".py"):
        return _own(Path(file), attribute)
    if name.endswith(".py"):
        raise UserError(f"{name} names a file and no program in it: write {name}:NAME.")
    return zoo.get(name)


def _own(path: Path, attribute: str) -> Program:
    module = module_named(str(path), "a program", "NAME")
    found = vars(module).get(attribute)
    if found is None:
        known = [name for name, value in vars(module).items() if _could_be(value, module)]
        near = near_name(attribute, known) if known else "it has none at all."
        raise UserError(f"{path} holds no program {attribute!r}: {near}")
    if not _could_be(found, module) and not callable(found):
        raise UserError(f"{path}:{attribute} is {found!r:.60}: name an expression, a Program, or a function of one.")
    try:
        made = found if isinstance(found, (Program, Expression)) else found()
        if not isinstance(made, (Program, Expression)) and not callable(made):
            raise UserError(f"{path}:{attribute} gives {made!r:.60}: let it give an expression or a Program.")
        made = as_program(made)
        return replace(made, name=attribute) if made.name == NAMELESS else made
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{path}:{attribute} fails{at_line(error, path)}: {said(error)}.") from error


def _could_be(value: Any, module: ModuleType) -> bool:
    return isinstance(value, (Program, Expression)) or (
        callable(value) and getattr(value, "__module__", "") == module.__name__
    )
