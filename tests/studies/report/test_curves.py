from dataclasses import replace

from headstock.studies.report.curves import learning_curves, looks_of_rows
from headstock.studies.results import StudyResult
from tests.studies.report import cases


def on_two_tasks(result: StudyResult) -> StudyResult:
    """Give the study with each trained row on two tasks, one of whose options they share."""
    trained = [row for row in result.rows if row.variant]
    rows = [
        replace(row, name=f"{row.name}-{corpus}", task=f"text,context=32,corpus={corpus}")
        for corpus in ("shakespeare", "python-docs")
        for row in trained
    ]
    return replace(result, rows=rows)


def test_rows_of_two_tasks_are_drawn_apart_by_the_words_that_they_do_not_share() -> None:
    result = on_two_tasks(cases.case("three seeds"))
    drawn = learning_curves(result, looks_of_rows(result))
    assert len(drawn) == 2
    for picture, corpus in zip(drawn, ("shakespeare", "python-docs"), strict=True):
        assert picture.title.startswith(f"On text,corpus={corpus}, ")
        assert f"-{corpus}" not in picture.drawing
        assert "one-head" in picture.drawing


def test_rows_that_differ_in_their_task_alone_look_alike_and_others_do_not() -> None:
    looks = looks_of_rows(on_two_tasks(cases.case("three seeds")))
    assert looks["block-shakespeare"] == looks["block-python-docs"]
    assert looks["block-shakespeare"] != looks["one-head-shakespeare"]
    alone = looks_of_rows(cases.case("three seeds"))
    assert len(set(map(str, alone.values()))) == len(alone)
