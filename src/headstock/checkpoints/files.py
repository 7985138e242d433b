"""Writing files so that a reader never sees half of one: beside the old, then in its place."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from headstock.errors import UserError

HALF_PLACED = ".placing.part"
"""Ends the name of a folder whose files are being put in their places; what is in it has not reached its own."""


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, then put it in its place; the old one stays until then.

    Raises UserError where the disk is full or the folder cannot be written; what stood there before still stands.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(beside)
        _reach_the_disk(beside)
        beside.replace(path)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        with suppress(OSError):
            beside.unlink()


@contextmanager
def written_together(folder: Path) -> Iterator[Path]:
    """Give an empty folder to fill with files; at the end all of them are put into `folder`, or, on any error, none.

    Raises UserError as write_atomically does.
    """
    beside = folder / f".{os.getpid()}.part"
    try:
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        yield beside
        files = sorted(beside.iterdir())
        for file in files:
            _reach_the_disk(file)
        placing = beside.rename(folder / f".{os.getpid()}.{time.time_ns()}{HALF_PLACED}")
        for file in files:
            (placing / file.name).replace(folder / file.name)
        for placed in folder.glob(f".*{HALF_PLACED}"):
            shutil.rmtree(placed, ignore_errors=True)
    except OSError as error:
        raise unwritable(folder, error) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def is_half_placed(folder: Path) -> bool:
    """Say whether a process was killed while it put files together into a folder, so that some may be old, some new."""
    return any(any(left.iterdir()) for left in folder.glob(f".*{HALF_PLACED}"))


def is_left_behind(path: Path) -> bool:
    """Say whether a path is what these two leave where the process is killed in them: it means nothing."""
    return path.name.startswith(".") and path.name.endswith(".part")


def _reach_the_disk(file: Path) -> None:
    """See that a file's bytes are on the disk, and that others may read it as far as the process's mask allows."""
    with file.open("rb+") as opened:
        os.fsync(opened.fileno())
    file.chmod(0o666 & ~_mask())  # some writers give their files to one user alone


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def unwritable(path: Path, error: OSError) -> UserError:
    """Give the sentence for a file that could not be written."""
    return UserError(
        f"{path} could not be written: {error.strerror or error}; free some space or choose another folder."
    )


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, atomically; NaN and infinities are refused by the format."""
    text = as_json(value)
    write_atomically(path, lambda beside: beside.write_text(text, encoding="utf-8"))


def as_json(value: Any) -> str:
    """Give a value as indented JSON."""
    return json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def read_json(path: Path, what: str, otherwise: str = "delete it and run the command again") -> Any:
    """Read JSON; raises UserError, naming `what` it should be, where it is missing or damaged.

    otherwise: what helps where there is no copy of it.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: it should be {what}.") from None
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} is damaged and cannot be read as {what} ({error}): restore it from a copy, or {otherwise}."
        ) from None
