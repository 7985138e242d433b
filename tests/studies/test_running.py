"""A study is run, stopped, gone on with, changed and opened again; what is there is never computed twice."""

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headstock import tasks
from headstock.comparison.single import open_model, task_of
from headstock.errors import UserError
from headstock.studies import running
from headstock.studies.base import Claim, Effort, Measured, Opened, Row, Study
from headstock.studies.figures import figure, perplexity
from headstock.studies.forecast import foreseen
from headstock.studies.measuring import code_of
from headstock.studies.plan import make_plan
from headstock.studies.results import StudyResult
from headstock.studies.running import run_study
from headstock.studies.store import StudyStore
from tests.studies.conftest import Again, Toy
from tests.studies.toy import STUDY, TINY, a_third, biggest_weight

LEFT_OUT = ("model.safetensors", "tokenizer.json", "workers.log", ".lock")
"""What is not committed with a study's results."""


def numbers(result: StudyResult) -> list[Any]:
    """Give all that was computed, without how long it took."""
    return [
        (row.name, run.seed, run.status, dict(run.figures), dict(run.details), run.curve)
        for row in result.rows
        for run in row.runs
    ]


def written_at(folder: Path) -> dict[str, int]:
    """Give when each file of a result was written."""
    files = [*folder.glob("cells/*/result.json"), *folder.glob("cells/*/figures.json"), *folder.glob("rows/*.json")]
    return {str(file.relative_to(folder)): file.stat().st_mtime_ns for file in files}


def forget_weights(folder: Path) -> None:
    """Leave of a study's folder what is committed."""
    for file in [*folder.rglob("*")]:
        if file.name in LEFT_OUT:
            file.unlink()


def test_a_study_is_answered_and_its_folder_reads_on_its_own(toy: Toy) -> None:
    result, folder = toy
    verdicts = [judgement.verdict for judgement in result.judgements]
    assert verdicts == ["not decidable", "not reproduced", "not decidable", "reproduced"]
    assert result.title == "A toy: 1 of 4 claims reproduced, 1 not reproduced, 2 not decidable at this budget"
    assert [[run.status for run in row.runs] for row in result.rows] == [["finished"] * 2] * 3
    assert set(result.row("softmax").runs[0].figures) >= {"perplexity", "train_perplexity", "parameters", "biggest"}
    details = result.details("softmax")
    assert details is not None
    assert max(details["sizes"]) == result.row("softmax").values("biggest")[0]

    kept = json.loads((folder / "study.json").read_text())
    assert kept["verdicts"] == {"reproduced": 1, "not reproduced": 1, "not decidable": 2}
    assert kept["rows"][0]["runs"][1]["figures"]["perplexity"] == result.row("average").values("perplexity")[1]
    page = (folder / "README.md").read_text()
    for part in (
        result.title,
        "| average | a plain average | ",
        "| about 1 |",
        "run_study(STUDY, 'quick')  # of the study toy",
        "Nothing differs",
    ):
        assert part in page
    plan = json.loads((folder / "plan.json").read_text())
    assert (plan["study"], plan["budget"], plan["seeds"], len(plan["rows"])) == ("toy", "quick", 2, 3)


def test_a_trained_row_opens_as_any_run_does(toy: Toy) -> None:
    result, folder = toy
    cell = folder / result.row("softmax").runs[1].folder
    assert open_model(cell).config.mixer == "softmax"
    assert task_of(cell).name == "crossing"
    with pytest.raises(UserError, match="holds a study, which has many models"):
        open_model(folder)


def test_what_is_there_is_not_computed_again_and_gives_the_same_page(toy: Toy, copied: Path, again: Again) -> None:
    before = written_at(copied)
    pages = {name: (copied / name).read_text() for name in ("README.md", "study.json", "report.html")}
    result, trained = again()
    assert trained == []
    assert written_at(copied) == before
    assert numbers(result) == numbers(toy[0])
    same = {name: (copied / name).read_text() for name in pages}
    assert same == pages


