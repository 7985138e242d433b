import math
import re
from itertools import pairwise

import pytest

from headstock.errors import UserError
from headstock.pictures.lines import lines
from tests.pictures.reading import strokes, texts, words


def drawn(series, **options):
    return lines(series, **{"x": "layer", "y": "entropy (nats)", "title": "a"} | options)


def curve(picture, colour):
    """The stroke in a colour that begins furthest left: the line itself, not what ties it to its label."""
    return min(strokes(picture.drawing, f"var(--{colour})"), key=lambda stroke: stroke[0][0])[0]


def test_each_line_has_its_label_at_its_end_in_its_colour():
    picture = drawn({"softmax": ([0, 1, 2], [1, 2, 3]), "uniform": ([0, 1, 2], [1, 1, 1])})
    places = {text: (x, y) for text, x, y in texts(picture.drawing)}
    for label, colour in (("softmax", "arm-1"), ("uniform", "arm-2")):
        x, y = curve(picture, colour)[-1]
        assert places[label][0] > x
        assert abs(places[label][1] - y) < 6
        assert re.search(rf"fill:var\(--{colour}\)[^>]*>{label}<", picture.drawing)
    assert {"layer", "entropy (nats)"} <= set(places)


def test_zero_is_on_the_axis_unless_it_is_asked_not_to():
    series = {"a": ([0, 1], [30.0, 31.0])}
    assert "0" in [text for text, x, _ in texts(drawn(series).drawing) if x < 46]
    assert "0" not in [text for text, x, _ in texts(drawn(series, zero=False).drawing) if x < 46]
    below = {"a": ([0, 1], [-30.0, -31.0])}
    assert "0" in [text for text, x, _ in texts(drawn(below).drawing) if x < 46]


def test_a_power_law_is_straight_on_two_logarithmic_axes():
    lengths = [2**power for power in range(5, 12)]
    points = curve(drawn({"a": (lengths, [n**2 for n in lengths])}, log_x=True, log_y=True), "arm-1")
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(points)]
    assert slopes == pytest.approx([slopes[0]] * len(slopes), rel=0.02)
    assert slopes[0] < 0  # upwards is less in pixels


def test_the_lengths_that_were_measured_are_the_ticks():
    picture = drawn({"": ([64, 256, 1024], [1.0, 2.0, 3.0])}, log_x=True)
    assert {"64", "256", "1,024"} <= set(words(picture.drawing))


def test_the_label_of_a_line_on_a_logarithmic_axis_stands_at_its_end():
    picture = drawn({"a": ([1, 2], [1.0, 1e4]), "b": ([1, 2], [1.0, 10.0])}, log_y=True)
    places = {text: y for text, _, y in texts(picture.drawing)}
    for label, colour in (("a", "arm-1"), ("b", "arm-2")):
        assert abs(places[label] - curve(picture, colour)[-1][1]) < 6


def test_what_is_not_finite_leaves_a_gap():
    picture = drawn({"a": ([0, 1, 2, 3, 4], [1.0, 2.0, math.nan, 2.0, 1.0])})
    assert "nan" not in picture.drawing
    outlines = [outline for outline in re.findall(r' d="([^"]*)"', picture.drawing) if outline.count("L") == 2]
    assert any(outline.count("M") == 2 for outline in outlines)
    assert ["a", "2", "—"] in picture.table.rows


def test_a_line_that_breaks_off_has_its_mark_and_its_label_at_its_last_value():
    picture = drawn({"a": (list(range(40)), [*map(float, range(39)), math.nan])})
    x, y = curve(picture, "arm-1")[-1]
    marks = re.findall(r"fill:var\(--arm-1\)\" transform=\"translate\((\S+) (\S+)\)", picture.drawing)
    assert any(abs(float(across) - x) < 0.2 and abs(float(down) - y) < 0.2 for across, down in marks)
    assert abs(next(down for text, _, down in texts(picture.drawing) if text == "a") - y) < 6


def test_what_a_logarithmic_axis_cannot_hold_is_counted_in_the_caption():
    picture = drawn({"a": ([0, 1, 2, 3], [1.0, 0.0, 3.0, -1.0])}, log_y=True)
    assert "2 values at or below 0 cannot stand" in picture.caption
    assert "logarithmic" not in drawn({"a": ([0, 1], [1.0, math.nan])}, log_y=True).caption


def test_a_band_is_drawn_and_named():
    picture = drawn({"a": ([0, 1], [1, 2])}, bands={"a": ([0.5, 1.5], [1.5, 2.5])}, band="the range of 3 seeds")
    assert "Band: the range of 3 seeds." in picture.caption
    assert "fill:var(--arm-1);fill-opacity:0.16" in picture.drawing or "opacity:0.16" in picture.drawing
    assert picture.table.rows[1] == ["a", "1", "2", "1.5", "2.5"]


def test_a_level_is_a_line_across_with_its_name():
    picture = drawn({"a": ([0, 1], [1, 2])}, levels={"log 8": math.log(8)})
    assert "Dotted: log 8 2.079." in picture.caption
    (_, low), (_, high) = curve(picture, "arm-1")
    label = next(y for text, _, y in texts(picture.drawing) if text == "log 8")
    across = [points for points, _ in strokes(picture.drawing, "var(--muted)") if points[0][1] == points[-1][1]]
    expected = low + (high - low) * (math.log(8) - 1)
    assert any(points[0][1] == pytest.approx(expected, abs=0.1) for points in across)
    assert abs(label - expected) < 20


def test_whole_numbers_are_counted_by_whole_numbers():
    ticks = [text for text, _, y in texts(drawn({"": ([0, 1, 2], [1, 1, 1])}).drawing) if 215 < y < 230]
    assert ticks == ["0", "1", "2"]


def test_a_long_line_has_some_of_its_values_in_the_table_the_last_one_always():
    picture = drawn({"a": (list(range(1000)), [float(step) for step in range(1000)])})
    assert len(picture.table.rows) <= 48
    assert picture.table.rows[-1] == ["a", "999", "999"]
    assert "one value in 21" in picture.caption


@pytest.mark.parametrize("options", [{}, {"log_x": True}, {"log_y": True}, {"zero": False}])
@pytest.mark.parametrize("value", [1.0, 1e-30, 1e30])
def test_a_single_point_can_be_drawn(value, options):
    picture = drawn({"a": ([1.0], [value])}, **options)
    assert "nan" not in picture.drawing
    assert "inf" not in picture.drawing


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"series": {"a": ([0, 1], [1.0])}}, "2 x for 1 y"),
        ({"series": {"a": ([], [])}}, "no value"),
        ({"series": {"a": ([1], [-1.0])}, "log_y": True}, "no value"),
        ({"series": {"a": ([1], [1.0])}, "log_y": True, "zero": True}, "no zero"),
        ({"series": {"a": ([1], [1.0])}, "bands": {"a": ([1.0], [1.0])}}, "without a name"),
        ({"series": {"a": ([1], [1.0])}, "bands": {"b": ([1.0], [1.0])}, "band": "x"}, "no line"),
        ({"series": {"a": ([1], [1.0])}, "bands": {"a": ([1.0], [1.0, 2.0])}, "band": "x"}, "as many"),
    ],
)
def test_lines_that_cannot_be_drawn_are_refused(options, said):
    with pytest.raises(UserError, match=said):
        drawn(**options)
