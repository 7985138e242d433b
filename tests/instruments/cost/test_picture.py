"""Cost draws itself: both axes are logarithmic, the title is the finding, and the formula stands beside the bytes."""

from dataclasses import replace

import pytest

from headstock.errors import UserError
from headstock.instruments.cost import Cost, cost_by_length, turns
from headstock.model.config import config_of


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "SHORTEST_SAMPLE", 1e-6)
    monkeypatch.setattr(turns, "FEWEST_TURNS", 2)


def cost(*variants: str, lengths: tuple[int, ...] = (64, 128, 256), plain: bool = False) -> Cost:
    configs = {variant: config_of(variant, vocab_size=1, context=256, d_model=16, n_heads=2) for variant in variants}
    return cost_by_length(configs, lengths, plain=plain, parts=("block", "mixing"), seconds=1e-6)


def test_bytes_of_one_variant_are_drawn_beside_their_formula_with_their_power() -> None:
    picture = cost("softmax", plain=True).draw("bytes", "mixing", "forward")
    assert picture.title.startswith("Reading by mixing: memory grows with the tokens to the power of 2.0")
    assert {row[0] for row in picture.table.rows} == {"softmax", "by formula"}
    first = picture.table.rows[0]
    assert first[1] == "64"
    assert float(first[2]) == pytest.approx(3.2 * 2 * 64 * 64 * 4 / 2**20, rel=0.1)


def test_the_title_compares_the_variant_that_is_farthest_from_the_first() -> None:
    found = cost("softmax", "uniform", "differential")
    slow = [replace(one, seconds=(1.0,) * 5) for one in found.measured if one.label != "uniform"]
    quick = [replace(one, seconds=(0.25,) * 5) for one in found.measured if one.label == "uniform"]
    picture = replace(found, measured=tuple(slow + quick)).draw()
    assert picture.title == "Training a block: at 256 tokens uniform takes 0.25 times softmax's time"
    assert "2 turns" in picture.caption
    assert {row[0] for row in picture.table.rows} == {"softmax", "uniform", "differential"}


def test_two_lengths_are_drawn_without_a_power() -> None:
    assert cost("softmax", lengths=(64, 128)).draw().title == "Training a block: time by tokens"


def test_a_notebook_shows_seconds_and_bytes_of_each_part() -> None:
    assert cost("softmax")._repr_html_().count("<svg") == 4


def test_what_was_not_measured_is_refused() -> None:
    found = cost("softmax")
    with pytest.raises(UserError, match="nothing was measured of 'feedforward' in 'forward'"):
        found.draw("bytes", "feedforward", "forward")
    with pytest.raises(UserError, match="unknown quantity 'byte': did you mean 'bytes'"):
        found.draw("byte")  # type: ignore[arg-type]
