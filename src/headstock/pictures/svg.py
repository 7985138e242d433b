"""Drawing by matplotlib, given as SVG that lies in a page: text stays text, colours follow the page, nothing has an id.

What matplotlib writes is a file of its own: with ids that repeat from picture to picture, a style for every element of
the page it is put in, and namespaces. Only its paths and texts are kept, with markers set in place.
"""

import re
import warnings
from collections.abc import Callable, Iterator
from io import StringIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from markupsafe import Markup, escape

from headstock.pictures.labels import showable
from headstock.pictures.palette import as_variables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DROPPED_STYLES = ("font-family", "stroke-dashoffset", "stroke-linejoin", "stroke-linecap")
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "headstock",
    "text.parse_math": False,  # a label may hold dollars
    "font.size": 11.5,
}

Margins = tuple[float, float, float, float]
"""Left, right, top and bottom, in pixels."""


def drawn(width: float, height: float, margins: Margins, says: str, draw: "Callable[[Axes], None]") -> Markup:
    """Give an inline SVG of `width` × `height` pixels with one pair of axes, filled by `draw`; `says` is read aloud.

    A picture that says nothing is an ornament beside words, and hidden from ears.

    The settings of the caller's matplotlib neither show in it nor change by it.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    left, right, top, bottom = margins
    written = StringIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        # Text is set by the reader's browser, so a letter that matplotlib's own font lacks is no loss.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        box = (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
        draw(figure.add_axes(box))
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    marks = as_variables("".join(_marks(ElementTree.fromstring(showable(written.getvalue())), {})))
    said = escape(says)
    heard = Markup('role="img" aria-label="{}"').format(said) if says else Markup('aria-hidden="true"')
    title = Markup("<title>{}</title>").format(said) if says else ""
    return Markup(f'<svg class="hs-picture" {heard} viewBox="0 0 {width:g} {height:g}">{title}{marks}</svg>')


def _marks(node: ElementTree.Element, defined: dict[str, ElementTree.Element]) -> Iterator[str]:
    """Give the paths and texts under a node in order; what `use` names is put where it is used."""
    for child in node:
        match child.tag.rpartition("}")[2]:
            case "defs":
                defined.update((part.attrib["id"], part) for part in child if "id" in part.attrib)
            case "use":
                yield _used(child, defined)
            case "path":
                yield _path(child.attrib["d"], child.attrib.get("style", ""), child.attrib.get("transform"))
            case "text":
                yield _text(child)
            case "g":
                yield from _marks(child, defined)


def _used(use: ElementTree.Element, defined: dict[str, ElementTree.Element]) -> str:
    name = next(value for key, value in use.attrib.items() if key.endswith("href")).lstrip("#")
    x, y = (float(use.attrib.get(axis, 0)) for axis in "xy")
    style = ";".join([defined[name].attrib.get("style", ""), use.attrib.get("style", "")])
    return _path(defined[name].attrib["d"], style, f"translate({x:.1f} {y:.1f})" if x or y else None)


def _path(outline: str, style: str, transform: str | None) -> str:
    numbers = re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), outline)
    moved = f' transform="{transform}"' if transform else ""
    return f'<path d="{" ".join(numbers.split())}" style="{_style(style)}"{moved}/>'


def _text(text: ElementTree.Element) -> str:
    places = "".join(f' {key}="{escape(text.attrib[key])}"' for key in ("x", "y", "transform") if key in text.attrib)
    return f'<text{places} style="{_style(text.attrib.get("style", ""))}">{escape(text.text or "")}</text>'


def _style(style: str) -> str:
    """Keep each property once, the last one said, without those that the page's own style sets."""
    pairs = (part.partition(":") for part in style.split(";") if part.strip())
    kept = {name.strip(): value.strip() for name, _, value in pairs}
    if shorthand := kept.pop("font", ""):  # how matplotlib before 3.10 says a text's size
        kept["font-size"] = next(word for word in shorthand.split() if word.endswith("px"))
    return str(escape(";".join(f"{name}:{value}" for name, value in kept.items() if name not in _DROPPED_STYLES)))
