import math
import re

import pytest

from headstock.errors import UserError
from headstock.pictures.bars import bars
from tests.pictures.reading import strokes, texts, words


def drawn(values, **options):
    return bars(values, **{"unit": "perplexity", "title": "a"} | options)


def boxes(picture, colour="arm-1"):
    """(left, right) of every filled box, from the top."""
    found = []
    for outline in re.findall(rf'd="([^"]*)" style="fill:var\(--{colour}\);opacity:0.6', picture.drawing):
        points = [(float(x), float(y)) for x, y in re.findall(r"[ML] (\S+) (\S+)", outline)]
        found.append((min(y for _, y in points), min(x for x, _ in points), max(x for x, _ in points)))
    return [(left, right) for _, left, right in sorted(found)]


def test_bars_begin_at_zero_and_are_as_long_as_their_values():
    (left, half), (also, whole) = boxes(drawn({"a": 1.0, "b": 2.0}))
    assert left == also == 8
    assert whole - left == pytest.approx(2 * (half - left), abs=0.3)


def test_bars_below_zero_lie_on_the_other_side_of_it():
    (near, zero), (also, far) = boxes(drawn({"a": -1.0, "b": 3.0}))
    assert zero == also
    assert (far - also) == pytest.approx(3 * (zero - near), abs=0.5)


def test_each_value_is_written_with_its_interval_rounded_outwards():
    picture = drawn({"a": (60.83, 60.08, 61.62), "b": 46.2}, interval="95 %, 3 seeds")
    assert "60.83 (60.0 to 61.7)" in words(picture.drawing)
    assert "46.2" in words(picture.drawing)
    assert "Line: 95 %, 3 seeds." in picture.caption
    assert picture.table.rows == [["a", "60.83", "60.08", "61.62"], ["b", "46.2", "—", "—"]]


def test_the_line_of_an_interval_goes_from_its_low_to_its_high_end():
    picture = drawn({"a": (50.0, 40.0, 80.0), "b": 100.0}, interval="range")
    zero, whole = boxes(picture)[1]
    (start, _), (end, _) = next(points for points, _ in strokes(picture.drawing, "var(--ink)") if len(points) == 2)
    assert (start - zero) / (whole - zero) == pytest.approx(0.4, abs=0.01)
    assert (end - zero) / (whole - zero) == pytest.approx(0.8, abs=0.01)


def test_points_need_no_zero_and_draw_no_bar():
    picture = drawn({"a": (30.5, 30.0, 31.0)}, zero=False, interval="95 %")
    assert not boxes(picture)
    assert not {"0", "0.0"} & set(words(picture.drawing))


def test_what_stands_beside_is_marked_and_named():
    picture = drawn({"a": 60.8, "b": 46.2}, beside={"a": 59.7}, beside_is="published")
    assert "Hollow: published." in picture.caption
    assert picture.table.head[-1] == "published"
    assert [row[-1] for row in picture.table.rows] == ["59.7", "—"]
    assert len(re.findall(r"stroke:var\(--arm-2\)[^>]*fill:var\(--ground\)", picture.drawing)) == 1


def test_a_value_that_is_not_there_is_said_to_be_none():
    picture = drawn({"a": math.nan, "b": 2.0})
    assert "no value" in words(picture.drawing)
    assert len(boxes(picture)) == 1
    assert "nan" not in picture.drawing


def test_long_names_leave_room_for_their_values():
    name = "./examples/my_mixers/my_mixer.py:MyMixer+rope,n_heads=8"
    picture = drawn({name: (1234.5, 1200.0, 1300.0), "b": 1.0}, interval="95 %")
    (label, x, y), (value, right, also) = texts(picture.drawing)[-4:-2]
    assert y == pytest.approx(also, abs=0.01)
    assert x + 6.4 * len(label) < right - 6 * len(value)
    assert picture.table.rows[0][0] == name


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"values": {}}, "nothing to draw"),
        ({"values": {"a": math.nan}}, "nothing to draw"),
        ({"values": {"a": (1.0, 0.0, 2.0)}}, "`interval`"),
        ({"values": {"a": 1.0}, "beside": {"a": 1.0}}, "`beside_is`"),
        ({"values": {"a": 1.0}, "beside": {"b": 1.0}, "beside_is": "published"}, "no bar"),
    ],
)
def test_bars_that_cannot_be_drawn_are_refused(options, said):
    with pytest.raises(UserError, match=said):
        drawn(**options)


@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize("value", [0.0, -1.0, 1e-300, 1e30])
def test_a_single_value_can_be_drawn(value, zero):
    assert "nan" not in drawn({"a": value}, zero=zero).drawing
