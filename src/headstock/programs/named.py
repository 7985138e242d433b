"""A program by its name on a command line: one of the zoo, or one's own in a file."""

import importlib.util
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from headstock.errors import UserError, near_name
from headstock.programs import zoo
from headstock.programs.nodes import Expression
from headstock.programs.program import NAMELESS, Program, as_program


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
    module = _module(path)
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
        raise UserError(f"{path}:{attribute} fails{_at(error, path)}: {_said(error)}.") from error


def _could_be(value: Any, module: ModuleType) -> bool:
    return isinstance(value, (Program, Expression)) or (
        callable(value) and getattr(value, "__module__", "") == module.__name__
    )


def _module(path: Path) -> ModuleType:
    if not path.is_file():
        raise UserError(f"there is no file {path}: a program of your own is named as FILE.py:NAME.")
    name = f"headstock_program_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if isinstance(error, UserError):
            raise
        how = "read as Python" if isinstance(error, SyntaxError) else "imported"
        raise UserError(f"{path} cannot be {how}{_at(error, path)}: {_said(error)}.") from error
    return module


def _at(error: BaseException, path: Path) -> str:
    file = str(path.resolve())
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" at line {lines[-1]}" if lines else ""


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": .")
