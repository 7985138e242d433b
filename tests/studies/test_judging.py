"""Ours held against a band: the three verdicts, the intervals behind them, and what neither may do."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import stats

from headstock.studies.base import Claim, Effort, Row, Study
from headstock.studies.figures import figure
from headstock.studies.judging import Judgement, band, judge
from headstock.studies.runs import RowResult, RowRun

USUAL = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
ANY = st.floats(allow_nan=True, allow_infinity=True)


def row(name: str, values: Sequence[float | None], **also: Mapping[str, float]) -> RowResult:
    """A row with a figure `f`, one value a seed; None is a seed whose loss became no number."""
    runs = [
        RowRun(seed, "failed", "the loss is nan at step 3", diverged=True)
        if value is None
        else RowRun(seed, "finished", figures={"f": value})
        for seed, value in enumerate(values)
    ]
    return RowResult(name, "", "", "", 0, {}, tuple(runs))


def study(*claims: Claim, **settings: object) -> Study:
    rows = (Row("a", ""), Row("b", ""))
    one = Study("s", "S", "?", "nowhere", rows, claims, {"quick": Effort(1)})
    return replace(one, **settings)  # type: ignore[arg-type]


def claim(low: float = -math.inf, high: float = math.inf, **more: object) -> Claim:
    one = Claim("It is so.", figure("a", "f"), "1", "made up", at_least=low, at_most=high)
    return replace(one, **more)  # type: ignore[arg-type]


def judged(claim: Claim, values: Sequence[float | None], **settings: object) -> Judgement:
    """Judge one claim on the values of row a."""
    return judge(study(claim, **settings), [row("a", values)], as_published=True)[0]


def test_what_nobody_published_is_upheld_or_not_and_never_reproduced() -> None:
    said = [judged(claim(low, high, published=None), [0.99, 1.0, 1.01]) for low, high in ((0, 2), (2, 3), (1, 3))]
    assert [one.verdict for one in said] == ["upheld", "not upheld", "not decidable"]
    assert [one.agrees for one in said] == [True, False, None]


def test_a_claim_may_hold_a_number_beside_its_figures() -> None:
    less = claim(6.9, 7.1, ours=(figure("a", "f") - 3) / 2)
    assert judged(less, [17.0, 17.0]).values == {0: 7.0, 1: 7.0}
    assert less.ours.reads() == {("a", "f")}
    with pytest.raises(TypeError, match="unsupported operand"):
        figure("a", "f") - "3"  # type: ignore[operator]


def test_figures_near_the_largest_number_have_no_interval_and_break_nothing() -> None:
    for values in ([1e308, -1e308, 1e308], [1e308, 1e308, -1.7e308]):
        for pooled in (False, True):
            assert judged(claim(0.0), values, pooled=pooled).verdict == "not decidable"


def test_an_infinity_is_written_with_its_sign() -> None:
    assert judged(claim(0.0), [-math.inf, -math.inf]).why == "Ours, −infinite, lies below the band, at least 0."


def test_as_much_with_every_seed_is_not_more() -> None:
    more = claim(1.0, strict=True)
    assert band(more) == "above 1"
    assert judged(more, [1.0, 1.0, 1.0]).verdict == "not decidable"
    assert "neither side of the edge of the band, above 1" in judged(more, [1.0, 1.0, 1.0]).why
    assert judged(more, [1.1, 1.1, 1.1]).verdict == "reproduced"
    assert judged(more, [0.9, 0.9, 0.9]).verdict == "not reproduced"
    assert judged(claim(1.0), [1.0, 1.0, 1.0]).verdict == "reproduced"
    assert judged(claim(high=1.0, strict=True), [1.0, 1.0]).verdict == "not decidable"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.5, 1.5, "reproduced"),
        (-math.inf, 1.5, "reproduced"),
        (1.2, 1.5, "not reproduced"),
        (-math.inf, 0.8, "not reproduced"),
        (1.0, 1.5, "not decidable"),
    ],
)
def test_each_verdict_is_reached_by_where_the_interval_lies(low: float, high: float, verdict: str) -> None:
    found = judged(claim(low, high), [0.99, 1.0, 1.01])
    assert found.verdict == verdict
    assert found.basis == "seeds"


@given(st.lists(USUAL, min_size=2, max_size=6), USUAL, st.floats(0, 1e6))
def test_a_verdict_says_how_the_interval_lies_to_the_band(values: list[float], low: float, width: float) -> None:
    found = judged(claim(low, low + width), values)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.high
    inside = low <= found.low and found.high <= low + width
    apart = found.high < low or found.low > low + width
    assert found.verdict == ("reproduced" if inside else "not reproduced" if apart else "not decidable")


@given(st.lists(USUAL, min_size=2, max_size=6), USUAL, st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_wider_band_takes_no_reproduction_back(
    values: list[float], low: float, width: float, below: float, above: float
) -> None:
    narrow = judged(claim(low, low + width), values).verdict
    wide = judged(claim(low - below, low + width + above), values).verdict
    if narrow == "reproduced":
        assert wide == "reproduced"
    if wide == "not reproduced":
        assert narrow == "not reproduced"


@given(st.lists(USUAL, min_size=2, max_size=6), st.integers(1, 20))
def test_the_interval_is_students_at_bonferronis_level(values: list[float], n_claims: int) -> None:
    assume(len(set(values)) > 1)
    found = judge(study(*[claim(0.0)] * n_claims), [row("a", values)], as_published=True)[0]
    theirs = stats.ttest_1samp(values, 0.0).confidence_interval(1 - 0.05 / n_claims)
    assert [found.low, found.high] == pytest.approx([theirs.low, theirs.high], rel=1e-6, abs=1e-6)


def test_all_intervals_of_a_study_hold_together_95_times_in_100() -> None:
    draws = np.random.default_rng(0)
    asked = study(*[replace(claim(), ours=figure(name, "f")) for name in "abcde"])
    missed = 0
    for _ in range(600):
        rows = [row(name, draws.normal(3.0, 1.0, 3).tolist()) for name in "abcde"]
        ends = [(found.low, found.high) for found in judge(asked, rows, as_published=True)]
        missed += not all(low is not None and high is not None and low <= 3.0 <= high for low, high in ends)
    assert missed / 600 < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 600)
    assert missed > 5  # and are no wider than they have to be


@given(st.floats(0.1, 1e4), st.floats(0.1, 1e4), st.floats(0.001, 0.03), st.booleans())
def test_an_assumed_spread_becomes_the_interval_that_draws_of_the_figures_give(
    a: float, b: float, spread: float, ratio: bool
) -> None:
    both = figure("a", "f") / figure("b", "f") if ratio else figure("a", "f") - figure("b", "f")
    asked = study(claim(0.0, ours=both), spread=spread)
    found = judge(asked, [row("a", [a]), row("b", [b])], as_published=True)[0]
    assert found.basis == "assumed spread"
    x, y = np.exp(np.random.default_rng(0).normal(0.0, spread, (2, 40_000)))
    drawn = a * x / (b * y) if ratio else a * x - b * y
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low == pytest.approx(2 * 1.96 * drawn.std(), rel=0.03)


def test_one_seed_without_a_spread_decides_nothing_and_says_what_would() -> None:
    found = judged(claim(0.0, 2.0), [1.0])
    assert (found.verdict, found.estimate, found.low) == ("not decidable", 1.0, None)
    assert "--seeds" in found.why


def test_a_spread_in_shares_says_nothing_of_a_figure_that_is_zero() -> None:
    found = judged(claim(-1.0, 1.0), [0.0], spread=0.01)
    assert (found.verdict, found.basis) == ("not decidable", "none")
    rows = [row("a", [0.0, 0.0]), row("b", [1.0, 1.1])]
    assert judge(study(claim(-1.0, 1.0), pooled=True), rows, as_published=True)[0].basis == "seeds"


def test_a_spread_that_is_assumed_of_one_figure_decides_nothing_of_another() -> None:
    assert judged(claim(0.5, 1.5), [1.0], spread=0.01, spread_of=("f",)).verdict == "reproduced"
    assert judged(claim(0.5, 1.5), [1.0], spread=0.01, spread_of=("g",)).verdict == "not decidable"


def test_an_exact_figure_has_to_lie_in_the_band_with_every_seed() -> None:
    assert judged(claim(1.0, 1.0), [1.0], exact=True).verdict == "reproduced"
    assert judged(claim(1.0, 1.0), [1.0, 1.0], exact=True).verdict == "reproduced"
    assert judged(claim(1.0, 1.0), [2.0, 2.5], exact=True).verdict == "not reproduced"
    disagreeing = judged(claim(1.0, 1.0), [1.0, 2.0], exact=True)
    assert disagreeing.verdict == "not decidable"
    assert "Seeds disagree" in disagreeing.why


def test_what_a_whole_training_gives_is_not_decided_at_another_budget_and_costs_no_correction() -> None:
    asked = study(claim(0.5, 1.5, full_only=True), claim(0.5, 1.5))
    quick = judge(asked, [row("a", [0.99, 1.0, 1.01])], as_published=False)
    assert [found.verdict for found in quick] == ["not decidable", "reproduced"]
    assert quick[0].estimate == pytest.approx(1.0)  # printed all the same
    assert quick[1].level == pytest.approx(0.95)
    full = judge(asked, [row("a", [0.99, 1.0, 1.01])], as_published=True)
    assert [found.verdict for found in full] == ["reproduced", "reproduced"]
    assert full[1].level == pytest.approx(0.975)


def test_a_row_that_the_budget_leaves_out_decides_nothing() -> None:
    found = judge(study(claim(0.0)), [row("b", [1.0, 1.1])], as_published=True)[0]
    assert (found.verdict, found.why) == ("not decidable", "At this budget a is not run.")


def test_a_run_that_diverged_decides_nothing_even_where_other_seeds_did_not() -> None:
    for values in ([None, None], [1.0, 1.0, None]):
        found = judged(claim(0.0, 2.0), values)
        assert found.verdict == "not decidable"
        assert "the loss is nan at step 3" in found.why


def diverging(low: float, high: float, values: Sequence[float | None]) -> Judgement:
    """Judge a claim to which a divergence is an answer."""
    one = replace(claim(low, high, divergence_counts=True), ours=figure("a", "perplexity"))
    runs = tuple(replace(run, figures={"perplexity": run.figures["f"]} if run.figures else {})
                 for run in row("a", values).runs)  # fmt: skip
    return judge(study(one), [replace(row("a", values), runs=runs)], as_published=True)[0]


def test_where_a_divergence_is_an_answer_its_perplexity_is_infinite() -> None:
    assert diverging(100.0, math.inf, [None, None]).verdict == "reproduced"
    assert diverging(1.0, 100.0, [None, None]).verdict == "not reproduced"
    mixed = diverging(100.0, math.inf, [None, 300.0, 310.0])
    assert (mixed.verdict, mixed.why.startswith("Some seeds diverged")) == ("not decidable", True)


def test_a_figure_that_is_not_there_is_named() -> None:
    found = judged(claim(0.0, ours=figure("a", "g")), [1.0, 2.0])
    assert (found.verdict, found.why) == ("not decidable", "With seed 0, a has no figure 'g'.")


def test_seeds_that_are_not_run_yet_are_left_out() -> None:
    runs = (*row("a", [0.99, 1.0, 1.01]).runs, RowRun(3, "missing"))
    found = judge(study(claim(0.5, 1.5)), [replace(row("a", []), runs=runs)], as_published=True)[0]
    assert (found.verdict, sorted(found.values)) == ("reproduced", [0, 1, 2])


@given(st.lists(ANY, min_size=1, max_size=4), ANY, ANY, st.sampled_from([None, 0.01]), st.booleans(), st.booleans())
@example([math.inf, -math.inf], 0.0, 1.0, None, False, False)
@example([0.0, 0.0], 0.0, 1.0, None, True, False)
@example([1.7e308, -1.7e308, 1.7e308], 0.0, 1.0, None, False, False)
def test_whatever_the_numbers_there_is_a_verdict_and_never_one_on_no_number(
    values: list[float], low: float, high: float, spread: float | None, ratio: bool, exact: bool
) -> None:
    assume(not (math.isnan(low) or math.isnan(high)) and low <= high)
    ours = figure("a", "f") / figure("a", "f") if ratio else figure("a", "f")
    found = judged(claim(low, high, ours=ours), values, spread=spread, exact=exact)
    assert found.why.endswith(".")
    if any(math.isnan(value) for value in found.values.values()):
        assert found.verdict == "not decidable"
    if found.verdict == "reproduced":
        assert all(low <= value <= high for value in found.values.values())
    found.to_dict()


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (2.0, 4.0, "2 to 4"),
        (0.0001, 0.25, "0.0001 to 0.25"),
        (2.0, math.inf, "at least 2"),
        (-math.inf, -2.5, "at most −2.5"),
        (124439808.0, 124439808.0, "exactly 124,439,808"),
    ],
)
def test_a_band_is_written_as_it_is_said(low: float, high: float, said: str) -> None:
    assert band(claim(low, high)) == said


def test_a_count_is_exact_whatever_the_study_assumes_and_takes_no_share_of_the_correction() -> None:
    count = replace(claim(5.0, 5.0), ours=figure("a", "parameters"))
    runs = (RowRun(0, "finished", figures={"f": 1.0, "parameters": 5.0}),)
    asked = study(count, claim(0.5, 1.5), claim(0.5, 1.5, exact=True), spread=0.01)
    found = judge(asked, [replace(row("a", []), runs=runs)], as_published=True)
    assert [one.basis for one in found] == ["exact", "assumed spread", "exact"]
    assert [one.verdict for one in found] == ["reproduced"] * 3
    assert found[1].level == pytest.approx(0.95)


def test_only_what_a_seed_moves_is_given_the_assumed_spread() -> None:
    runs = (RowRun(0, "finished", figures={"f": 100.0, "parameters": 50.0}),)
    each = claim(0.0, ours=figure("a", "f") / figure("a", "parameters"))
    found = judge(study(each, spread=0.01), [replace(row("a", []), runs=runs)], as_published=True)[0]
    assert found.low == pytest.approx(2 * (1 - 1.96 * 0.01), rel=1e-4)


def test_what_is_no_number_is_said_to_be_none() -> None:
    found = judged(claim(0.0, ours=figure("a", "f") / figure("a", "f")), [0.0, 1.0])
    assert (found.verdict, found.why.startswith("Ours is no number")) == ("not decidable", True)


def test_a_figure_so_large_that_its_spread_overflows_decides_nothing() -> None:
    found = judged(claim(0.0), [1.7e308], spread=0.1)
    assert (found.verdict, found.low) == ("not decidable", -math.inf)


def test_pooled_seeds_cover_what_they_claim_and_say_more_than_a_row_of_its_own() -> None:
    draws = np.random.default_rng(1)
    truth = {"a": 40.0, "b": 44.0, "c": 60.0, "d": 250.0}
    difference = replace(claim(), ours=figure("b", "f") - figure("a", "f"))
    asked = study(difference, pooled=True)
    missed, narrower = 0, 0
    for _ in range(600):
        rows = [row(name, (mean * np.exp(draws.normal(0.0, 0.01, 3))).tolist()) for name, mean in truth.items()]
        found = judge(asked, rows, as_published=True)[0]
        alone = judge(study(difference), rows, as_published=True)[0]
        assert found.basis == "pooled seeds"
        assert found.low is not None
        assert found.high is not None
        assert alone.low is not None
        assert alone.high is not None
        missed += not found.low <= 4.0 <= found.high
        narrower += found.high - found.low < alone.high - alone.low
    assert 5 < missed < 600 * (0.05 + 3 * math.sqrt(0.05 * 0.95 / 600))
    assert narrower > 400


def test_a_single_seed_has_nothing_to_pool() -> None:
    assert judged(claim(0.0, 2.0), [1.0], pooled=True).verdict == "not decidable"
    assert judged(claim(0.0, 2.0), [1.0], pooled=True, spread=0.01).basis == "assumed spread"


def test_a_row_that_diverged_is_left_out_of_the_pool() -> None:
    rows = [row("a", [1.0, 1.01, 0.99]), row("b", [1.0, math.inf, 2.0])]
    found = judge(study(claim(0.5, 1.5), pooled=True), rows, as_published=True)[0]
    assert found.verdict == "reproduced"
