"""The conformance suite on the command line."""

import json
from pathlib import Path

from tests.cli.conftest import Headstock

MINE = '''
from headstock.model.attention import masked_softmax
from headstock.model.mixers.base import ScoreMixer

class Mine(ScoreMixer):
    """Softmax that talks."""

    weights_are = "normalised"

    def weigh(self, scores_bhqk, visible_bhqk):
        print("weighing")
        return masked_softmax(scores_bhqk, visible_bhqk)

class Peeks(Mine):
    """Softmax that looks ahead."""

    def weigh(self, scores_bhqk, visible_bhqk):
        return scores_bhqk.softmax(-1)
'''


def test_a_mixer_that_conforms_is_told_by_a_table_and_status_0(headstock: Headstock, here: Path) -> None:
    (here / "mine.py").write_text(MINE)
    said = headstock("check", "mine.py:Mine+rope", "--only", "cached = whole", "--only", "packed = separate")
    assert said.status == 0
    assert said.out.startswith("mine.py:Mine+rope (weights: normalised)")
    assert "  ok    cached = whole     differ by " in said.out
    assert said.out.endswith("mine.py:Mine+rope conforms: 3 passed.\n")
    assert "weighing" not in said.out
    assert "1/3 rope" in said.err


def test_a_mixer_that_does_not_is_told_by_what_failed_and_status_1(headstock: Headstock, here: Path) -> None:
    (here / "mine.py").write_text(MINE)
    said = headstock("check", "mine.py:Peeks", "--only", "the future moves nothing")
    assert said.status == 1
    assert "FAIL" in said.out
    assert "the future moves nothing: Other tokens later on change no logit" in said.out
    assert "usually: the mask is off by one" in said.out
    assert "Peeks does not conform: 7 passed, 7 failed." in said.out
    assert "none: the future moves nothing failed: differ by" in said.err


def test_json_holds_every_outcome(headstock: Headstock) -> None:
    said = headstock("check", "softmax+rope", "--only", "cached = whole", "--json")
    found = json.loads(said.out)
    assert found["passed"] is True
    assert [outcome["check"] for outcome in found["outcomes"]] == ["it reads", "cached = whole"]
    assert found["outcomes"][1]["status"] == "passed"


def test_what_cannot_be_checked_is_told_in_one_sentence(headstock: Headstock) -> None:
    assert "did you mean 'softmax'?" in headstock("check", "sofmax").complaint
    assert "uniform cannot use rope" in headstock("check", "uniform+rope").complaint
    assert "did you mean 'cached = whole'?" in headstock("check", "softmax", "--only", "cached").complaint
    assert "there is no file no.py" in headstock("check", "no.py:Mine").complaint
