"""What HTML pages share: their templates and their style, light and dark, reaching nothing outside the class `hs`.

`page.html.j2` here has what any page is made of; a page elsewhere takes it in by the name of this package,
`{% from "headstock.pictures/page.html.j2" import page, figure, numbers %}`.
"""

from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from headstock.pictures import palette

SHARED = "headstock.pictures"


def templates() -> Environment:
    """Give an environment in which a template is named by its package and its file: "PACKAGE/FILE"."""
    return Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def style(*more: str) -> Markup:
    """Give the style of any page, with that of further packages, each a file `style.css`, after it."""
    return Markup(palette.css() + "".join(resource(package, "style.css") for package in (SHARED, *more)))


def resource(package: str, name: str) -> str:
    """Give the text of a file that lies in a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _template(name: str) -> str:
    package, _, file = name.partition("/")
    return resource(package, file)