def test_results_stand_without_weights_as_they_are_committed(toy: Toy, copied: Path, again: Again) -> None:
    forget_weights(copied)
    result, trained = again()
    assert trained == []
    assert numbers(result) == numbers(toy[0])
    assert not (copied / "again").exists()


def test_a_measurement_that_is_missing_with_its_weights_is_made_of_a_second_training(
    toy: Toy, copied: Path, again: Again
) -> None:
    forget_weights(copied)
    (gone,) = copied.glob("cells/crossing-softmax-seed1-*/figures.json")
    gone.unlink()
    kept = {name: at for name, at in written_at(copied).items() if name.endswith("result.json")}
    result, trained = again()
    assert trained == ["softmax 1"]
    assert numbers(result) == numbers(toy[0])
    assert result.notes == (
        "softmax seed 1 was trained a second time, for its weights were gone: it ended with the same loss.",
    )
    assert {name: at for name, at in written_at(copied).items() if name.endswith("result.json")} == kept
    later, trained = again()
    assert trained == []
    assert later.notes == result.notes


def test_weights_that_are_damaged_can_be_deleted_to_have_them_trained_again(copied: Path, again: Again) -> None:
    (weights,) = copied.glob("cells/crossing-softmax-seed1-*/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:20])
    (weights.parent / "figures.json").unlink()
    with pytest.raises(UserError, match=r"restore it from a copy, or delete .*model.safetensors to have it trained"):
        again()
    weights.unlink()
    assert again()[1] == ["softmax 1"]


def test_a_second_training_that_was_cut_short_is_ended_before_it_is_measured(
    toy: Toy, copied: Path, again: Again
) -> None:
    forget_weights(copied)
    (gone,) = copied.glob("cells/crossing-softmax-seed1-*/figures.json")
    gone.unlink()
    again()
    gone.unlink()
    (whole,) = copied.glob("again/*/result.json")
    whole.unlink()  # as after a kill between the last save and the evaluation
    result, trained = again()
    assert trained == ["softmax 1"]
    assert result.notes == (
        "softmax seed 1 was trained a second time, for its weights were gone: it ended with the same loss.",
    )


def test_a_study_that_has_grown_runs_what_is_new_alone(toy: Toy, copied: Path, again: Again) -> None:
    before = written_at(copied)
    grown = replace(
        STUDY,
        rows=(*STUDY.rows, Row("sink", "attention with a sink", "sink")),
        claims=(*STUDY.claims[:1], Claim("Another.", perplexity("sink"), "50", "made up", at_least=1.0)),
        remarks=("Another remark.",),
    )
    result, trained = again(grown)
    assert trained == ["sink 0", "sink 1"]
    assert {name: at for name, at in written_at(copied).items() if name in before} == before
    assert len(result.judgements) == 2
    assert "Another remark." in (copied / "README.md").read_text()
    assert len(json.loads((copied / "plan.json").read_text())["rows"]) == 4


def smallest_weight(opened: Opened) -> Measured:
    """Measure what the toy measures, and more."""
    model, _ = opened.trained
    least = min(float(tensor.detach().abs().min()) for tensor in model.parameters())
    return Measured({**biggest_weight(opened).figures, "least": least})


def with_another_measure(name: str) -> Study:
    """Give the toy with another measure of softmax, and a claim on one of its figures."""
    rows = tuple(replace(row, measure=smallest_weight) if row.name == "softmax" else row for row in STUDY.rows)
    return replace(STUDY, rows=rows, claims=(Claim("So.", figure("softmax", name), "0", "made up", at_least=0.0),))


def test_it_is_measured_again_where_a_claim_reads_what_only_the_new_code_gives(copied: Path, again: Again) -> None:
    forget_weights(copied)
    before = written_at(copied)
    result, trained = again(with_another_measure("biggest"))  # nobody reads what is new, and it would cost trainings
    assert (trained, written_at(copied)) == ([], before)
    (note,) = result.notes
    assert note.startswith("softmax was measured by code that has changed since: to have it measured again")
    result, trained = again(with_another_measure("least"))
    assert trained == ["softmax 0", "softmax 1"]
    assert result.row("softmax").values("least").keys() == {0, 1}
    assert not any("code that has changed" in note for note in result.notes)
    after = written_at(copied)
    again(with_another_measure("absent"))  # what the code does not give is not looked for again and again
    assert written_at(copied) == after


def test_other_code_measures_again_where_no_training_is_needed_for_it(copied: Path, again: Again) -> None:
    result, trained = again(with_another_measure("biggest"))
    assert trained == []
    assert result.row("softmax").values("least").keys() == {0, 1}
    assert result.notes == ()


def test_what_measures_is_known_by_its_code_and_its_choices_wherever_they_lie_in_memory() -> None:
    def by(choice: object) -> str:
        return code_of(replace(STUDY.rows[2], measure=partial(a_third, choice)))

    assert by(object()) == by(object())
    assert by(1) != by(2)
    assert by(1) != code_of(STUDY.rows[2])


def a_half(opened: Opened) -> Measured:
    return Measured({"third": 0.5})


def raises(opened: Opened) -> Measured:
    raise ValueError("no half")


def test_no_figure_of_other_code_stands_for_a_row_that_trains_nothing(copied: Path, again: Again) -> None:
    def with_formula(measure: Callable[[Opened], Measured]) -> Study:
        return replace(STUDY, rows=tuple(replace(r, measure=measure) if r.name == "formula" else r for r in STUDY.rows))

    forecast = {row.name: row.there for row in foreseen(with_formula(a_half), "quick", out=copied).rows}
    assert forecast == {"average": 2, "softmax": 2, "formula": 0}
    assert again(with_formula(a_half))[0].row("formula").values("third") == {0: 0.5, 1: 0.5}
    result, _ = again(with_formula(raises))
    assert [run.status for run in result.row("formula").runs] == ["failed", "failed"]
    assert result.row("formula").values("third") == {}
    assert again(with_formula(a_third), seeds=1)[0].row("formula").values("third") == {0: 1 / 3}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"budget": "full"}, "budget quick there, budget full here"),
        ({"steps": 3}, "the budget's own steps there, steps 3 here"),
        ({"study": replace(STUDY, name="other")}, "study toy there, study other here"),
    ],
)
def test_another_study_or_budget_in_the_same_folder_is_refused(
    copied: Path, again: Again, asked: dict[str, Any], said: str
) -> None:
    before = {file: file.read_bytes() for file in copied.rglob("*.json")}
    with pytest.raises(UserError, match=said):
        again(**asked)
    assert {file: file.read_bytes() for file in copied.rglob("*.json")} == before


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="is not empty and holds no study"):
        run_study(STUDY, out=tmp_path)
    (tmp_path / "plan.json").write_text('{"request": {}}')
    with pytest.raises(UserError, match="holds something else than a study"):
        run_study(STUDY, out=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "plan.json"]


