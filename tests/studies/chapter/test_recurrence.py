from pathlib import Path

import pytest
import torch

from headstock import tasks
from headstock.model.transformer import build
from headstock.studies.base import Opened
from headstock.studies.chapter import recurrence
from headstock.studies.chapter.recurrence import STUDY, after_training, plain_recurrence


def test_nothing_was_measured_so_nothing_but_words_is_published() -> None:
    assert {row.name: dict(row.published) for row in STUDY.rows if row.published} == {
        "lstm": {"reaches": "hundreds of steps"},
        "start-plain": {"reaches": "tens of steps"},
    }


def test_the_gradient_of_a_plain_recurrence_vanishes() -> None:
    found = plain_recurrence(Opened("start-plain", 0, "full"))
    assert found.figures["decades_lost_in_495"] > 9
    assert found.figures["reaches"] < 100
    left = found.details["left"]
    assert left[1] == 1
    assert left[50] < left[10] < left[2]


def test_a_recurrence_measures_without_touching_torchs_own_draws() -> None:
    state = torch.random.get_rng_state()
    plain_recurrence(Opened("start-plain", 0, "full"))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_state_forgets_what_an_average_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrence, "TO", 120)
    monkeypatch.setattr(recurrence, "UPDATES", 115)
    (tmp_path / "text.txt").write_text("so the river waited, and the herd. " * 200)
    task = tasks.get("text", corpus=str(tmp_path / "text.txt"), context=128, tokenizer="char")
    lost = {}
    for mixer in ("lstm+none", "softmax+rope"):
        model = build(mixer, vocab_size=task.vocab_size, context=128, d_model=16, n_layers=1, n_heads=2)
        found = after_training(Opened(mixer, 0, "full", model, task)).figures
        lost[mixer] = found["decades_lost_in_495"]
        assert model.embed.weight.dtype == torch.float32
    assert lost["lstm+none"] > 3
    assert abs(lost["softmax+rope"]) < 1
