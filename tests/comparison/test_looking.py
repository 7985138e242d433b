"""What runs found by difficulty, and where their models look, as a comparison hands it on."""

import json
from pathlib import Path

import pytest
import torch

import headstock as hs
from headstock.comparison.compare import run_comparison
from headstock.comparison.looking import MOST_ROWS, mass_over_seeds
from headstock.comparison.request import Request
from headstock.comparison.results import Comparison
from headstock.instruments.mass import attention_mass
from headstock.tasks.base import Marks, Task

SIZES = (("d_model", "8"), ("n_layers", "1"), ("n_heads", "2"))


@pytest.fixture(scope="module")
def task() -> Task:
    return hs.tasks.get("induction", length=8)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Comparison]:
    out = tmp_path_factory.mktemp("probed") / "out"
    request = Request(
        variants=("softmax", "lstm"), tasks=("induction,length=8",), seeds=2, steps=2, match="none", settings=SIZES
    )
    return out, run_comparison(request, out=out, jobs=1)


def saved(folder: Path, task: Task, variant: str, seed: int = 0) -> Path:
    sizes = {"vocab_size": task.vocab_size, "context": task.context, "d_model": 8, "n_heads": 2, "n_layers": 2}
    hs.save(hs.build(variant, **sizes, seed=seed), folder)
    return folder


def test_a_comparison_hands_on_what_its_runs_scored_at_each_difficulty(compared: tuple[Path, Comparison]) -> None:
    out, comparison = compared
    for arm in comparison.tasks[0].arms:
        runs = [json.loads((out / cell.folder / "result.json").read_text()) for cell in arm.cells]
        assert [probe.at for probe in arm.probes] == [{"length": length} for length in (8, 16, 32, 64)]
        for place, probe in enumerate(arm.probes):
            assert probe.values == [run["probes"][place]["metrics"]["accuracy"] for run in runs]
            assert probe.mean == pytest.approx(sum(run["probes"][place]["metrics"]["accuracy"] for run in runs) / 2)
            assert probe.deviation is not None
    assert json.loads(json.dumps(comparison.to_dict()))["tasks"][0]["arms"][0]["probes"][0]["at"] == {"length": 8}
    assert "induction by difficulty: accuracy" in comparison.table()
    assert "By difficulty" in (out / "report.html").read_text()


def test_a_comparison_says_where_its_arms_look_and_of_a_state_that_there_is_nowhere(
    compared: tuple[Path, Comparison], task: Task
) -> None:
    out, comparison = compared
    softmax, lstm = comparison.tasks[0].arms
    assert lstm.mass is None
    assert softmax.mass == mass_over_seeds(task, [out / cell.folder for cell in softmax.cells])
    assert "Attention mass, induction" in (out / "report.html").read_text()


def test_a_run_from_before_there_were_probes_has_no_figure_by_difficulty(compared: tuple[Path, Comparison]) -> None:
    out, comparison = compared
    file = out / comparison.tasks[0].arms[0].cells[1].folder / "result.json"
    kept = file.read_text()
    file.write_text(json.dumps({key: value for key, value in json.loads(kept).items() if key != "probes"}))
    request = Request(
        variants=("softmax", "lstm"), tasks=("induction,length=8",), seeds=2, steps=2, match="none", settings=SIZES
    )
    again = run_comparison(request, out=out, jobs=1).tasks[0].arms[0].probes[0]
    file.write_text(kept)
    first = comparison.tasks[0].arms[0].probes[0].values[0]
    assert (again.values, again.mean, again.deviation) == ([first, None], first, None)


def test_an_arms_mass_is_the_mean_over_its_models_on_few_rows(tmp_path: Path, task: Task) -> None:
    folders = [saved(tmp_path / str(seed), task, "differential", seed) for seed in (0, 1)]
    found = mass_over_seeds(task, folders)
    marks = task.marks()
    assert found is not None
    assert marks is not None
    few = slice(0, MOST_ROWS)
    asked = Marks(marks.inputs[few], marks.queries[few], {name: span[few] for name, span in marks.spans.items()})
    alone = [attention_mass(hs.load(folder), asked) for folder in folders]
    assert found.rows == MOST_ROWS
    assert found.weights_are == "signed"
    for span in found.spans:
        assert span.shares == [one.by_span()[span.span] for one in alone]
        assert span.mean == pytest.approx(float(torch.tensor(span.shares, dtype=torch.float64).mean()))
        assert span.sum == pytest.approx(sum(one.by_span("sums")[span.span] for one in alone) / 2)
        assert span.uniform == alone[0].uniform[span.span]


def test_a_model_that_is_gone_is_left_out_and_without_any_there_is_no_mass(tmp_path: Path, task: Task) -> None:
    here = saved(tmp_path / "here", task, "softmax")
    found = mass_over_seeds(task, [tmp_path / "gone", here])
    assert found is not None
    assert len(found.spans[0].shares) == 1
    assert found.lacking == 1
    assert mass_over_seeds(task, [tmp_path / "gone"]) is None


def test_a_task_that_marks_nothing_has_no_mass(tmp_path: Path, task: Task) -> None:
    assert mass_over_seeds(hs.tasks.get("crossing"), [saved(tmp_path / "here", task, "softmax")]) is None
