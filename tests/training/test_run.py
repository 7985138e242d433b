import json
import math
import signal
import threading

import pytest
import torch

from headstock.checkpoints import native
from headstock.errors import UserError
from headstock.model.config import config_of
from headstock.training import run as run_module
from headstock.training.batch import Probe
from headstock.training.config import TrainingConfig
from headstock.training.evaluation import score
from headstock.training.run import RunResult, interrupts_held_back, record_crash, run
from tests.training.sources import Counting

MODEL = config_of("softmax", vocab_size=11, context=6, d_model=16, n_heads=2, n_layers=1)
TRAINING = TrainingConfig(steps=10, evaluate_every=4)
WHAT = {"what": "a run of a test"}


def _run(folder, training=TRAINING, source=None, description=WHAT, **choices):
    return run(folder, MODEL, training, source or Counting(), description, **choices)


def test_a_run_is_a_folder_that_anyone_can_read(tmp_path):
    result = _run(tmp_path / "run")
    files = {path.name for path in (tmp_path / "run").iterdir()}
    assert files == {
        "run.json", "environment.json", "config.json", "model.safetensors", "metrics.jsonl", "result.json",
    }  # fmt: skip
    assert result.status == "finished"
    assert set(result.metrics) == {"held-out", "train"}
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines == result.curve
    assert json.loads((tmp_path / "run" / "environment.json").read_text())["kernel"].startswith("fused")
    assert native.load(tmp_path / "run").config == MODEL


def test_a_finished_run_is_not_run_again(tmp_path):
    first = _run(tmp_path / "run")

    class Untouchable(Counting):
        def batch(self, **_):
            raise AssertionError("a finished run asked for data")

    assert _run(tmp_path / "run", source=Untouchable()) == first


