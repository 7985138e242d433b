from pathlib import Path

import pytest

from headstock.instruments.gradients import gradient_norms
from headstock.model.transformer import build
from headstock.studies.base import Opened
from headstock.studies.chapter.norm_placement import N_LAYERS, POST, PRE, STUDY, gradients
from headstock.tasks import parse
from tests.studies.declared import published

SENTENCES = "the herd did not cross the river because it was too wide, so the river waited.\n" * 40


@pytest.fixture
def task(tmp_path: Path) -> str:
    (tmp_path / "text.txt").write_text(SENTENCES)
    return f"text,corpus={tmp_path / 'text.txt'},context=16,tokenizer=char"


def test_the_published_figures_stand_letter_for_letter() -> None:
    assert published(STUDY) == {"pre": "37.82", "pre-warm-up": "37.62", "post": "308.05", "post-warm-up": "37.88"}
    assert published(STUDY, "maps_first") == {"start-pre": "0.0498", "start-post": "0.0977"}
    assert published(STUDY, "maps_last") == {"start-pre": "0.0657", "start-post": "0.1613"}
    assert published(STUDY, "maps_last_over_first") == {"start-pre": "1.32", "start-post": "1.65"}


def test_gradients_of_blocks_are_the_instruments(task: str) -> None:
    found = gradients(POST, Opened("start-post", 3, "full"), draws=1, rows=4, task=task)
    source = parse(task)
    model = build(POST, seed=3, vocab_size=source.vocab_size, context=16, d_model=128, n_layers=N_LAYERS,
                  unembed_bias=True, init="torch")  # fmt: skip
    norms = gradient_norms(model, source.batch(seed=3, index=0, size=4))
    assert found.details["blocks"][0] == pytest.approx(norms.blocks.tolist(), rel=1e-4)
    assert found.figures["block_last_over_first"] == pytest.approx(norms.last_over_first, rel=1e-4)
    assert all(m < b for m, b in zip(found.details["maps"][0], found.details["blocks"][0], strict=True))


def test_norms_after_begin_with_larger_gradients(task: str) -> None:
    pre, post = (gradients(v, Opened("", 0, "full"), draws=1, rows=4, task=task).figures for v in (PRE, POST))
    assert post["maps_first"] > 1.3 * pre["maps_first"]


def test_every_seed_measures_other_initialisations(task: str) -> None:
    first, second = (gradients(PRE, Opened("", seed, "full"), draws=1, rows=2, task=task) for seed in (0, 1))
    assert first.figures["maps_first"] != second.figures["maps_first"]
