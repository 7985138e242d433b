"""The suite fails on every broken mixer, by the check that is named for what is wrong with it."""

import subprocess
import sys
from pathlib import Path

import pytest

from headstock.conformance.report import Report
from headstock.conformance.suite import CHECKS, check_mixer, check_names
from headstock.errors import UserError
from tests.conformance.broken import FAULTS, Fault

BROKEN = Path(__file__).with_name("broken.py")
CHEAP = [check.name for checks in CHECKS.values() for check in checks if not check.dear]

every_fault = pytest.mark.parametrize("fault", FAULTS, ids=str)


def found(fault: Fault, only: list[str] | None) -> Report:
    return check_mixer(f"{BROKEN}:{fault.kind.__name__}+rope", only=only)


def hold(fault: Fault, report: Report) -> None:
    assert fault.check in report.failed_checks, report.verdict
    assert set(report.failed_checks) <= {fault.check, *fault.also}, report.table()
    for outcome in report.failures:
        assert outcome.found
        assert outcome.law
        assert outcome.usually


@every_fault
def test_each_fault_fails_the_check_that_is_named_for_it(fault: Fault) -> None:
    hold(fault, found(fault, [*CHEAP, fault.check]))


@pytest.mark.full
@every_fault
def test_each_fault_fails_nothing_else_in_the_whole_suite(fault: Fault) -> None:
    hold(fault, found(fault, None))


def test_every_check_is_failed_by_something() -> None:
    failing = {name for fault in FAULTS for name in (fault.check, *fault.also)}
    assert set(check_names()) - failing == {"compiled = eager"}  # a compiler of its own: test_suite.py
    for fault in FAULTS:
        assert bool(fault.also) == bool(fault.because)


def test_nothing_is_wrong_with_what_the_broken_ones_are_made_of() -> None:
    assert check_mixer(f"{BROKEN}:Sound+rope").passed


def test_a_mixer_that_raises_fails_by_its_own_words_and_is_asked_nothing_more() -> None:
    report = check_mixer(f"{BROKEN}:Raises+rope", only=["it reads", "cached = whole"])
    assert [outcome.status for outcome in report.outcomes] == ["failed", "skipped"]
    assert "Raises failed at line" in report.outcomes[0].found
    assert "RuntimeError: no weights today" in report.outcomes[0].found


WRONG = """
from headstock.model.attention import masked_softmax
from headstock.model.mixers.base import ScoreMixer

class Wrong(ScoreMixer):
    def weigh(self, scores_bhqk, visible_bhqk):
        return {}
"""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("masked_softmax(scores_bhqk, visible_bhqk)[0]", "gives weights of shape (4, 9, 9) instead of (batch, head,"),
        ("masked_softmax(scores_bhqk, visible_bhqk).mean(1, True)", "gives weights of shape (3, 1, 9, 9) instead of"),
        ("None", "Wrong gives NoneType instead of (batch, head, query, key), (3, 4, 9, 9)."),
        ("exit(3)", "failed at line 7: SystemExit: 3."),
        ("1 / (visible_bhqk.sum() * {}[0])", "failed at line 7: KeyError: 0."),
    ],
)
def test_what_weigh_gives_back_is_looked_at_before_it_is_spread(tmp_path: Path, given: str, said: str) -> None:
    (tmp_path / "wrong.py").write_text(WRONG.replace("{}", given, 1))
    # In a process of its own, where no annotation of a shape is looked at.
    command = [sys.executable, "-m", "headstock", "check", "wrong.py:Wrong+rope", "--only", "it reads"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert said in " ".join(done.stdout.split())
    assert ".." not in done.stdout


@pytest.mark.parametrize("key", ["context", "vocab_size"])
def test_sizes_that_the_suite_chooses_are_refused(key: str) -> None:
    with pytest.raises(UserError, match=f"'{key}' is not a setting here"):
        check_mixer(f"softmax,{key}=8")


def test_positions_that_a_key_excludes_are_left_out() -> None:
    assert "xpos" not in check_mixer("softmax,causal=false", only=["it reads"]).positions