@pytest.mark.parametrize("after", [1, 3, 4, 9])
def test_an_interrupted_run_goes_on_and_ends_with_the_same_bits_as_one_that_was_not(tmp_path, after):
    whole = _run(tmp_path / "whole")

    def press_ctrl_c(progress):
        if progress.steps_done == after:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        _run(tmp_path / "parts", on_progress=press_ctrl_c)
    assert (tmp_path / "parts" / "state.pt").exists()
    resumed = _run(tmp_path / "parts")
    assert resumed.metrics == whole.metrics
    assert resumed.curve == whole.curve
    one, other = (native.load(tmp_path / name).state_dict() for name in ("whole", "parts"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert not (tmp_path / "parts" / "state.pt").exists()


def test_a_second_ctrl_c_inside_a_step_leaves_no_half_of_that_step_behind(tmp_path, monkeypatch):
    whole = _run(tmp_path / "whole")
    steps, step = [], torch.optim.AdamW.step

    def press_ctrl_c_twice(self, *choices):
        steps.append(step(self, *choices))
        if len(steps) == 6:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", press_ctrl_c_twice)
        patch.setattr(run_module, "SECONDS_BETWEEN_SAVES", 0.0)
        with pytest.raises(KeyboardInterrupt):
            _run(tmp_path / "parts")
    assert len(steps) == 6
    assert _run(tmp_path / "parts").curve == whole.curve


def test_a_run_killed_while_it_wrote_its_first_file_can_be_started_again(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".run.json.4711.part").write_text('{"wha')
    assert _run(tmp_path / "run").status == "finished"


SCORED = {"held-out": {"loss": 1.0}, "train": {"loss": 1.0}}


@pytest.mark.parametrize(
    ("metrics", "curve"),
    [({}, []), ({"held-out": {"loss": 1.0}}, []), (SCORED, [{"step": 2}]), (SCORED, [3]), ([], [])],
)
def test_a_result_that_no_run_wrote_is_refused(tmp_path, metrics, curve):
    written = {"status": "finished", "reason": None, "steps_done": 2, "seconds_per_step": 1.0}
    for content in (written | {"metrics": metrics, "curve": curve}, written, [], None):
        (tmp_path / "result.json").write_text(json.dumps(content))
        with pytest.raises(UserError, match="is not the result of a run: delete it to run again"):
            RunResult.read(tmp_path)


def test_the_metrics_can_be_watched_while_a_run_goes_on(tmp_path):
    seen = []

    def watch(progress):
        lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
        seen.append([json.loads(line)["step"] for line in lines])

    _run(tmp_path / "run", on_progress=watch)
    assert seen[4] == [4]  # on_progress comes before the line of its own step
    assert seen[9] == [4, 8]


def test_a_run_killed_without_warning_goes_on_from_its_last_save(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "SECONDS_BETWEEN_SAVES", 0.0)
    whole = _run(tmp_path / "whole")

    def die(progress):
        if progress.steps_done == 7:
            raise SystemExit("as good as killed: nothing is saved on the way out")

    with pytest.raises(SystemExit):
        _run(tmp_path / "parts", on_progress=die)
    steps = []
    resumed = _run(tmp_path / "parts", on_progress=lambda progress: steps.append(progress.steps_done))
    assert steps[0] == 7
    assert resumed.metrics == whole.metrics


def test_the_weights_are_saved_before_the_last_evaluation_can_run_out_of_memory(tmp_path, monkeypatch):
    def no_memory(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("headstock.training.loop.evaluate", no_memory)
        with pytest.raises(MemoryError):
            _run(tmp_path / "run", TrainingConfig(steps=3, evaluate_every=3))
    steps = []
    _run(tmp_path / "run", TrainingConfig(steps=3, evaluate_every=3), on_progress=lambda p: steps.append(p.steps_done))
    assert steps == []  # no step was lost: only what came after the last one is done again


def test_a_loss_that_is_no_number_ends_the_run_with_its_reason(tmp_path):
    result = _run(tmp_path / "run", TrainingConfig(steps=10, lr=1e30, evaluate_every=10))
    assert result.status == "failed"
    assert "the loss is nan at step" in result.reason
    assert result.metrics == {}
    assert RunResult.read(tmp_path / "run") == result


def test_a_folder_that_holds_another_run_is_refused_and_left_alone(tmp_path):
    _run(tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(UserError, match="holds another run"):
        _run(tmp_path / "run", description={"what": "another"})
    assert {path: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_a_folder_with_other_things_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("chapter one")
    with pytest.raises(UserError, match="not empty and holds no run"):
        _run(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "chapter one"


def test_a_damaged_state_is_named(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(json.dumps(WHAT))
    (tmp_path / "run" / "state.pt").write_bytes(b"half a fi")
    with pytest.raises(UserError, match=r"state\.pt is damaged"):
        _run(tmp_path / "run")


def test_a_crash_is_a_result_until_the_run_is_tried_again(tmp_path):
    record_crash(tmp_path / "run", WHAT, "its process ended with status -9")
    assert RunResult.read(tmp_path / "run").reason == "its process ended with status -9"
    assert _run(tmp_path / "run").status == "finished"
    assert RunResult.read(tmp_path / "run").status == "finished"


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(tmp_path):
    one, same, other = (
        _run(tmp_path / name, TrainingConfig(steps=10, evaluate_every=4, seed=seed)).metrics["held-out"]["loss"]
        for name, seed in (("one", 1), ("same", 1), ("other", 2))
    )
    assert one == same
    assert not math.isclose(one, other)


def test_a_ctrl_c_waits_for_the_step_to_end_and_a_second_one_does_not():
    before = signal.getsignal(signal.SIGINT)  # a shell's background job has it ignored
    with interrupts_held_back() as raise_if_interrupted:
        raise_if_interrupted()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            raise_if_interrupted()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_in_another_thread_leaves_signals_alone(tmp_path):
    results = []
    thread = threading.Thread(target=lambda: results.append(_run(tmp_path / "run")))
    thread.start()
    thread.join()
    assert results[0].status == "finished"


def test_a_finished_run_says_how_it_does_at_each_difficulty(tmp_path):
    held_out = list(Counting().evaluation())
    probes = [Probe({"length": length}, [batch]) for length, batch in zip((3, 9), held_out, strict=False)]
    result = _run(tmp_path / "run", probes=probes)
    assert [probe["at"] for probe in result.probes] == [dict(probe.at) for probe in probes]
    model = native.load(tmp_path / "run")
    assert [probe["metrics"] for probe in result.probes] == [score(model, probe.batches) for probe in probes]
    assert RunResult.read(tmp_path / "run") == result


def test_a_result_from_before_there_were_probes_is_read_without_any(tmp_path):
    result = _run(tmp_path / "run")
    file = tmp_path / "run" / "result.json"
    written = json.loads(file.read_text())
    del written["probes"]
    file.write_text(json.dumps(written))
    assert RunResult.read(tmp_path / "run") == result
    assert result.probes == []


def test_a_probe_without_rows_is_refused_before_anything_is_trained_or_written(tmp_path):
    def probes():
        yield Probe({"length": 3}, [Counting().batch(seed=0, index=0, size=2)])
        raise UserError("there are too few rows.")

    with pytest.raises(UserError, match="too few rows"):
        _run(tmp_path / "run", probes=probes())
    assert not (tmp_path / "run").exists()