def test_fewer_seeds_hide_none_that_were_run(toy: Toy, again: Again) -> None:
    result, _ = again(seeds=1)
    assert numbers(result) == numbers(toy[0])


def test_a_seed_more_is_added_and_rows_say_how_many_they_have(copied: Path, again: Again) -> None:
    shorter = replace(STUDY, rows=STUDY.rows[:1], claims=STUDY.claims[:1])
    _, trained = again(shorter, seeds=3)
    assert trained == ["average 2"]
    result, trained = again(seeds=2)
    assert trained == []
    assert [[run.status for run in row.runs] for row in result.rows] == [
        ["finished"] * 3,
        ["finished"] * 2,
        ["finished"] * 2,
    ]
    page = (copied / "README.md").read_text()
    assert "Quick budget, 2 seeds, of some rows 3" in page
    assert "not run yet" not in page


def test_what_one_seed_cannot_decide_is_said_beforehand_of_the_claims_that_read_it(tmp_path: Path) -> None:
    def said(**seeds_of: int) -> list[str]:
        effort = replace(STUDY.efforts["quick"], seeds=1, seeds_of=seeds_of)
        return foreseen(replace(STUDY, efforts={"quick": effort}), "quick", out=tmp_path / "s").undecidable

    one_seed = "One seed says nothing of how far another would be from it: run more with --seeds."
    full_only, rest = said()
    assert full_only.startswith("Not decidable at this budget: Softmax ends below 2.")
    assert rest.startswith("One seed decides no claim of this study")
    left = said(average=2, formula=3)
    assert [sentence for sentence in left if sentence.endswith(one_seed)] == [
        f"Not decidable at this budget: Softmax is a thousand times worse than the average. {one_seed}"
    ]


