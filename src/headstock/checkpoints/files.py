"""Writing files so that a reader never sees half of one: beside the old, then in its place."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headstock.errors import UserError


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, then put it in its place; the old one stays until then.

    Raises UserError where the disk is full or the folder cannot be written; what stood there before still stands.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(beside)
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise UserError(
            f"{path} could not be written: {error.strerror or error}; free some space or choose another folder."
        ) from None
    finally:
        beside.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, atomically; NaN and infinities are refused by the format."""
    text = json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    write_atomically(path, lambda beside: beside.write_text(text, encoding="utf-8"))


def read_json(path: Path, what: str) -> Any:
    """Read JSON; raises UserError, naming `what` it should be, where it is missing or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: it should be {what}.") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is damaged and cannot be read as {what}: {error}.") from None
