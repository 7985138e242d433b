"""What is measured of a trained row is what the instruments say of it."""

from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from headstock.instruments.cost import cost_by_length
from headstock.instruments.cost.result import Cost
from headstock.instruments.mass import attention_mass
from headstock.instruments.outliers import activation_outliers
from headstock.model.transformer import build
from headstock.studies.base import Opened, Study
from headstock.studies.differential import ablations, cost, gradients, manyshot, maps, needle, outliers
from headstock.tasks import parse
from headstock.tasks.base import Task
from headstock.training.evaluation import score

VARIANTS = ("softmax+rope", "differential+rope", "differential2+rope")
SENTENCES = "the herd did not cross the river because it was too wide, so the river waited.\n" * 60


def opened(variant: str, task: Task, seed: int = 0) -> Opened:
    model = build(variant, vocab_size=task.vocab_size, context=task.context, d_model=16, n_heads=2, seed=seed)
    return Opened("row", seed, "full", model, task)


@pytest.fixture
def text(tmp_path: Path) -> Task:
    (tmp_path / "text.txt").write_text(SENTENCES)
    return parse(f"text,corpus={tmp_path / 'text.txt'},context=16,tokenizer=char,held_out=0.3")


@cache
def haystack() -> Task:
    return parse("needle,length=24,needles=2,queries=1")


@pytest.mark.parametrize("variant", VARIANTS)
def test_outliers_are_the_instruments_and_many_bits_cost_nothing(variant: str, text: Task) -> None:
    asked = opened(variant, text)
    found = outliers.of_outliers(asked).figures
    ids = next(iter(text.evaluation(size=outliers.READ))).inputs
    of = {one.name: one for one in activation_outliers(asked.trained[0], ids).over_all}
    assert found["logits_top"] == pytest.approx(float(of["attention logits"].top[0]))
    assert found["hidden_median"] == pytest.approx(of["hidden states"].median)
    assert abs(found["logits_rise_16"]) < 1e-4
    assert abs(found["all_rise_16"]) < 1e-3
    assert abs(found["all_rise_4"]) > abs(found["all_rise_16"])


@pytest.mark.parametrize("variant", VARIANTS)
def test_maps_are_read_where_there_are_two_and_weights_everywhere(variant: str, text: Task) -> None:
    found = maps.of_maps(opened(variant, text)).figures
    two = variant != "softmax+rope"
    assert {"map_cosine", "map_correlation", "lambda", "first_near_zero"} <= set(found) or not two
    assert 0 <= found["near_zero"] <= 1
    assert (found["negative_mass"] > 0) == two
    assert (found["outside"] > 0.1) == two  # an average of values is inside their hull


@pytest.mark.parametrize("variant", VARIANTS)
def test_needles_are_scored_at_three_lengths_and_masses_are_the_instruments(variant: str) -> None:
    task = haystack()
    asked = opened(variant, task)
    found = needle.of_needles(asked)
    grid = {(cell["length"], cell["depth"]): cell["accuracy"] for cell in found.details["grid"]}
    assert sorted({length for length, _ in grid}) == [12, 24, 48]
    ends = [value for (length, _), value in grid.items() if length == 48]
    assert found.figures["twice"] == pytest.approx(sum(ends) / 5)
    probe = next(one for one in task.probes() if one.at["length"] == 48 and one.at["depth"] == 0.5)
    assert grid[48, 0.5] == score(asked.trained[0], probe.batches)["accuracy"]
    marks = task.marks()
    assert marks is not None
    share = attention_mass(asked.trained[0], marks).by_span()["other needles"]
    assert found.figures["mass_other_needles"] == pytest.approx(share)


def test_a_row_without_order_has_no_margin() -> None:
    task = parse("manyshot,shots=4,classes=2,features=8")
    found = manyshot.of_orders(opened("uniform+none", task), n_sets=2, n_orders=3, n_questions=4).figures
    assert {found[f"margin_{order}"] for order in ("random", "alternating", "grouped")} == {0.0}
    learned = manyshot.of_orders(opened("softmax+rope", task), n_sets=4, n_orders=6, n_questions=8).figures
    assert learned["right_random"] <= 1
    assert learned["margin_random"] >= 0


def test_ratios_are_to_softmax_turn_by_turn_and_the_cache_is_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Cost] = []

    def keeping(*asked: Any, **more: Any) -> Cost:
        kept.append(cost_by_length(*asked, **more))
        return kept[0]

    monkeypatch.setattr(cost, "cost_by_length", keeping)
    found = cost.of_blocks(Opened("blocks", 0, "quick"), lengths=(16, 32), seconds=0.1)
    assert found.figures["softmax_time_32"] == 1
    assert found.figures["differential_cache"] == found.figures["differential2_cache"] == 1
    assert found.details["lengths"] == [16, 32]
    base = kept[0].of("softmax", "block", "training")[0].seconds
    for variant in cost.ARMS:
        turns = zip(kept[0].of(variant, "block", "training")[0].seconds, base, strict=True)
        assert found.figures[f"{variant}_time_16"] == pytest.approx(median(ours / theirs for ours, theirs in turns))


def test_gradients_of_a_pair_grow_without_the_factor(text: Task) -> None:
    scaled, unscaled = (
        gradients.before_training(gradients.VARIANTS[row][1], Opened(row, 1, "full", task=text), n_layers=3)
        for row in ("version-1", "version-1-unscaled")
    )
    assert unscaled.figures["mean_gradient"] > scaled.figures["mean_gradient"]
    assert len(scaled.details["mixers"]) == 3
    assert len(scaled.details["apart"]) == 4


def test_the_ablations_are_the_published_ones_and_more() -> None:
    losses = {row.name: row.published.get("loss") for row in ablations.STUDY.rows}
    assert losses["no-norm"] == "3.122"
    assert [name for name, loss in losses.items() if loss is None] == [
        "unscaled", "lambda-0", "lambda-fixed", "lambda-per-head", "differential2",
    ]  # fmt: skip


@pytest.mark.parametrize("asked", [needle.STUDY, manyshot.STUDY, outliers.STUDY, maps.STUDY, ablations.STUDY])
def test_claims_read_rows_and_figures_that_there_are(asked: Study) -> None:
    names = {row.name for row in asked.rows}
    for claim in asked.claims:
        assert {row for row, _ in claim.ours.reads()} <= names
