from pathlib import Path

import pytest

from headstock import tasks
from headstock.instruments.sharpness import score_statistics
from headstock.model.transformer import build
from headstock.studies.base import Opened
from headstock.studies.chapter.scale import STUDY, of_scores, of_width
from tests.studies.declared import judged, published


def test_the_published_variances_stand_letter_for_letter() -> None:
    assert published(STUDY, "variance") == {
        "width-4": "3.975", "width-16": "16.071", "width-64": "64.249", "width-256": "253.065",
        "width-1024": "1015.562",
    }  # fmt: skip
    assert published(STUDY, "std")["width-1024"] == "31.868"
    assert published(STUDY, "score_std_end") == {
        "head-1024": "3.44", "head-1024-undivided": "5147", "wide-1024": "3.44", "wide-1024-undivided": "5147",
    }  # fmt: skip
    assert published(STUDY, "undivided_frozen") == {"width-1024": "7 in 10"}


def test_what_follows_from_no_training_is_reproduced() -> None:
    found = judged(STUDY)
    decided = {says: judgement.verdict for says, judgement in found.items() if judgement.claim.exact}
    assert len(decided) == 12
    assert set(decided.values()) == {"reproduced"}


def test_a_softmax_of_scores_of_one_size_is_the_same_at_every_width() -> None:
    narrow, wide = (of_width(width, Opened("", 0, "full")).figures for width in (64, 256))
    assert narrow["divided_trace"] == pytest.approx(wide["divided_trace"], abs=0.01)
    assert narrow["undivided_trace"] > 1.3 * wide["undivided_trace"]
    assert narrow["undivided_effective_tokens"] > wide["undivided_effective_tokens"] > 1


def test_scores_are_measured_where_training_starts_and_where_it_ended(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("so the river waited. " * 100)
    task = tasks.get("text", corpus=str(tmp_path / "text.txt"), context=16, tokenizer="char")
    sizes = {"vocab_size": task.vocab_size, "context": 16, "d_model": 16, "n_layers": 1, "n_heads": 1}
    start, end = (build("softmax,scale_scores=false", seed=seed, **sizes) for seed in (5, 6))  # type: ignore[arg-type]
    found = of_scores(Opened("", 5, "full", end, task)).figures
    ids = next(iter(task.evaluation(size=16))).inputs
    for when, model in (("start", start), ("end", end)):
        expected = score_statistics(model, ids)
        assert found[f"score_std_{when}"] == pytest.approx(float(expected.score_std[0].mean()))
        assert found[f"saturated_{when}"] == pytest.approx(float(expected.saturated[0].mean()))
