"""Reading a person's own study from a file or a module."""

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from headstock.errors import UserError


def module_at(place: str) -> ModuleType:
    """Import `file.py` or `package.module`; raises UserError, with the line, where there is none or it fails."""
    path = Path(place)
    try:
        if path.suffix == ".py":
            return _from_file(path)
        if str(Path.cwd()) not in sys.path:  # the working directory counts, as it does for `python -m`
            sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(place)
    except UserError:
        raise
    except ModuleNotFoundError as error:
        raise UserError(f"{place} cannot be imported: {error}; install it, or name a file, as file.py:STUDY.") from None
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        at = f" at line {lines[-1]}" if lines else ""
        said = f"{type(error).__name__}: {error}".rstrip(": .")
        raise UserError(f"{place} cannot be imported{at}: {said}.") from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UserError(f"there is no file {path}: a study of your own is named as file.py:STUDY.")
    name = f"headstock_study_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
