from pathlib import Path

import pytest
import torch

from headstock import tasks
from headstock.instruments.looking_back import head_scores
from headstock.model.transformer import Transformer, build
from headstock.studies.base import Opened
from headstock.studies.chapter.induction import STUDY, of_heads
from headstock.training.config import TrainingConfig
from headstock.training.loop import train

TASK = tasks.get("repeats", length=8, vocabulary=16)


@pytest.fixture(scope="module")
def solved() -> Transformer:
    """Give three blocks, attention alone, that say what comes next in a sequence that comes again."""
    model = build("softmax,feedforward=none,n_layers=3", vocab_size=16, context=16, init="torch")
    train(model, TASK, TrainingConfig(steps=400, evaluate_every=400))
    return model


def test_nothing_was_measured_so_nothing_is_published() -> None:
    assert not any(row.published for row in STUDY.rows)


def test_heads_that_look_where_induction_heads_do_are_found_and_needed(solved: Transformer) -> None:
    found = of_heads(Opened("", 0, "full", solved, TASK)).figures
    assert found["right_again"] > 0.8
    assert found["induction"] > 5 * found["chance"]
    assert found["induction"] == pytest.approx(float(head_scores(solved).induction.max()))
    assert found["right_again_without_found"] < 0.4
    assert found["gain_without_found"] < found["gain"] / 2


def test_measuring_leaves_the_model_as_it_was(solved: Transformer) -> None:
    ids = next(iter(TASK.evaluation())).inputs
    with torch.no_grad():
        before = solved(ids)
        of_heads(Opened("", 0, "full", solved, TASK))
        assert torch.equal(solved(ids), before)


def test_a_model_that_was_only_drawn_gains_nothing_from_a_context() -> None:
    model = build("softmax,n_layers=2", vocab_size=16, context=16)
    found = of_heads(Opened("", 0, "full", model, TASK)).figures
    assert abs(found["gain"]) < 0.1
    assert found["induction"] < 2 * found["chance"]


def test_on_text_pairs_seen_before_are_told_from_other_tokens(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("so the river waited, and the herd. " * 60)
    text = tasks.get("text", corpus=str(tmp_path / "text.txt"), context=32, tokenizer="char")
    model = build("softmax", vocab_size=text.vocab_size, context=32, d_model=16, n_heads=2, n_layers=2)
    found = of_heads(Opened("", 0, "full", model, text)).figures
    assert {"loss_repeated", "loss_other", "rise_repeated", "rise_other"} <= set(found)
    assert found["loss_repeated"] != found["loss_other"]