def test_the_report_is_there_while_rows_that_train_nothing_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SECONDS_BETWEEN", -1.0)
    seen: list[bool] = []

    def looks(opened: Opened) -> Measured:
        seen.append((tmp_path / "s" / "README.md").exists())
        return Measured({"x": 1.0})

    run_study(replace(STUDY, rows=(Row("row", "measures", measure=looks),), claims=()), out=tmp_path / "s")
    assert seen == [False, True]


def test_a_row_with_seeds_of_its_own_has_them_unless_seeds_are_asked_for(copied: Path, again: Again) -> None:
    quick = replace(STUDY.efforts["quick"], seeds_of={"formula": 3, "average": 1})
    apart = replace(STUDY, efforts={"quick": quick})
    result, trained = again(apart, fresh=True)
    assert trained == ["average 0", "softmax 0", "softmax 1"]
    assert [len(row.finished) for row in result.rows] == [1, 2, 3]
    assert [len(judgement.values) for judgement in result.judgements] == [1, 1, 2, 3]
    page = (copied / "README.md").read_text()
    assert "Quick budget, 2 seeds, of some rows 1 or 3" in page
    assert "run_study(STUDY, 'quick')  # of the study toy" in page
    assert "not run yet" not in page
    assert [(row.there, row.seeds) for row in foreseen(apart, "quick", out=copied).rows] == [(1, 1), (2, 2), (3, 3)]

    result, trained = again(apart, seeds=2)
    assert trained == ["average 1"]
    assert [len(row.finished) for row in result.rows] == [2, 2, 3]
    assert "run_study(STUDY, 'quick', seeds=2)  # of the study toy" in (copied / "README.md").read_text()


def test_stopped_after_a_seed_it_has_that_seed_whole_and_ends_with_the_same_numbers(toy: Toy, tmp_path: Path) -> None:
    def stop(event: Any, over: int, total: int) -> None:
        if event.kind == "finished" and over == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(STUDY, out=tmp_path / "s", jobs=1, watch=stop)
    kept = json.loads((tmp_path / "s" / "study.json").read_text())
    statuses = {row["name"]: [run["status"] for run in row["runs"]] for row in kept["rows"]}
    assert [by_seed[0] for by_seed in statuses.values()] == ["finished"] * 3
    assert (statuses["average"][1], statuses["softmax"][1]) == ("finished", "missing")  # as far as it came
    assert (tmp_path / "s" / "report.html").exists()
    before = written_at(tmp_path / "s")
    result = run_study(STUDY, out=tmp_path / "s", jobs=1)
    assert numbers(result) == numbers(toy[0])
    after = written_at(tmp_path / "s")
    assert {name: after[name] for name in before} == before


def one_row(row: Row, *claims: Claim, **settings: Any) -> Study:
    """Give a study of one row with one seed."""
    budget = Effort(1, {"steps": 2, "batch_size": 2, "evaluate_every": 2})
    efforts: dict[Any, Effort] = {"quick": budget}
    made = Study("one", "One", "?", "nowhere", (row,), claims, efforts, task="crossing", settings=TINY)
    return replace(made, **settings)


def test_a_loss_that_is_no_number_is_a_result_and_the_answer_where_a_claim_asks_for_it(tmp_path: Path) -> None:
    row = Row("wild", "a rate that is far too high", "softmax", settings={"lr": 1e30}, published={"perplexity": "308"})
    plain = Claim("It ends above 100.", perplexity("wild"), "308", "made up", at_least=100.0)
    asking = replace(plain, divergence_counts=True)
    result = run_study(one_row(row, plain, spread=0.01), out=tmp_path / "s", jobs=1)
    (judgement,) = result.judgements
    assert judgement.verdict == "not decidable"
    assert "wild failed with seed 0: the" in judgement.why
    assert [run.diverged for run in result.row("wild").runs] == [True]
    assert len(result.failed) == 1

    result = run_study(one_row(row, asking, spread=0.01), out=tmp_path / "s", jobs=1)
    assert result.judgements[0].verdict == "reproduced"
    assert result.failed == []
    assert json.loads((tmp_path / "s" / "study.json").read_text())["claims"][0]["estimate"] == "inf"
    assert "diverged" in result.table()
    result.report(tmp_path / "r.html")


