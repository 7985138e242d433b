"""Setting text for a terminal or a pipe: aligned columns, filled paragraphs, JSON. Never a colour."""

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

WIDEST = 110
GAP = "  "


def width() -> int:
    """Give how many letters a line may have: the terminal's, or enough to read where there is none."""
    return min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns)


def columns(rows: Sequence[Sequence[str]], *, indent: str = "", numbers: Sequence[int] = ()) -> str:
    """Set rows in columns as wide as need be; columns of numbers go to the right, the last one is filled."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(wide) if place in numbers else cell.ljust(wide)
            for place, (cell, wide) in enumerate(zip(row[:-1], widths, strict=False))
        ]
        before = indent + "".join(cell + GAP for cell in cells)
        last = row[-1].rjust(widths[-1]) if len(row) - 1 in numbers else row[-1]
        lines.append(filled(last, before, " " * len(before)))
    return "\n".join(lines)


def filled(text: str, first: str = "", rest: str | None = None) -> str:
    """Fill a paragraph to the width; a word is never broken, and no line is so narrow that it cannot be read."""
    rest = first if rest is None else rest
    room = max(width(), len(rest) + 30)
    wrapped = textwrap.wrap(
        text,
        room,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    return "\n".join(line.rstrip() for line in wrapped) if wrapped else first.rstrip()


@contextmanager
def results_alone() -> Iterator[None]:
    """Keep standard output for results: what a user's mixer prints inside goes to standard error."""
    with redirect_stdout(sys.stderr):
        yield


def print_json(value: Any) -> None:
    """Print a value as JSON to standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))
