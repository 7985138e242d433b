"""Imports run one way, in the order of the house: a folder imports only itself and folders above it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import headstock

PACKAGE = Path(headstock.__file__).parent
ORDER = [
    "model",
    "checkpoints",
    "training",
    "programs",
    "tasks",
    "pictures",
    "instruments",
    "conformance",
    "comparison",
    "studies",
    "studio",
    "cli",
]
FOR_ALL = {"errors", "settings", "user_code"}
ENTRY_POINTS = {"headstock.mixers"}
"""Groups of entry points, which are names and no modules."""
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(file: Path, source: str) -> Iterator[tuple[int, str]]:
    """Give the line and the full name of every import, wherever in the file it stands, `importlib`'s too."""
    package = ("headstock", *file.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            place = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{place}.{name.name}") for name in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in ENTRY_POINTS:
            continue
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("headstock."):
            yield node.lineno, node.value.replace(":", ".")  # a name to be imported late


def offences(file: Path, source: str) -> list[str]:
    """Say which imports of ours a file may not have."""
    place = file.relative_to(PACKAGE).parts
    if place in (("__init__.py",), ("__main__.py",)):
        return []  # the public names, lazily, and the command: they look down on everything
    mine = place[0] if len(place) > 1 else place[0].removesuffix(".py")
    allowed = set(FOR_ALL) if mine in FOR_ALL else FOR_ALL | set(ORDER[: ORDER.index(mine) + 1]) | {"__version__"}
    found = []
    for line, name in imported(file, source):
        top, _, rest = name.partition(".")
        if top == "headstock" and rest.split(".")[0] not in allowed:
            found.append(f"{'/'.join(place)}:{line}: {mine} imports {name}")
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_run_one_way(file: Path) -> None:
    assert offences(file, file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import headstock.training.loop",
        "from headstock.training import loop",
        "from headstock import training",
        "from ..training import loop",
        "from .. import cli",
        "def later():\n    from headstock.cli import main",
        "importlib.import_module('headstock.comparison.statistics.verdicts')",
        "NAMES = {'compare': 'headstock.comparison:compare'}",
    ],
)
def test_an_import_of_what_lies_below_is_found(source: str) -> None:
    assert len(offences(PACKAGE / "model" / "cache.py", source)) == 1


@pytest.mark.parametrize(
    "source", ["from headstock.model import cache", "from . import cache", "import headstock.errors"]
)
def test_an_import_of_what_lies_above_or_beside_is_none_of_its_business(source: str) -> None:
    assert offences(PACKAGE / "model" / "config.py", source) == []


def test_every_folder_has_its_place_in_the_order() -> None:
    folders = {file.relative_to(PACKAGE).parts[0] for file in FILES if len(file.relative_to(PACKAGE).parts) > 1}
    modules = {file.stem for file in FILES if file.parent == PACKAGE} - {"__init__", "__main__"}
    assert folders <= set(ORDER)
    assert modules == FOR_ALL


def test_what_all_may_import_imports_nothing_of_the_house() -> None:
    assert offences(PACKAGE / "errors.py", "from headstock.model import cache") != []
