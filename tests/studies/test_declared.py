"""Every study as it is declared: it can be run, it says what it asks, and its rows are the runs that were computed."""

import math

import pytest

from headstock.studies import study, study_names
from headstock.studies.base import Study
from headstock.studies.cells import cell_of
from headstock.studies.plan import make_plan
from tests.tasks.conftest import shakespeare as shakespeare  # text is read to plan a run

NAMES = ("ladder", "averages", "scale", "norm-placement", "positions", "cost", "size", "recurrence", "crossing",
         "parity", "induction", "compiled-vs-trained", "diff-lm", "diff-ablations", "diff-positions", "diff-needle",
         "diff-manyshot", "diff-outliers", "diff-long", "diff-scaling", "diff-cost", "do-the-maps-differ",
         "diff-gradients")  # fmt: skip
each_study = pytest.mark.parametrize("name", NAMES)


def test_all_studies_are_listed() -> None:
    assert set(NAMES) == set(study_names())


@each_study
@pytest.mark.usefixtures("shakespeare")
def test_every_study_can_be_planned_at_both_budgets(name: str) -> None:
    asked = study(name)
    assert asked.name == name
    for budget in ("quick", "full"):
        plan = make_plan(asked, budget)  # type: ignore[arg-type]
        assert plan.rows
        assert asked.efforts[budget].minutes  # type: ignore[index]
    assert asked.efforts["quick"].minutes is not None
    assert asked.efforts["quick"].minutes <= 10


@each_study
def test_every_study_says_what_it_asks_and_chose(name: str) -> None:
    asked = study(name)
    for said in (asked.title, asked.asks, asked.source, *asked.choices, *asked.remarks):
        assert said.strip()
    assert asked.choices
    assert asked.exact or asked.spread is not None or asked.efforts["full"].seeds > 2
    assert (asked.spread is None) == (not asked.spread_because)


@each_study
def test_every_claim_has_a_band_with_a_reason_and_stands_once(name: str) -> None:
    asked = study(name)
    for claim in asked.claims:
        assert claim.says.endswith(".")
        assert claim.because.strip()
        assert claim.published is None or claim.published.strip()
        assert claim.at_least <= claim.at_most
        assert math.isfinite(claim.at_least) or math.isfinite(claim.at_most)
    assert len({claim.says for claim in asked.claims}) == len(asked.claims)


@each_study
def test_quick_decides_something(name: str) -> None:
    asked = study(name)
    there = set(asked.efforts["quick"].rows or [row.name for row in asked.rows])
    decidable = [
        claim for claim in asked.claims if not claim.full_only and {row for row, _ in claim.ours.reads()} <= there
    ]
    assert decidable


def _hashes(asked: Study) -> dict[str, str]:
    rows = [row for row in asked.rows if row.variant]
    return {row.name: cell_of(asked, row, "full", 0).folder_name.rpartition("-")[2] for row in rows}


COMPUTED = {
    "ladder": {
        "no-context": "6f170b61", "uniform-replacing": "72e7a879", "uniform-replacing-positions": "5f9d4a4b",
        "uniform-added": "0a99cd02", "uniform-added-positions": "02878f2c", "raw-scores": "06bbce17",
        "shared-map": "71801bde", "no-value-map": "035d2a4d", "one-head": "2d91d3d4",
        "one-head-replacing": "581e5019", "four-heads": "92a53de5", "feedforward": "0e2022cf", "block": "a0f69a38",
        "two-blocks": "f8a99cc8", "no-context-fan-in": "a0513e7e", "no-context-gpt2": "f080de37",
        "block-fan-in": "cf349819", "block-gpt2": "aa725163",
    },
    "norm-placement": {
        "pre": "4eb898e6", "pre-warm-up": "33ee4369", "post": "2ca1172c", "post-warm-up": "d2723a24",
        "pre-64": "84af4678",
    },
    "positions": {
        "learned": "77134a13", "sinusoidal": "37b9bb13", "rope": "ef7369f8", "alibi": "528c0ee5", "xpos": "24003ea1",
        "none": "b7263d10",
    },
    "scale": {
        "four-heads": "92a53de5", "four-heads-undivided": "1f83854d", "block": "a0f69a38",
        "block-undivided": "1f1c0400", "head-32": "21b51520", "head-32-undivided": "5f5d2441",
        "head-128": "5f52f7e8", "head-128-undivided": "ba9bc469", "head-256": "ff201ade",
        "head-256-undivided": "e36a465e", "head-1024": "7c7a49e5", "head-1024-undivided": "c8d7fa8c",
        "wide-128": "dac47e93", "wide-128-undivided": "d8ca89d0", "wide-256": "22190843",
        "wide-256-undivided": "e228cda0", "wide-1024": "4d3d3a20", "wide-1024-undivided": "b512f111",
    },
    "recurrence": {"lstm": "25a52f07", "softmax": "fcd3bdbb"},
    "crossing": {
        "average": "2f5a1aaa", "average-block": "ee804cba", "one-block": "1106bb89", "two-blocks": "e8c662ac",
        "two-average-blocks": "21061fb9", "two-average-blocks-gpt2": "dfd5e958", "leaky-average": "ec8dfcc3",
        "leaky-one-block": "8fbe58ad", "leaky-two-blocks": "85fe8a00",
    },
    "induction": {
        "repeats-one-block": "a4f34f8c", "repeats-two-blocks": "77293374", "repeats-four-blocks": "3335d802",
        "text-one-block": "a0f69a38", "text-two-blocks": "f8a99cc8",
    },
}  # fmt: skip
"""How the folders of docs/results end, by study and row: what decides a run's numbers, hashed."""


@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.usefixtures("shakespeare")
def test_rows_are_the_runs_that_were_computed(name: str) -> None:
    assert _hashes(study(name)) == COMPUTED[name]
