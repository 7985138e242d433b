"""Where in its author's file an expression stands, so that every refusal can name the line."""

import linecache
import os
import re
import sys
from dataclasses import dataclass
from functools import cache
from keyword import iskeyword
from pathlib import Path
from types import CodeType, FrameType

_OURS = Path(__file__).parent
_AUTHORED = _OURS / "zoo"
"""Programs of the zoo are written as anybody's are."""
_ASSIGNED = re.compile(r"\s*(\w+)\s*(?::[^=]+)?=(?!=)")


@dataclass(frozen=True)
class Place:
    """A line of a file."""

    file: str
    line: int

    @property
    def text(self) -> str:
        """The line as it is written; empty where the file is not there, as at a prompt."""
        return self.whole.strip()

    @property
    def whole(self) -> str:
        """The line with the space before it."""
        return linecache.getline(self.file, self.line).rstrip()

    @property
    def assigned(self) -> str:
        """The name that the line gives to what it makes; empty where it gives none."""
        found = _ASSIGNED.match(self.text)
        if found and iskeyword(found[1]):  # `try: x = …`
            return ""
        return found[1] if found else ""

    @property
    def is_authored(self) -> bool:
        """Whether a person's program stands there, the zoo's included, and not the language's own words."""
        return not _is_our_file(self.file)

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


def here() -> Place:
    """Give the place of the caller who writes a program: the first frame that is not the language's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_back is not None and _is_ours(frame.f_code):
        frame = frame.f_back
    assert frame is not None
    return Place(frame.f_code.co_filename, frame.f_lineno)


def _is_ours(code: CodeType) -> bool:
    if code.co_filename == "<string>":
        return code.co_name == "__init__"  # a dataclass's own
    if code.co_name == "<module>":
        return False  # the language's own words, such as `tokens`, stand on its own lines
    return _is_our_file(code.co_filename)


@cache
def _is_our_file(file: str) -> bool:
    parents = Path(file).parents
    return _OURS in parents and _AUTHORED not in parents
