"""The suite fails on every broken mixer, by the check that is named for what is wrong with it."""

from pathlib import Path

import pytest

from headstock.conformance.report import Report
from headstock.conformance.suite import CHECKS, check_mixer, check_names
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
