from headstock.comparison.report import writing as write
from headstock.comparison.report.summaries import Solving
from headstock.pictures import numbers
from tests.comparison.report import cases, example


def test_an_interval_is_written_with_the_ends_that_its_sentence_says():
    for verdict in example.plain().verdicts:
        if verdict.claim and verdict.interval is not None:
            low, high = verdict.interval
            assert low is not None
            assert high is not None
            for end in numbers.outwards(low, high):
                assert end.lstrip("−") in verdict.sentence


def test_a_median_that_never_came_is_said_to_be_late():
    assert write.steps_in_words(Solving(3, 8, None, 600)) == "not within 600"
    assert write.steps_in_words(Solving(0, 0, None, 600)) == "—"


def test_what_was_not_tested_is_not_called_indistinguishable():
    kinds = {write.kind(verdict) for verdict in cases.nothing_finished().verdicts}
    assert kinds == {"exploratory"}
    kinds = {write.kind(verdict) for verdict in cases.with_failures(everywhere=True).verdicts}
    assert "not compared" in kinds
    assert "not distinguishable" not in kinds
