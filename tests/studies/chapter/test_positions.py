import math
from pathlib import Path

import pytest

from headstock import tasks
from headstock.model.transformer import build
from headstock.studies.base import Opened
from headstock.studies.chapter.positions import LENGTHS, STUDY, at_lengths
from headstock.training.evaluation import evaluate
from tests.studies.declared import judged, published

WORDS = " ".join(f"word{number % 17} is {number * number % 23}" for number in range(3000))


def opened(tmp_path: Path, variant: str) -> Opened:
    (tmp_path / "text.txt").write_text(WORDS)
    task = tasks.get("text", corpus=str(tmp_path / "text.txt"), context=64, tokenizer="char")
    return Opened("x", 0, "full", build(variant, vocab_size=task.vocab_size, context=256, d_model=16, n_heads=2), task)


def test_what_published_figures_there_are_stand_letter_for_letter() -> None:
    assert published(STUDY, "perplexity_64") == {"alibi": "44.95"}
    assert published(STUDY, "perplexity_256") == {"alibi": "42.49"}


def test_what_follows_from_no_training_is_reproduced() -> None:
    found = judged(STUDY, seeds=2)
    for says in ("Without positions and mask, reordering the input reorders the output.",
                 "Under the mask, one block sees its past as a bag."):  # fmt: skip
        assert found[says].verdict == "reproduced"


def test_two_blocks_under_the_mask_do_see_the_order_of_their_past() -> None:
    row = next(row for row in STUDY.rows if row.name == "blind")
    assert row.measure is not None
    assert row.measure(Opened("blind", 0, "full")).figures["shuffled_past_2"] > 1e-2


@pytest.mark.parametrize("position", ["learned", "sinusoidal", "rope", "alibi", "xpos", "none"])
def test_perplexity_at_every_length_counts_every_token_once(tmp_path: Path, position: str) -> None:
    given = opened(tmp_path, f"softmax+{position}")
    model, task = given.trained
    found = at_lengths(given).figures
    for length in LENGTHS:
        longer = tasks.get("text", **{**task.options(), "context": length})
        assert found[f"perplexity_{length}"] == pytest.approx(evaluate(model, longer)["perplexity"], rel=1e-6)
    assert math.isfinite(found["perplexity_256_window_64"])


def test_a_query_that_sees_64_tokens_only_reads_otherwise_in_longer_windows(tmp_path: Path) -> None:
    given = opened(tmp_path, "softmax+alibi")
    found = at_lengths(given).figures
    assert found["perplexity_256_window_64"] != found["perplexity_256"]
    assert given.trained[0].config.window is None
