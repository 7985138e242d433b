"""The page of differential attention is what its studies have answered, and its links lead to what is there."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_differential", DOCS / "write_differential.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_as_the_answers_are(writer: ModuleType) -> None:
    assert writer.PAGE.read_text(encoding="utf-8") == writer.page(), "run make differential"


def test_every_claim_of_every_answer_stands_there_with_its_verdict(writer: ModuleType) -> None:
    text = writer.page()
    known = writer.answers()
    assert known
    for answer in known.values():
        for claim in answer["claims"]:
            lines = [line for line in text.splitlines() if line.startswith(f"| {claim['says']} |")]
            assert lines
            assert any(f"**{writer.MARKS[claim['verdict']]}**" in line for line in lines)


def test_every_link_leads_somewhere(writer: ModuleType) -> None:
    links = re.findall(r"\]\(([^)#]+)", writer.page())
    assert links
    for link in links:
        assert (writer.RESULTS / link).exists(), link