def measures(figures: Callable[[Opened], Any]) -> Study:
    """Give a study that trains nothing and measures this."""
    claim = Claim("So.", figure("row", "x"), "1", "made up", at_least=0.0)
    return one_row(Row("row", "nothing is trained", measure=figures), claim, exact=True)


def fails(opened: Opened) -> Measured:
    raise ZeroDivisionError("no")


def leaves(opened: Opened) -> Measured:
    raise SystemExit("enough")


def gives_one(opened: Opened) -> Measured:
    return Measured({"x": 1.0, "odd": math.nan}, {"list": [1.0, math.inf], "pair": (1, 2)})


def gives_a_dictionary(opened: Opened) -> dict[str, float]:
    return {"x": 1.0}


def test_code_that_fails_in_measuring_is_told_and_tried_again(tmp_path: Path) -> None:
    for code, said in (
        (fails, "ZeroDivisionError: no"),
        (leaves, "SystemExit: enough"),
        (gives_a_dictionary, "dict and not Measured"),
    ):
        result = run_study(measures(code), out=tmp_path / "s")
        assert result.row("row").runs[0].status == "failed"
        assert said in result.judgements[0].why
        assert len(result.failed) == 1
    assert "test_running.py" in (tmp_path / "s" / "workers.log").read_text()

    result = run_study(measures(gives_one), out=tmp_path / "s")
    assert result.judgements[0].verdict == "reproduced"
    run = result.row("row").runs[0]
    assert math.isnan(run.figures["odd"])
    assert run.details == {"list": [1.0, None], "pair": [1, 2]}


def refuses(opened: Opened) -> Measured:
    raise UserError("softmax subtracts no second map: give a differential model.")


def test_an_instrument_that_refuses_a_row_costs_that_row_alone(tmp_path: Path) -> None:
    asked = measures(refuses)
    asked = replace(asked, rows=(*asked.rows, replace(asked.rows[0], name="other", measure=gives_one)))
    result = run_study(asked, out=tmp_path / "s")
    assert [row.runs[0].status for row in result.rows] == ["failed", "finished"]
    assert "softmax subtracts no second map" in result.judgements[0].why
    assert (tmp_path / "s" / "README.md").exists()


def test_a_study_that_trains_nothing_has_no_steps_to_shorten(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="trains nothing, so it has no steps to shorten: leave out --steps"):
        run_study(measures(gives_one), steps=3, out=tmp_path / "s")


def losses_of_chance(opened: Opened) -> Measured:
    assert opened.task is not None
    assert opened.model is None
    return Measured({"x": float(len(opened.task.batch(seed=opened.seed, index=0, size=3).inputs))})


def test_a_row_that_trains_nothing_measures_on_its_own_task(tmp_path: Path) -> None:
    asked = measures(losses_of_chance)
    asked = replace(asked, rows=(replace(asked.rows[0], task="induction,length=4"),))
    assert run_study(asked, out=tmp_path / "s").row("row").values("x") == {0: 3.0}
    held = json.loads((tmp_path / "s" / "plan.json").read_text())
    assert [task["content_hash"] for task in held["tasks"]] == [tasks.parse("induction,length=4").content_hash]


def words(opened: Opened) -> Measured:
    assert opened.task is not None
    return Measured({"x": float(opened.task.vocab_size)})


