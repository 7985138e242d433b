"""What a picture is: its finding, the drawing, what the marks mean, and the numbers behind it.

It shows itself in a notebook, and saves itself as a file that needs nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Template
from markupsafe import Markup

from headstock.checkpoints.files import write_atomically
from headstock.errors import UserError
from headstock.pictures.labels import showable
from headstock.pictures.pages import SHARED, style, templates
from headstock.pictures.standalone import standing_alone


@dataclass(frozen=True)
class Table:
    """The numbers behind a picture; a row's first cell names it."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A figure of a page: its finding as a title, the drawing, what the marks mean, numbers and their source."""

    name: str
    title: str
    drawing: Markup
    caption: str
    table: Table
    source: str = ""

    def save(self, path: str | Path) -> Path:
        """Write the drawing as .svg, or title, drawing, caption and numbers as .html; give the path.

        Either file stands alone and follows light and dark. Raises UserError for another ending, and where the file
        cannot be written; what stood there before is then still whole.
        """
        path = Path(path)
        match path.suffix.lower():
            case ".svg":
                text = standing_alone(self.drawing)
            case ".html":
                text = self._html(whole=True)
            case ending:
                raise UserError(
                    f"{path} ends in {ending!r}: a picture is saved as .svg (the drawing) or .html (with its numbers)."
                    if ending
                    else f"{path} has no ending: name it .svg (the drawing) or .html (with its numbers)."
                )
        write_atomically(path, lambda beside: beside.write_text(text, encoding="utf-8"))
        return path

    def _repr_html_(self) -> str:
        """Give the picture as one element with a style that reaches nothing outside it, for a notebook."""
        return self._html(whole=False)

    def _html(self, *, whole: bool) -> str:
        page = _template().render(whole=whole, picture=self, css=style())
        return showable(page.strip() + "\n")


@cache
def _template() -> Template:
    return templates().get_template(f"{SHARED}/alone.html.j2")
