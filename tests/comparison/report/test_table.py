import re
from dataclasses import replace
from statistics import fmean

import pytest

from headstock.comparison.report.table import as_text
from headstock.pictures.labels import showable
from tests.comparison.report import cases, example


@pytest.fixture(params=cases.CASES)
def case(request):
    return cases.case(request.param)


def rows_of(text, heading):
    """The cells of the lines below a heading, up to the notes."""
    lines = text[text.index(heading) :].splitlines()[2:]
    return {line.split()[0]: line.split()[1:] for line in lines[:3]}


def test_every_verdict_sentence_comes_before_the_first_number_of_the_tables(case):
    words = " ".join(as_text(case).split())
    places = [words.index(" ".join(showable(verdict.sentence).split())) for verdict in case.verdicts]
    assert max(places, default=0) < words.find("held-out train") or not places


def test_no_line_is_wider_than_a_terminal(case):
    assert max(map(len, as_text(case).splitlines())) <= 100


def test_the_same_comparison_gives_the_same_text_without_codes_or_trailing_blanks(case):
    text = as_text(case)
    assert text == as_text(case)
    assert "\x1b" not in text
    assert not re.search(r"[ \t]+$", text, re.MULTILINE)


def test_no_missing_number_is_written_as_a_number(case):
    assert not re.search(r"\b(nan|inf|None)\b", as_text(case).replace("the loss is nan at step", ""))


def test_a_claim_is_marked_and_what_is_no_claim_is_not():
    plain = cases.case("plain")
    text = as_text(plain)
    assert {verdict.claim for verdict in plain.verdicts} == {True, False}
    for verdict in plain.verdicts:
        assert f"{'*' if verdict.claim else '-'} {verdict.sentence[:40]}" in text


def test_the_numbers_are_those_of_the_comparison():
    plain = cases.case("plain")
    text = as_text(plain)
    for task, heading in zip(plain.tasks, ("crossing: accuracy", "text: bits per byte"), strict=True):
        for label, cells in rows_of(text, heading).items():
            arm = next(arm for arm in task.arms if arm.label == label)
            places = len(cells[0].partition(".")[2])
            for split, cell in (("held-out", cells[0]), ("train", cells[3])):
                mean = fmean(run.metrics[split][task.metric] for run in arm.cells)
                assert float(cell) == pytest.approx(mean, abs=0.51 * 10**-places)
        for label, cells in rows_of(text, f"{task.name}: cost").items():
            cost = next(arm.cost for arm in task.arms if arm.label == label)
            assert [int(cell.replace(",", "")) for cell in cells[:4]] == [
                *(cost.d_ff, cost.parameters, cost.flops_per_token, cost.cache_bytes)
            ]


def test_a_run_that_did_not_solve_is_late_and_not_left_out():
    uniform = rows_of(as_text(cases.case("plain")), "crossing: accuracy")["uniform"]
    assert " ".join(uniform[4:10]) == "0 of 8 not within 600"


def test_a_failed_run_is_named_with_its_reason():
    assert "differential failed on seed 3: the loss is nan at step 212." in as_text(cases.case("one run failed"))


def test_a_task_that_nobody_solved_is_not_ranked():
    plain = cases.case("plain")
    unsolved = example.comparison([replace(plain.tasks[0], arms=plain.tasks[0].arms[2:])], 8)
    assert "they are not ranked" in as_text(unsolved)
    assert "they are not ranked" not in as_text(plain)


def test_an_exploratory_plan_says_so_above_everything_else():
    assert "EXPLORATORY" in as_text(cases.case("exploratory")).splitlines()[1]
    assert "EXPLORATORY" not in as_text(cases.case("plain"))


def test_labels_cut_short_stay_apart():
    lines = [line for line in as_text(cases.case("long labels")).splitlines() if line.startswith("  …")]
    assert len({line.split("  ")[1] for line in lines}) == 2


def test_a_fixed_model_has_neither_a_spread_nor_steps():
    text = as_text(cases.case("a fixed baseline"))
    crossing = rows_of(text, "crossing: accuracy")
    assert "±" not in crossing["softmax"]
    assert crossing["softmax"][2:5] == ["yes", "not", "trained"]
    assert "±" in crossing["differential"]
    assert "softmax is a fixed model: one run, so no ±." in text
    assert rows_of(text, "text: cost")["softmax"][4:7] == ["not", "trained", "—"]
    assert rows_of(text, "text: cost")["differential"][4] != "not"


def test_what_was_not_tested_is_not_said_to_be_corrected_for():
    assert "Nothing was tested, for fixed models have no seeds; look 1" in as_text(cases.case("only fixed models"))
    assert "Corrected for 4 tests (Holm)" in as_text(cases.case("two fixed models"))
