"""Python of the user's own: a file that is named, or a module; what fails in it is told with its line."""

import importlib
import importlib.util
import sys
import traceback
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from headstock.errors import UserError


def module_named(place: str, what: str, name: str) -> ModuleType:
    """Import `file.py` or `package.module`; `what` and `name` say what is looked for in it: "a mixer", "Class".

    Raises UserError, with the line where it is the file's, where there is none or it fails.
    """
    return _from_file(Path(place), what, name) if place.endswith(".py") else _by_name(place, name)


def said(error: BaseException) -> str:
    """Give the kind of what was raised, and its words where it has any, without a full stop."""
    return f"{type(error).__name__}: {error}".rstrip(": .")


def at_line(error: BaseException, *files: Path | str) -> str:
    """Give " at line 3" for the last line of these files that an error passed; empty where it passed none."""
    named = {str(Path(file).resolve()) for file in files}
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename in named]
    return f" at line {lines[-1]}" if lines else ""


def _by_name(place: str, name: str) -> ModuleType:
    if str(Path.cwd()) not in sys.path:  # the working directory counts, as it does for `python -m`
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(place)
    except UserError:
        raise
    except ImportError as error:
        raise UserError(f"cannot import {place}: {error}; install it, or name a file, as file.py:{name}.") from None
    except (Exception, SystemExit) as error:  # the module's own
        raise UserError(f"{place} cannot be imported: {said(error)}.") from error


def _from_file(path: Path, what: str, name: str) -> ModuleType:
    if not path.is_file():
        raise UserError(f"there is no file {path}: {what} of your own is named as file.py:{name}.")
    path = path.resolve()
    key = f"headstock_user_{sha256(str(path).encode()).hexdigest()[:16]}_{path.stat().st_mtime_ns}"
    if key in sys.modules:  # one object a file, however often it is named
        return sys.modules[key]
    spec = importlib.util.spec_from_file_location(key, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[key]
        if isinstance(error, UserError) or not isinstance(error, (Exception, SystemExit)):
            raise
        how = "read as Python" if isinstance(error, SyntaxError) else "imported"
        raise UserError(f"{path} cannot be {how}{at_line(error, path)}: {said(error)}.") from error
    return module
