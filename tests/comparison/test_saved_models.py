"""Compiled and other saved models as arms: trained on from where they are, or scored as they are."""

import json
from pathlib import Path

import pytest

import headstock as hs
from headstock import programs as p
from headstock import tasks
from headstock.checkpoints.native import load, save
from headstock.comparison.compare import run_comparison
from headstock.comparison.forecast import forecast
from headstock.comparison.plan import labels_of, make_plan
from headstock.comparison.request import Request
from headstock.comparison.saved_models import saved_arm
from headstock.comparison.statistics.verdicts import judge
from headstock.errors import UserError
from headstock.programs.compiled import Compiled
from headstock.programs.saving.record import hash_of
from headstock.training.evaluation import evaluate
from headstock.training.start import Start

SPEC = "program,length=4,vocab=ab"
SMALL = {"n_layers": 1, "d_model": 8, "n_heads": 1}


@pytest.fixture(scope="module")
def hist() -> Compiled:
    return p.compile(p.zoo.hist, vocab="ab", max_length=4, causal=True)


@pytest.fixture(scope="module")
def folder(hist: Compiled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("models") / "counter"
    hist.save(place)
    return place


def asked(*variants: object, **options: object) -> Request:
    usual = {"tasks": (SPEC,), "seeds": 3, "steps": 4, "match": "none",
             "settings": tuple((key, str(value)) for key, value in SMALL.items())}  # fmt: skip
    return Request(variants=tuple(map(str, variants)), **{**usual, **options})  # type: ignore[arg-type]


def test_a_frozen_arm_is_one_run_without_steps_and_an_unfrozen_one_begins_where_it_is(
    folder: Path, tmp_path: Path
) -> None:
    request = asked("softmax", f"{folder},frozen=true", folder, lr=1e-6)
    found = run_comparison(request, out=tmp_path / "found", jobs=1)
    (outcome,) = found.tasks
    labels = [arm.label for arm in outcome.arms]
    assert labels == ["softmax", "counter (frozen)", "counter"]
    _, still, moved = outcome.arms
    assert {cell.folder for cell in still.cells} == {still.cells[0].folder}
    assert [cell.seed for cell in still.cells] == [0, 1, 2]
    assert all(cell.metrics["held-out"]["accuracy"] == 1 for cell in still.cells)
    assert all(cell.steps_to_solve is None for cell in still.cells)
    assert [entry["step"] for entry in still.cells[0].curve] == [0]
    assert still.steps == 0
    assert still.cost.seconds_per_step is None
    assert len({cell.folder for cell in moved.cells}) == 3
    before = hash_of(load(folder).state_dict())
    assert hash_of(load(tmp_path / "found" / still.cells[0].folder).state_dict()) == before
    for cell in moved.cells:
        assert hash_of(load(tmp_path / "found" / cell.folder).state_dict()) != before
        assert cell.metrics["held-out"]["loss"] < 1  # four small steps from scratch end above
    assert all(cell.metrics["held-out"]["loss"] > 1 for cell in outcome.arms[0].cells)
    assert any("counter (frozen) is one run, scored and not trained" in said for said in found.matching)
    assert str(folder) in still.variant
    page = (tmp_path / "found" / "report.html").read_text()
    assert "counter (frozen)" in page
    assert "counter" in found.table()


def test_the_weights_are_part_of_what_a_run_is_and_their_folder_is_not(folder: Path, tmp_path: Path) -> None:
    one = make_plan(asked(folder, "softmax"))
    cell = one.cell(one.tasks[0], one.tasks[0].arms[0], 0, 1e-3)
    assert cell.description()["start"]["weights"] == Start.at(folder).weights
    elsewhere = tmp_path / "elsewhere"
    save(load(folder), elsewhere)
    two = make_plan(asked(elsewhere, "softmax"))
    assert two.cell(two.tasks[0], two.tasks[0].arms[0], 0, 1e-3).key == cell.key
    model = load(elsewhere)
    model.embed.weight.data += 0.5
    save(model, elsewhere)
    three = make_plan(asked(elsewhere, "softmax"))
    assert three.cell(three.tasks[0], three.tasks[0].arms[0], 0, 1e-3).key != cell.key


def test_without_a_saved_arm_plans_and_runs_are_described_as_ever(folder: Path) -> None:
    plan = make_plan(asked("softmax", "uniform"))
    arm = plan.tasks[0].arms[0]
    assert "start" not in json.dumps(plan.identity())
    assert "start" not in plan.cell(plan.tasks[0], arm, 0, 1e-3).description()


def test_matching_and_settings_leave_a_saved_arm_as_it_is(folder: Path) -> None:
    plan = make_plan(asked("softmax", folder, match="params"))
    assert plan.tasks[0].arms[1].model == load(folder).config
    assert "still unlike softmax's" in plan.matching()[0]
    assert "nothing was made equal, for saved models stay as they are" in plan.matching()[0]
    plan = make_plan(asked("softmax", "sigmoid", folder, match="flops"))
    assert "made equal by feed-forward widths: softmax 32, sigmoid 32; " in plan.matching()[0]
    assert "counter" not in plan.matching()[0].partition(";")[0]


def test_frozen_arms_are_held_against_a_trained_one_by_the_metric_and_against_each_other_without_a_test(
    folder: Path, tmp_path: Path
) -> None:
    model = load(folder)
    model.unembed.bias.data[-2] += 1e4  # type: ignore[union-attr, operator]
    save(model, tmp_path / "stuck")
    frozen = [f"{place},frozen=true" for place in (folder, tmp_path / "stuck")]
    request = asked(*frozen, folder, lr=1e-9, steps=1)
    assert make_plan(request).reach().first_level == pytest.approx(0.0475)
    found = run_comparison(request, out=tmp_path / "found", jobs=1)
    apart, judged = found.verdicts
    assert (apart.kind, apart.p, apart.level, apart.interval, apart.claim) == ("fixed models", None, None, None, False)
    assert "no seeds, so no interval. counter (frozen) solves the task and stuck (frozen) does not." in apart.sentence
    assert (judged.test, judged.tests, judged.solved) == ("t-test against a fixed value", 1, (3, 3))
    assert judged.interval_unit == "of the program's values"
    assert not judged.claim
    assert "steps" not in judged.sentence
    only = make_plan(asked(*frozen)).reach()
    assert (only.tests, only.sentences[0].partition(":")[0]) == (0, "Nothing is tested")


def test_a_frozen_arm_is_neither_tuned_nor_timed(folder: Path) -> None:
    plan = make_plan(asked("softmax", f"{folder},frozen=true", tune=3))
    assert {cell.label for cell in plan.tuning_cells()} == {"softmax"}
    assert len(plan.reported_cells({(plan.tasks[0].task.spec, arm.label): 1e-3 for arm in plan.tasks[0].arms})) == 4
    foreseen = forecast(asked("softmax", f"{folder},frozen=true"))
    assert foreseen.runs == 4
    assert [arm.seconds_per_step > 0 for arm in foreseen.tasks[0].arms] == [True, False]
    with pytest.raises(UserError, match="takes no step, so there is no training time to match"):
        forecast(asked(f"{folder},frozen=true", "softmax", match="time"))


def test_two_arms_that_are_always_right_are_told_apart_by_nothing(folder: Path, tmp_path: Path, hist: Compiled) -> None:
    other = p.compile(p.zoo.hist, vocab="ab", max_length=4, causal=True, dtype="float32")
    other.model.unembed.weight.data *= 2  # type: ignore[union-attr]
    other.model.unembed.bias.data *= 2  # type: ignore[union-attr, operator]
    save(other.model, tmp_path / "louder")
    request = asked(folder, tmp_path / "louder", seeds=8, lr=1e-9, steps=1)
    found = run_comparison(request, out=tmp_path / "found", jobs=1)
    assert not any(verdict.claim for verdict in found.verdicts)
    assert (tmp_path / "found" / "report.html").exists()


def test_a_compiled_program_is_saved_into_the_comparison_s_folder(hist: Compiled, tmp_path: Path) -> None:
    out = tmp_path / "found"
    for fresh in (False, True):
        found = hs.compare([(hist, "frozen=true"), hist, "softmax"], task=SPEC, seeds=1, steps=2, match="none",
                           settings=SMALL, out=out, jobs=1, fresh=fresh)  # fmt: skip
        assert [arm.label.partition("-")[0] for arm in found.tasks[0].arms] == ["hist", "hist", "softmax"]
        (saved,) = (out / "arms").iterdir()
        assert evaluate(p.load(saved).model, tasks.parse(SPEC))["accuracy"] == 1
    assert out.with_name("found.old1").exists()
    assert found.tasks[0].arms[0].cells[0].metrics["held-out"]["accuracy"] == 1


def test_a_folder_is_told_from_a_mixer(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    (folder.parent / "softmax").mkdir()
    (folder.parent / "softmax" / "config.json").write_text("{}")
    assert saved_arm("softmax,n_heads=2") is None
    assert saved_arm("counter") == saved_arm("counter,frozen=false")
    assert saved_arm("./mine.py:Mine") is None
    assert labels_of(["counter", "./counter,frozen=true", "softmax"]) == ["counter", "counter (frozen)", "softmax"]


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ("{folder},frozn=true", "is a saved model, whose shape is its own, so it has no key 'frozn': did you mean"),
        ("{folder},n_layers=2", "so it has no key 'n_layers'"),
        ("{folder},frozen=maybe", "frozen is 'maybe' in .*: write true or false"),
        ("{folder},frozen=true,frozen=false", "frozen is given twice in .*: give it once"),
        ("{folder}/nowhere", "there is no folder .*/nowhere: give that of a saved model"),
        ("{folder}/..", "holds no model: give a folder that headstock compile"),
    ],
)
def test_what_is_no_saved_arm_is_refused_in_one_sentence(variant: str, said: str, folder: Path) -> None:
    with pytest.raises(UserError, match=said):
        make_plan(asked("softmax", variant.format(folder=folder)))