def test_a_row_is_measured_again_where_its_own_task_is_another(tmp_path: Path) -> None:
    for vocabulary in (10, 50, 50):
        asked = measures(words)
        asked = replace(asked, rows=(replace(asked.rows[0], task=f"induction,vocabulary={vocabulary}"),))
        (row,) = run_study(asked, out=tmp_path / "s").rows
        assert row.values("x") == {0: vocabulary + 1.0}
        assert row.task == f"induction,vocabulary={vocabulary}"


def test_a_task_that_is_only_measured_on_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    asked = replace(measures(gives_one), rows=(replace(measures(gives_one).rows[0], task="text,corpus=nowhere"),))
    with pytest.raises(UserError, match="there is no corpus"):
        foreseen(asked, "quick", out=tmp_path / "s")
    with pytest.raises(UserError, match="there is no corpus"):
        run_study(asked, out=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def fails_to_draw(result: StudyResult) -> list[Any]:
    raise KeyError("no such row")


def test_pictures_that_cannot_be_drawn_cost_no_verdict_and_are_told(tmp_path: Path) -> None:
    result = run_study(replace(measures(gives_one), pictures=fails_to_draw), out=tmp_path / "s")
    assert result.judgements[0].verdict == "reproduced"
    said = "pictures could not be drawn: KeyError"
    assert said in result.notes[0]
    for name in ("README.md", "report.html"):
        assert said in (tmp_path / "s" / name).read_text(), name


def test_an_answer_that_is_damaged_is_written_anew(toy: Toy, copied: Path, again: Again) -> None:
    (copied / "study.json").write_text('{"study": ')
    result, _ = again()
    assert numbers(result) == numbers(toy[0])
    assert json.loads((copied / "study.json").read_text())["study"] == "toy"


def test_a_study_measures_on_one_thread_unless_a_row_asks_otherwise(tmp_path: Path) -> None:
    import torch

    def threads(opened: Opened) -> Measured:
        return Measured({"x": float(torch.get_num_threads())})

    torch.set_num_threads(2)
    try:
        assert run_study(measures(threads), out=tmp_path / "a").row("row").values("x") == {0: 1.0}
        free = measures(threads)
        free = replace(free, rows=(replace(free.rows[0], threads=None),))
        assert run_study(free, out=tmp_path / "b").row("row").values("x") == {0: 2.0}
    finally:
        torch.set_num_threads(1)


ROW = STUDY.rows[0]
CLAIM = STUDY.claims[0]


@pytest.mark.parametrize(
    ("study", "said"),
    [
        (replace(STUDY, name="two words"), "a study is named 'two words'"),
        (replace(STUDY, rows=(replace(ROW, name="a/b"),)), "a row is named 'a/b'"),
        (replace(STUDY, rows=(ROW, ROW)), "two rows named average"),
        (replace(STUDY, rows=(*STUDY.rows, Row("empty", ""))), "the row empty has neither a variant nor a measure"),
        (replace(STUDY, task=""), "the row average is trained on no task"),
        (replace(STUDY, claims=(replace(CLAIM, ours=perplexity("avrage")),)), "did you mean 'average'"),
        (replace(STUDY, claims=(replace(CLAIM, at_least=-math.inf, at_most=math.inf),)), "has no band"),
        (replace(STUDY, claims=(replace(CLAIM, at_least=2.0, at_most=1.0),)), "has no band"),
        (replace(STUDY, rows=(), claims=()), "toy has no rows"),
        (replace(STUDY, claims=(replace(CLAIM, ours=3.0),)), "has 3.0 as ours: make it of figure"),  # type: ignore[arg-type]
        (
            replace(
                STUDY, rows=(replace(ROW, measure=None),), claims=(replace(CLAIM, ours=figure(ROW.name, "perplexty")),)
            ),
            "reads 'perplexty' of average, .* did you mean 'perplexity'",
        ),
        (replace(STUDY, spread=-1.0), "assumes a spread of -1.0"),
        (replace(STUDY, spread=0.01, spread_alike=1.0), "assumes a spread_alike of 1.0 beside a spread of 0.01"),
        (replace(STUDY, spread_alike=0.01), "assumes a spread_alike of 0.01 beside a spread of None"),
        (replace(STUDY, rows=(replace(ROW, settings={"seed": 5}),), claims=()), "sets a seed: leave it out"),
        (replace(STUDY, settings={"d_modl": 8}), "a setting 'd_modl' that nobody reads: did you mean 'd_model'"),
        (replace(STUDY, rows=(replace(ROW, variant="sofmax"),), claims=()), "did you mean 'softmax'"),
        (replace(STUDY, efforts={"full": Effort(1)}), "has no budget 'quick'"),
        (replace(STUDY, efforts={"quick": Effort(1, rows=("avrage",))}), "budget quick names a row 'avrage'"),
        (replace(STUDY, efforts={"quick": Effort(1, seeds_of={"avrage": 2})}), "budget quick names a row 'avrage'"),
        (replace(STUDY, efforts={"quick": Effort(1, seeds_of={"average": 0})}), "gives average 0 seeds"),
        (replace(STUDY, efforts={"quick": Effort(1, seeds_of={"average": 10_001})}), "gives average 10001 seeds"),
        (replace(STUDY, efforts={"quick": Effort(1.5)}), "gives it 1.5 seeds: give a whole number"),  # type: ignore[arg-type]
        (replace(STUDY, efforts={"quick": 3}), "3 is among its efforts"),  # type: ignore[dict-item]
        (replace(STUDY, efforts={"quick": None}), "None is among its efforts"),  # type: ignore[dict-item]
        (replace(STUDY, choices=("One. Two.")), "choices is one str and no tuple: put a comma after it"),  # type: ignore[arg-type]
        (replace(STUDY, figures="loss"), "figures is one str and no tuple"),  # type: ignore[arg-type]
        (replace(STUDY, rows=ROW), "rows is one Row and no tuple"),  # type: ignore[arg-type]
        (replace(STUDY, claims=CLAIM), "claims is one Claim and no tuple"),  # type: ignore[arg-type]
        (replace(STUDY, remarks=(3,)), "3 is among its remarks: give str alone"),  # type: ignore[arg-type]
        (replace(STUDY, claims=(None,)), "None is among its claims: give Claim alone"),  # type: ignore[arg-type]
        (replace(STUDY, rows=(replace(ROW, published={"loss": 3.5}),), claims=()), "write it as it was printed, '3.5'"),  # type: ignore[dict-item]
        (replace(STUDY, claims=(replace(CLAIM, published=1.0),)), "was published as 1.0: write it as .* '1.0'"),  # type: ignore[arg-type]
        (replace(STUDY, claims=(replace(CLAIM, at_least="0"),)), "has no band"),  # type: ignore[arg-type]
        (replace(STUDY, rows=(replace(ROW, steps_share=0.0),), claims=()), "trains 0.0 of the steps"),
        (replace(STUDY, rows=(replace(ROW, steps_share=math.nan),), claims=()), "trains nan of the steps"),
        (
            replace(STUDY, rows=(replace(STUDY.rows[2], settings={"lr": 1e-3}),), claims=()),
            "formula has settings and trains nothing that reads them",
        ),
        (replace(STUDY, settings={"vocab_size": 500}), "gives average vocab_size=500 .* leave both to the task"),
        (replace(STUDY, settings={"context": 3}), "context=3, where its task has"),
    ],
)
def test_a_study_that_contradicts_itself_is_refused_before_anything_is_written(
    tmp_path: Path, study: Study, said: str
) -> None:
    with pytest.raises(UserError, match=said):
        run_study(study, out=tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("asked", [{"seeds": 0}, {"steps": 0}, {"jobs": 0}, {"seeds": 10_001}, {"device": "gpu"}])
def test_what_cannot_be_asked_is_refused_before_anything_is_written(tmp_path: Path, asked: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"{next(iter(asked))} "):
        run_study(STUDY, out=tmp_path / "s", **asked)
    assert list(tmp_path.iterdir()) == []


def test_fewer_steps_shorten_every_row_that_has_more_and_keep_its_share_of_warm_up() -> None:
    rows = (replace(ROW, settings={"steps": 1000, "warmup_steps": 200}), replace(ROW, name="b", settings={"steps": 3}))
    plan = make_plan(replace(STUDY, rows=rows, claims=()), "quick", seeds=1, steps=50)
    long, short = (cell.training for cell in plan.cells())
    assert (long.steps, long.warmup_steps, short.steps) == (50, 10, 3)
    assert not plan.as_published
    assert make_plan(STUDY, "full").as_published
    assert not make_plan(STUDY, "full", steps=50).as_published


def test_a_cell_is_known_by_the_same_folder_as_ever() -> None:
    plan = make_plan(STUDY, "quick", seeds=1)
    assert [cell.folder_name for cell in plan.cells()] == [
        "crossing-average-seed0-86b3414f",
        "crossing-softmax-seed0-ad6d20af",
    ]


def test_a_run_that_another_study_beside_it_finished_is_not_computed_again(toy: Toy, tmp_path: Path) -> None:
    shutil.copytree(toy[1], tmp_path / "toy")
    another = replace(STUDY, name="another", rows=tuple(replace(row, published={}) for row in STUDY.rows), claims=())
    said: list[str] = []
    result = run_study(another, out=tmp_path / "another", say=said.append, jobs=1)
    assert sum("is the run in" in sentence for sentence in said) == 4
    mine, theirs = result.row("softmax").runs[1], toy[0].row("softmax").runs[1]
    assert (mine.folder, dict(mine.figures)) == (theirs.folder, dict(theirs.figures))
    cell = tmp_path / "another" / mine.folder
    assert (cell / "model.safetensors").read_bytes() == (toy[1] / theirs.folder / "model.safetensors").read_bytes()

    fresh: list[str] = []
    shutil.rmtree(tmp_path / "toy")
    run_study(another, seeds=1, out=tmp_path / "another", fresh=True, say=fresh.append, jobs=1)
    assert not any("is the run in" in sentence for sentence in fresh)  # not even from what it put aside itself


def test_a_run_that_differs_in_a_choice_or_has_no_weights_is_not_taken(toy: Toy, tmp_path: Path) -> None:
    shutil.copytree(toy[1], tmp_path / "toy")
    another = replace(STUDY, name="another", rows=STUDY.rows[:2], claims=())
    store = StudyStore(tmp_path / "another", make_plan(another, "quick", 1, None, "cpu"))
    average, softmax = make_plan(another, "quick", 1, None, "cpu").cells()
    (tmp_path / "toy" / "cells" / average.folder_name / "model.safetensors").unlink()
    run = tmp_path / "toy" / "cells" / softmax.folder_name / "run.json"
    run.write_text(run.read_text().replace('"steps": 4', '"steps": 5'))
    assert [store.borrow(average), store.borrow(softmax)] == [None, None]


@pytest.mark.parametrize("file", ["model.safetensors", "result.json", "run.json", "config.json", "../../plan.json"])
def test_a_damaged_run_of_another_study_is_passed_over(toy: Toy, tmp_path: Path, file: str) -> None:
    shutil.copytree(toy[1], tmp_path / "toy")
    another = replace(STUDY, name="another", rows=STUDY.rows[1:2], claims=())
    plan = make_plan(another, "quick", 1, None, "cpu")
    (cell,) = plan.cells()
    path = tmp_path / "toy" / "cells" / cell.folder_name / file
    path.write_bytes(path.read_bytes()[:20])
    assert StudyStore(tmp_path / "another", plan).borrow(cell) is None
    assert not (tmp_path / "another" / "cells").exists()


def test_what_else_lies_beside_a_run_is_not_taken_with_it(toy: Toy, tmp_path: Path) -> None:
    shutil.copytree(toy[1], tmp_path / "toy")
    another = replace(STUDY, name="another", rows=STUDY.rows[1:2], claims=())
    plan = make_plan(another, "quick", 1, None, "cpu")
    (cell,) = plan.cells()
    place = tmp_path / "toy" / "cells" / cell.folder_name
    (place / "notes").mkdir()
    (place / "gone").symlink_to("nowhere")
    assert StudyStore(tmp_path / "another", plan).borrow(cell) == place
    assert not {"notes", "gone"} & {path.name for path in (tmp_path / "another" / "cells").glob("*/*")}
