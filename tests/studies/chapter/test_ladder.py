import json
from pathlib import Path

import pytest

from headstock.model.accounting import parameters
from headstock.studies.cells import cell_of
from headstock.studies.chapter.ladder import STUDY, WITH_FOUR_HEADS
from headstock.studies.chapter.shared import SCATTER
from headstock.studies.judging import judge
from headstock.studies.runs import RowResult, RowRun
from headstock.studies.scatter import mean_squares
from tests.studies.declared import published
from tests.tasks.conftest import shakespeare as shakespeare

RESULTS = Path(__file__).parents[3] / "docs" / "results"

# As the chapter has them, or near them where it says "about".
PRINTED = {
    "no-context": 59.71, "uniform-replacing": 248.0, "uniform-replacing-positions": 245.86, "uniform-added": 60.45,
    "uniform-added-positions": 60.45, "one-head": 46.0, "one-head-replacing": 55.0, "four-heads": 43.0,
    "feedforward": 39.9, "block": 38.07, "two-blocks": 40.57,
}  # fmt: skip
TRAINED = {"block": 18.77, "two-blocks": 14.49}


def rows_with(found: dict[str, float], counts: dict[str, int]) -> list[RowResult]:
    results = []
    for row in STUDY.rows:
        if row.name not in found:
            continue
        figures = {"perplexity": found[row.name], "parameters": counts[row.name]}
        figures |= {"train_perplexity": TRAINED[row.name]} if row.name in TRAINED else {}
        run = RowRun(0, "finished", figures=figures)
        results.append(RowResult(row.name, row.says, row.variant, "", 3000, row.published, (run,)))
    return results


def counts() -> dict[str, int]:
    return {row.name: parameters(cell_of(STUDY, row, "full", 0).model).total for row in STUDY.rows}


@pytest.mark.usefixtures("shakespeare")
def test_the_chapters_own_figures_lie_in_every_band() -> None:
    found = judge(STUDY, rows_with(PRINTED, counts()), as_published=True)
    for judgement in found:
        assert judgement.estimate is not None
        assert judgement.claim.at_least <= judgement.estimate <= judgement.claim.at_most, judgement.claim.says


@pytest.mark.usefixtures("shakespeare")
def test_a_ladder_without_a_step_contradicts_the_chapter() -> None:
    flat = dict.fromkeys(PRINTED, 50.0)
    verdicts = [judgement.verdict for judgement in judge(STUDY, rows_with(flat, counts()), as_published=True)]
    assert verdicts.count("not reproduced") >= 6


def test_published_perplexities_stand_letter_for_letter() -> None:
    assert published(STUDY) == {
        "no-context": "59.71",
        "uniform-replacing": "about 4 times row 1",
        "uniform-replacing-positions": "2.14 below",
        "uniform-added": "60.45",
        "uniform-added-positions": "60.45",
        "one-head": "about 46",
        "one-head-replacing": "9 above",
        "four-heads": "about 43",
        "feedforward": "about 39.9",
        "block": "38.07",
        "two-blocks": "40.57",
    }
    assert published(STUDY, "train_perplexity") == {"block": "18.77", "two-blocks": "14.49"}


@pytest.mark.usefixtures("shakespeare")
def test_each_row_adds_as_many_parameters_as_the_chapter_counts() -> None:
    counted = counts()
    assert counted["four-heads"] - counted["one-head"] == 128**2 + 128 == 16_512
    assert counted["block"] - counted["feedforward"] == 768
    assert counted["one-head"] - counted["no-value-map"] == 128**2
    assert counted["no-value-map"] - counted["shared-map"] == 128**2
    assert counted["shared-map"] - counted["raw-scores"] == 128**2
    assert counted["raw-scores"] == counted["uniform-added-positions"]


def test_what_other_studies_assume_of_seeds_is_what_the_ladder_measured() -> None:
    said = json.loads((RESULTS / "ladder" / "study.json").read_text())
    rows = [
        RowResult(
            row["name"],
            "",
            "",
            "",
            0,
            {},
            tuple(RowRun(r["seed"], r["status"], figures=r["figures"]) for r in row["runs"]),
        )
        for row in said["rows"]
        if row["name"] in WITH_FOUR_HEADS
    ]
    found = mean_squares(rows, "perplexity")
    assert found is not None
    assert (found.n_rows, found.n_seeds) == (4, 5)
    assert (float(f"{found.apart:.2g}"), float(f"{found.alike:.2g}")) == (SCATTER["spread"], SCATTER["spread_alike"])