def test_a_model_of_other_tokens_rows_or_numbers_is_refused(folder: Path, tmp_path: Path, hist: Compiled) -> None:
    for task, said in (("crossing", "crossing has 36 tokens and the model in .* has"),
                       ("program,name=dyck,length=4", "program has 5 tokens and the model in .* has"),
                       ("program,length=3,vocab=ab", "tokens and the model in")):  # fmt: skip
        with pytest.raises(UserError, match=said):
            make_plan(asked(folder, tasks=(task,)))
    p.compile(p.zoo.copy, vocab="ab", max_length=3, causal=True).save(tmp_path / "short")
    with pytest.raises(UserError, match=r"has rows of 4 tokens and the program in .* is compiled for 3"):
        make_plan(asked(tmp_path / "short", tasks=("program,name=copy,length=4,vocab=ab",)))
    save(load(folder).double(), tmp_path / "double")
    with pytest.raises(UserError, match="is float64, and all arms compute in float32"):
        make_plan(asked(tmp_path / "double"))
    save(load(folder), tmp_path / "copy")
    with pytest.raises(UserError, match="counter and copy are the same model"):
        make_plan(asked(folder, tmp_path / "copy"))


def test_a_model_that_changed_since_the_plan_is_refused(tmp_path: Path, folder: Path) -> None:
    place = tmp_path / "model"
    save(load(folder), place)
    start = Start.at(place)
    model = load(place)
    model.embed.weight.data += 1
    save(model, place)
    with pytest.raises(UserError, match="has changed since the run was planned"):
        start.open()


def test_verdicts_of_values_that_do_not_vary_break_nothing() -> None:
    from headstock.comparison.statistics.hypotheses import ArmResult, TaskResult

    def arm(label: str, value: float, steps: int) -> ArmResult:
        return ArmResult(label, False, dict.fromkeys(range(8), value), dict.fromkeys(range(8), steps))

    for values in ((1.0, 1.0), (1.0, 0.5)):
        result = TaskResult(
            task="program", metric="accuracy", unit="of the values", better="higher", solved_at=0.99, budget_steps=100,
            resolution=0.001, arms=[arm("one", values[0], 0), arm("other", values[1], 0)],
        )  # fmt: skip
        verdicts = judge([result], 1)
        assert any(verdict.claim for verdict in verdicts) == (values[0] != values[1])
