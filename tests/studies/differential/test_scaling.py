import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock.studies.differential.scaling import ARMS, STUDY, EqualLoss, by_tokens, by_width, pictures, sizes
from headstock.studies.results import StudyResult
from headstock.studies.runs import RowResult, RowRun

SIZES = (1.0, 2.0, 4.0, 16.0)
ONE, OTHER = ("a", "b", "c", "d"), ("e", "f", "g", "h")


def figures(one: list[float], other: list[float]) -> dict[str, dict[str, float]]:
    return {row: {"loss": loss} for row, loss in zip([*ONE, *OTHER], [*one, *other], strict=True)}


@given(st.floats(0.2, 3), st.floats(0.05, 2), st.floats(-3, 3))
def test_a_curve_moved_along_the_axis_of_sizes_gives_how_far(fraction: float, slope: float, start: float) -> None:
    one = [start - slope * math.log(size) for size in SIZES]
    other = [start - slope * math.log(size / fraction) for size in SIZES]
    found = EqualLoss(ONE, OTHER, SIZES).of(figures(one, other))
    assert found == pytest.approx(fraction, rel=1e-6)


def test_a_lower_loss_needs_less_and_equal_losses_as_much() -> None:
    losses = [3.0, 2.7, 2.5, 2.2]
    lower = [loss - 0.1 for loss in losses]
    assert EqualLoss(ONE, OTHER, SIZES).of(figures(losses, lower)) < 1
    assert EqualLoss(ONE, OTHER, SIZES).of(figures(lower, losses)) > 1
    assert EqualLoss(ONE, OTHER, SIZES).of(figures(losses, losses)) == 1


def test_where_size_does_not_help_there_is_no_fraction() -> None:
    assert math.isnan(EqualLoss(ONE, OTHER, SIZES).of(figures([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0])))


def test_every_arm_has_every_size_once_and_the_middle_is_of_both_curves() -> None:
    names = [row.name for row in STUDY.rows]
    assert len(set(names)) == len(names) == 7 * len(ARMS)
    for arm in ARMS:
        assert set(by_width(arm)) & set(by_tokens(arm)) == {f"{arm}-middle"}
        assert {*by_width(arm), *by_tokens(arm)} <= set(names)
    assert list(sizes()) == sorted(sizes())
    assert sizes()[-1] > 10 * sizes()[0]


def result(losses: dict[str, list[float]]) -> StudyResult:
    rows = tuple(
        RowResult(name, "", "softmax", "", 1, {}, tuple(
            RowRun(seed, "finished", figures={"loss": loss}) for seed, loss in enumerate(of_seeds)
        ))
        for name, of_seeds in losses.items()
    )  # fmt: skip
    return StudyResult(STUDY, "full", None, 2, rows, (), (), {}, "", "", "")


def test_gains_are_drawn_as_what_an_arm_has_more_than_softmax_with_the_same_seed() -> None:
    losses = {row.name: [3.0, 4.0] for row in STUDY.rows}
    for name in by_width("differential"):
        losses[name] = [3.5, 4.5]
    drawn = {picture.name: picture for picture in pictures(result(losses))}
    assert set(drawn) == {f"{what}-by-{along}" for what in ("loss", "gains") for along in ("parameters", "tokens")}
    gains = {
        along: {arm: [row[2] for row in drawn[f"gains-by-{along}"].table.rows if row[0] == arm] for arm in ARMS}
        for along in ("parameters", "tokens")
    }
    assert gains["parameters"] == {"softmax": [], "differential": ["0.5"] * 4, "differential2": ["0"] * 4}
    assert gains["tokens"]["differential"] == ["0", "0", "0.5", "0"], "the middle width is of both"


def test_no_gain_is_drawn_of_one_seed() -> None:
    drawn = pictures(result({row.name: [3.0] for row in STUDY.rows}))
    assert {picture.name for picture in drawn} == {"loss-by-parameters", "loss-by-tokens"}
