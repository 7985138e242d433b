"""The page of mixers is what the code says now, and every mixer says enough of itself to have a section there."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from headstock.model.mixers import mixer_class, mixer_names
from headstock.model.mixers.base import Mixer

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_mixers", DOCS / "write_mixers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", mixer_names())
def test_every_mixer_gives_its_formula_and_its_source(writer: ModuleType, name: str) -> None:
    first, formula, _, source = writer.told(mixer_class(name))
    assert first.endswith(".")
    assert any("=" in line for line in formula)
    assert any(character.isdigit() for character in source) or name == "uniform"  # a year; an average has none


def test_a_mixer_without_a_source_is_found(writer: ModuleType) -> None:
    class Silent(Mixer):
        """Says nothing.

        w = 1
        """

    with pytest.raises(ValueError, match="Silent: a line, a formula"):
        writer.told(Silent)


def test_the_page_is_what_the_code_says(writer: ModuleType) -> None:
    written = (DOCS / "mixers.md").read_text(encoding="utf-8")
    assert written == writer.page(), "docs/mixers.md is out of date: write it anew with `make mixers`"
