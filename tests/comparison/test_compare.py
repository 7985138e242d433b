import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import headstock as hs
from headstock.comparison import compare as compare_module
from headstock.comparison.compare import run_comparison
from headstock.comparison.engine import Event
from headstock.comparison.plan import make_plan
from headstock.comparison.request import Request
from headstock.comparison.store import Store
from headstock.errors import UserError
from tests.comparison.here import MIXERS

SMALL = {"d_model": "16", "n_layers": "1"}


def _request(**choices):
    settings = tuple({**SMALL, **choices.pop("settings", {})}.items())
    asked = {"variants": ("softmax", "uniform"), "tasks": ("crossing",), "seeds": 2, "steps": 4, **choices}
    return Request(**asked, settings=settings)


def _run(out, events=None, **choices):
    def watch(event: Event, over: int, total: int) -> None:
        if events is not None:
            events.append((event.kind, event.cell.label, event.cell.training.seed))

    return run_comparison(_request(**choices), out=out, jobs=2, watch=watch)


def _numbers(comparison):
    return {
        (task.name, arm.label, cell.seed): (cell.metrics, cell.curve)
        for task in comparison.tasks
        for arm in task.arms
        for cell in arm.cells
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("comparison") / "out"
    return out, _run(out)


def test_a_comparison_is_a_folder_from_which_everything_can_be_read_again(finished):
    out, comparison = finished
    assert json.loads((out / "comparison.json").read_text()) == json.loads(json.dumps(comparison.to_dict()))
    assert (out / "report.html").stat().st_size > 1000
    for task in comparison.tasks:
        for arm in task.arms:
            for cell in arm.cells:
                assert hs.load(out / cell.folder).config.mixer == arm.label


def test_running_it_again_computes_nothing_and_says_the_same(finished):
    out, comparison = finished
    events = []
    again = _run(out, events)
    assert {kind for kind, *_ in events} == {"known"}
    assert again.to_dict() == comparison.to_dict()


def test_a_missing_cell_is_the_only_one_computed_again_and_comes_out_the_same(finished):
    out, comparison = finished
    lost = out / comparison.tasks[0].arms[1].cells[0].folder
    for path in lost.iterdir():
        path.unlink()
    events = []
    again = _run(out, events)
    assert [event for event in events if event[0] == "finished"] == [("finished", "uniform", 0)]
    assert _numbers(again) == _numbers(comparison)


def test_arms_of_a_seed_start_from_the_same_numbers_and_see_the_same_data(finished):
    out, comparison = finished
    one, other = (json.loads((out / arm.cells[0].folder / "run.json").read_text()) for arm in comparison.tasks[0].arms)
    assert one["training"] == other["training"]
    assert one["task_hash"] == other["task_hash"]


def test_another_plan_in_the_same_folder_is_refused_with_the_difference_and_nothing_is_touched(finished):
    out, _ = finished
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    with pytest.raises(UserError, match=r"holds another plan \(steps 4 there, 5 here\)"):
        _run(out, steps=5)
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("chapter one")
    with pytest.raises(UserError, match="not empty and holds no comparison"):
        _run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(UserError, match="is a file"):
        _run(tmp_path / "thesis.txt")


def test_adding_seeds_is_a_new_look_that_is_paid_for_and_taking_them_away_is_refused(tmp_path):
    first = _run(tmp_path / "out")
    more = _run(tmp_path / "out", seeds=3)
    assert (first.look, more.look) == (1, 2)
    assert more.verdicts[0].level < first.verdicts[0].level
    with pytest.raises(UserError, match="cannot be taken away"):
        _run(tmp_path / "out", seeds=2)
    assert _run(tmp_path / "out", seeds=3).look == 2


def test_what_an_earlier_look_claimed_is_kept_and_shown_at_the_next(tmp_path):
    store = Store(tmp_path, make_plan(_request()))
    store.count_look(2, ["On crossing, softmax is better."])
    store.count_look(2, ["a look counted twice"])
    assert store.looks() == [2]
    more = _run(tmp_path, seeds=3)
    assert [said.partition(": ")[2] for said in more.earlier_claims] == ["On crossing, softmax is better."]
    assert "On crossing, softmax is better." in more.table()
    assert "On crossing, softmax is better." in (tmp_path / "report.html").read_text()


def test_fresh_puts_what_was_there_aside_and_loses_nothing(tmp_path):
    _run(tmp_path / "out")
    (tmp_path / "out" / "note.txt").write_text("mine")
    run_comparison(_request(), out=tmp_path / "out", jobs=1, fresh=True)
    assert (tmp_path / "out.old1" / "note.txt").read_text() == "mine"
    assert not (tmp_path / "out" / "note.txt").exists()


def test_fresh_takes_no_folder_away_from_a_process_that_works_in_it(tmp_path, monkeypatch):
    def second(*_):
        with pytest.raises(UserError, match="another process is working"):
            run_comparison(_request(), out=tmp_path / "out", jobs=1, fresh=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(compare_module, "tuned", second)
    with pytest.raises(KeyboardInterrupt):
        run_comparison(_request(), out=tmp_path / "out", jobs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_folder_one_stands_in_is_not_put_aside(tmp_path, monkeypatch):
    (tmp_path / "plan.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="is where you are"):
        run_comparison(_request(), out=Path("."), jobs=1, fresh=True)
    assert (tmp_path / "plan.json").exists()


def test_a_comparison_killed_while_it_wrote_its_first_file_can_be_started_again(tmp_path):
    (tmp_path / ".plan.json.4711.part").write_text('{"headst')
    assert _run(tmp_path, seeds=1).seeds == 1


@pytest.mark.parametrize("looks", ["{}", "[1]", '[{"seeds": "x", "date": "", "claims": []}]', '[{"seeds": 2}]'])
def test_looks_that_nobody_can_count_are_refused(tmp_path, looks):
    store = Store(tmp_path, make_plan(_request()))
    (tmp_path / "looks.json").write_text(looks)
    with pytest.raises(UserError, match=r"looks\.json is damaged.* restore it from a copy"):
        store.looks()


def test_a_plan_that_is_none_and_a_mixer_that_has_changed_are_told_in_a_short_sentence(tmp_path):
    mixer = tmp_path / "mine.py"
    mixer.write_text(Path(MIXERS).read_text())
    request = _request(variants=("softmax", f"{mixer}:Sharp"))
    Store(tmp_path / "out", make_plan(request))
    mixer.write_text(mixer.read_text() + "# changed\n")
    with pytest.raises(UserError, match=r"holds another plan \(another mixer source\): choose"):
        Store(tmp_path / "out", make_plan(request))
    (tmp_path / "out" / "plan.json").write_text("[]")
    with pytest.raises(UserError, match="is not the plan of a comparison"):
        Store(tmp_path / "out", make_plan(request))


def test_a_mixer_without_an_average_is_compared_and_has_no_picture(tmp_path):
    comparison = _run(
        tmp_path / "out", variants=("softmax", f"{MIXERS}:Averageless"), settings={"n_layers": "1"}, match="none"
    )
    assert [arm.attention is None for arm in comparison.tasks[0].arms] == [False, True]


def test_a_file_of_the_working_folder_is_not_taken_for_one_of_the_library(tmp_path):
    (tmp_path / "queue.py").write_text("raise RuntimeError('not the library')\n")
    words = ["compare", "softmax", "uniform", "--task", "crossing", "--steps", "1", "--seeds", "1", "--jobs", "1"]
    program = "import sys; sys.path.remove(''); from headstock.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_request_that_cannot_be_run_puts_nothing_aside(tmp_path):
    _run(tmp_path / "out")
    with pytest.raises(UserError, match="did you mean"):
        run_comparison(_request(variants=("softmax", "unifrom")), out=tmp_path / "out", fresh=True)
    assert (tmp_path / "out" / "plan.json").exists()


def test_the_number_of_processes_changes_no_number(finished, tmp_path):
    alone = run_comparison(_request(), out=tmp_path / "out", jobs=1)
    assert _numbers(alone) == _numbers(finished[1])


@pytest.mark.parametrize(
    ("mixer", "reason"),
    [("Raises", "RuntimeError: no weights today"), ("Dies", "its process ended with status 9")],
)
def test_a_mixer_that_fails_is_tried_once_more_recorded_and_leaves_the_others_running(tmp_path, mixer, reason):
    events = []
    comparison = _run(tmp_path / "out", events, variants=("softmax", f"{MIXERS}:{mixer}"), seeds=1)
    assert [kind for kind, label, _ in events if label == mixer] == ["again", "failed"]
    assert [cell.status for cell in comparison.tasks[0].arms[0].cells] == ["finished"]
    failed = comparison.tasks[0].arms[1].cells[0]
    assert (failed.status, failed.reason) == ("failed", reason)
    events.clear()
    _run(tmp_path / "out", events, variants=("softmax", f"{MIXERS}:{mixer}"), seeds=1)
    assert ("again", mixer, 0) in events, "a crash says nothing of the arm: the same call tries it again"


def test_a_loss_that_is_no_number_ends_its_cell_alone_and_is_not_tried_again(tmp_path):
    events = []
    comparison = _run(tmp_path / "out", events, variants=("softmax", f"{MIXERS}:Explodes"))
    assert [kind for kind, label, _ in events if label == "Explodes" and kind != "progress"] == ["failed", "failed"]
    assert "the loss is nan at step 1" in comparison.tasks[0].arms[1].cells[0].reason
    assert all(cell.status == "finished" for cell in comparison.tasks[0].arms[0].cells)
    assert not any(verdict.claim for verdict in comparison.verdicts)


def test_a_mixer_that_sees_the_answer_stops_the_comparison_before_it_is_believed(tmp_path):
    with pytest.raises(UserError, match=r"Peeks looks ahead: .* a weight of exactly 0"):
        _run(tmp_path / "out", variants=("softmax", f"{MIXERS}:Peeks"), seeds=1)


def test_what_a_mixer_prints_goes_to_the_log(tmp_path):
    comparison = _run(tmp_path / "out", variants=("softmax", f"{MIXERS}:Talkative"), seeds=1)
    assert comparison.tasks[0].arms[1].cells[0].status == "finished"
    assert '{"event": "done"}' in (tmp_path / "out" / "workers.log").read_text()


def test_every_arm_is_tuned_alike_and_the_best_rate_is_taken(tmp_path):
    comparison = _run(tmp_path / "out", seeds=1, tune=2, steps=6)
    for arm in comparison.tasks[0].arms:
        assert arm.tuning is not None
        best = max(range(2), key=lambda i: arm.tuning.values[i])
        assert arm.lr == arm.tuning.chosen
        assert arm.tuning.values[arm.tuning.rates.index(arm.tuning.chosen)] == arm.tuning.values[best]
        assert {cell.lr for cell in arm.cells} == {arm.lr}


def test_the_attention_that_is_shown_is_that_of_the_first_seeds_model(finished):
    out, comparison = finished
    arm = comparison.tasks[0].arms[0]
    task = hs.tasks.get("crossing")
    ids, position = task.telling_example()
    model = hs.load(out / arm.cells[0].folder)
    weights = model.weights(torch.tensor([ids[: position + 1]]))[0][0, :, -1]
    torch.testing.assert_close(torch.tensor(arm.attention.weights[0]), weights.detach())
    assert len(arm.attention.labels) == position + 1


def test_a_script_without_a_main_guard_can_compare(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import headstock as hs\n"
        "c = hs.compare(['softmax', 'uniform'], task='crossing', seeds=1, steps=2, jobs=2, out='out',\n"
        "               settings={'d_model': 16, 'n_layers': 1})\n"
        "print(len(c.verdicts), c.verdicts[0].exploratory)\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout == "1 True\n", done.stderr


def test_a_class_of_the_notebook_itself_is_refused_in_a_sentence():
    class Mine:
        __module__ = "__main__"

    with pytest.raises(UserError, match="put it in a file"):
        hs.compare(["softmax", Mine], task="crossing")
    with pytest.raises(UserError, match="is no variant"):
        hs.compare(["softmax", 3], task="crossing")


def test_one_line_is_not_taken_for_a_list_of_letters():
    with pytest.raises(UserError, match=r"write \['softmax', \.\.\.\]"):
        hs.compare("softmax", task="crossing")


def test_two_processes_do_not_work_in_one_folder(tmp_path, monkeypatch):
    def second(*_):
        with pytest.raises(UserError, match="another process is working"):
            run_comparison(_request(), out=tmp_path / "out", jobs=1)
        raise KeyboardInterrupt

    monkeypatch.setattr(compare_module, "tuned", second)
    with pytest.raises(KeyboardInterrupt):
        run_comparison(_request(), out=tmp_path / "out", jobs=1)


def test_without_a_folder_the_same_question_goes_to_the_same_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert compare_module.default_folder(_request()) == compare_module.default_folder(_request(seeds=7))
    assert compare_module.default_folder(_request()) != compare_module.default_folder(_request(steps=5))
    comparison = run_comparison(_request(seeds=1), jobs=1)
    assert Path(comparison.folder).parts[0] == "runs"
    assert Path(comparison.folder, "report.html").exists()


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere, so nothing is refused")
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="could not be written"):
        _run(tmp_path / "out")
