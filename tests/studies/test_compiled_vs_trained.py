"""The study of programs compiled and learned: its shapes are the compiler's, and its measures mean what they say."""

import pytest
import torch

from headstock import tasks
from headstock.model.transformer import build
from headstock.studies import compiled_vs_trained as module
from headstock.studies.base import Opened
from headstock.studies.cells import cell_of
from headstock.studies.compiled_vs_trained import ADDITION, HIST, STUDY, compiled_for, of_mended, whole_rows
from headstock.training.config import TrainingConfig
from tests.programs.short_proofs import shorten_proofs

SHORT = "program,length=4,vocab=ab"


@pytest.mark.parametrize(("name", "spec"), [("hist", HIST), ("addition", ADDITION)])
def test_the_same_shape_is_the_compiled_model_s_and_that_is_exact(
    name: str, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_proofs(monkeypatch)
    compiled = compiled_for(tasks.parse(spec))
    monkeypatch.setattr(module, "compiled_for", lambda task: compiled if task is tasks.parse(spec) else None)
    by_name = {row.name: row for row in STUDY.rows}
    assert cell_of(STUDY, by_name[f"{name}-same-shape"], "quick", 0).model == compiled.model.config
    sizes = cell_of(STUDY, by_name[f"{name}-same-size"], "quick", 0).model
    for key in ("d_model", "n_layers", "n_heads", "d_head", "d_ff", "vocab_size", "context"):
        assert getattr(sizes, key) == getattr(compiled.model.config, key)
    assert (sizes.norm, sizes.feedforward) == ("layernorm", "gelu")
    measure = by_name[f"{name}-compiled"].measure
    assert measure is not None
    found = measure(Opened(f"{name}-compiled", 0, "quick")).figures
    assert found["whole_rows"] == found["accuracy"] == 1
    assert found["guessing"] < 0.6
    assert found["parameters"] == sum(weight.numel() for weight in compiled.model.parameters())


def test_a_row_is_right_as_a_whole_or_not_at_all() -> None:
    task = tasks.parse(SHORT)
    model = compiled_for(task).model
    assert whole_rows(model, task) == 1
    batches = list(task.evaluation())
    with torch.no_grad():
        wrong = [model(batch.inputs).argmax(-1) != batch.targets for batch in batches]
    assert any(bool(w.any()) for w in wrong)  # where nothing counts it may say anything
    untrained = build("softmax,n_layers=1", vocab_size=task.vocab_size, context=task.context)
    assert whole_rows(untrained, task) < 0.2


def test_training_that_takes_more_than_it_gives_back_ends_below_half_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this order: noise that nothing mends, noise that training mends, no noise, and no noise but a harmful rate."""
    claim = next(claim for claim in STUDY.claims if "gives back" in claim.says)
    for noise, steps, lr, half_of_it in ((0.003, 1, 1e-30, False), (0.003, 60, 3e-4, True), (0.0, 1, 1e-30, True),
                                         (0.0, 20, 0.01, False)):  # fmt: skip
        mending = TrainingConfig(steps=steps, lr=lr, weight_decay=0, evaluate_every=steps)
        monkeypatch.setattr(module, "NOISE", noise)
        monkeypatch.setattr(module, "MENDING", mending)
        found = of_mended(SHORT, Opened("hist-mended", 0, "quick")).figures
        assert (found["noisy"] < 0.95) == bool(noise)
        assert found["half_way"] == (1 + found["noisy"]) / 2
        assert (claim.ours.of({"hist-mended": found}) >= claim.at_least) == half_of_it
        assert (found["accuracy"] == found["noisy"]) == (steps == 1)


def test_dropout_is_all_that_its_row_adds() -> None:
    rows = {row.name: cell_of(STUDY, row, "quick", 0).model.chosen for row in STUDY.rows if row.variant}
    added = set(rows["addition-dropout"].items()) - set(rows["addition-usual"].items())
    assert added == {("dropout_attention", 0.1), ("dropout_residual", 0.1), ("dropout_embedding", 0.1)}
