import math

import pytest

from headstock.errors import UserError
from headstock.pictures import palette
from headstock.pictures.grid import STRONGEST_BEHIND_TEXT, heat
from tests.pictures.reading import strokes, texts, words
from tests.pictures.test_palette import contrast

MORE, LESS = "rgb(var(--more))", "rgb(var(--less))"


def drawn(values, **options):
    options = {"title": "a", "rows": "layer", "columns": "head", "unit": "entropy (nats)"} | options
    rows = options.pop("row_labels", [str(row) for row in range(len(values))])
    columns = options.pop("column_labels", [str(column) for column in range(len(values[0]))])
    return heat(values, rows, columns, **options)


def shares(shaded, many):
    """Of each cell in a square grid of so many, how strong its shade is, negative for the negative colour."""
    found = {}
    lines = strokes(shaded, "var(--ground)")[-1][0]
    xs, ys = sorted({x for x, _ in lines}), sorted({y for _, y in lines})
    width, height = (xs[-1] - xs[0]) / many, (ys[-1] - ys[0]) / many
    for sign, colour in ((1, MORE), (-1, LESS)):
        for points, opacity in strokes(shaded, colour):
            for (x, y), (to, _) in zip(points[::2], points[1::2], strict=True):
                row = math.floor((y - ys[0]) / height)
                for column in range(round((x - xs[0]) / width), round((to - xs[0]) / width)):
                    if row < many:
                        found[row, column] = sign * opacity
    return found


def test_each_cell_is_shaded_by_its_value_and_stands_at_its_row_and_column():
    many = 12
    values = [[row * many + column - 60 for column in range(many)] for row in range(many)]
    found = shares(drawn(values).drawing, many)
    for row in range(many):
        for column in range(many):
            assert found.get((row, column), 0) == pytest.approx(values[row][column] / 83, abs=1 / 60)


def test_few_values_are_written_in_their_cells_first_row_on_top():
    picture = drawn([[0.25, 0.5], [0.75, 1.0]])
    places = {text: (x, y) for text, x, y in texts(picture.drawing)}
    assert places["0.25"][0] < places["0.50"][0]
    assert places["0.25"][1] < places["0.75"][1] == places["1.00"][1]
    assert places["0.25"][0] == places["0.75"][0]


def test_many_values_are_not_written_but_stand_in_the_table():
    picture = drawn([[0.125] * 40] * 40)
    assert "0.125" not in words(picture.drawing)[:-3]
    assert picture.table.rows[39] == ["39", *["0.125"] * 40]
    assert picture.table.head[:2] == ["layer \\ head", "0"]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["more", "less"])
def test_every_number_in_a_cell_can_be_read_on_its_shade(scheme, name):
    top, base, ink = (palette.in_both_schemes(colour)[scheme] for colour in (name, "cell", "ink"))
    channels = [(int(top[at : at + 2], 16), int(base[at : at + 2], 16)) for at in (1, 3, 5)]
    share = STRONGEST_BEHIND_TEXT
    mixed = "#" + "".join(f"{round(share * over + (1 - share) * under):02x}" for over, under in channels)
    assert contrast(mixed, ink) >= 4.45
    picture = drawn([[1.0, -1.0]])
    assert max(opacity for colour in (MORE, LESS) for _, opacity in strokes(picture.drawing, colour)) == pytest.approx(
        STRONGEST_BEHIND_TEXT
    )


def test_a_cell_without_a_value_is_struck_out_and_the_caption_says_what_that_means():
    picture = drawn([[1.0, math.nan], [math.inf, 2.0]], missing="not patched")
    assert sum(len(points) // 2 for points, _ in strokes(picture.drawing, "var(--rule)")) == 2
    assert "Struck out: not patched." in picture.caption
    assert picture.table.rows[0] == ["0", "1", "—"]
    assert not {"nan", "inf"} & set(words(picture.drawing))
    assert "Struck out" not in drawn([[1.0]]).caption


def test_values_below_zero_have_a_colour_of_their_own_and_a_scale_with_zero_in_its_middle():
    picture = drawn([[-0.5, 2.0]])
    assert "orange below" in picture.caption
    assert words(picture.drawing)[-3:] == ["−2", "0", "2"]
    assert not strokes(drawn([[0.5, 2.0]]).drawing, LESS)
    assert strokes(drawn([[0.5, 2.0]], signed=True).drawing, LESS), "its scale has both sides"


def test_the_scale_beside_the_grid_says_its_unit_and_its_ends():
    for zero, ends in ((True, ["0", "2", "4"]), (False, ["3", "3.5", "4"])):
        written = words(drawn([[3.0, 4.0]], zero=zero).drawing)
        assert written[-3:] == ends
        assert "entropy (nats)" in written
    assert {"layer", "head"} <= set(written)


def test_words_under_narrow_columns_stand_on_end_and_numbers_are_left_out_by_round_steps():
    tokens = ["attention", "is", "a", "weighted"] * 10
    assert "rotate(-90 " in drawn([[0.0] * 40], column_labels=tokens).drawing
    numbered = drawn([[0.0] * 100]).drawing
    assert "rotate(-90 " not in numbered
    assert [int(word) for word in words(numbered)[2:12]] == list(range(0, 100, 10))


def test_a_grid_of_64_by_64_different_values_stays_small():
    values = [[math.sin(row * 64 + column) for column in range(64)] for row in range(64)]
    assert len(drawn(values).drawing) < 200_000


@pytest.mark.parametrize("value", [0.0, -1.0, 5.0, math.nan, 1e-300, 1e30])
@pytest.mark.parametrize("options", [{}, {"zero": False}, {"root": True}, {"signed": True}])
def test_a_grid_of_one_value_can_be_drawn(value, options):
    picture = drawn([[value] * 3] * 2, **options)
    assert "nan" not in picture.drawing


@pytest.mark.parametrize(
    ("values", "rows", "columns", "said"),
    [
        ([[1.0]], ["0", "1"], ["0"], "2 × 1 labels"),
        ([[1.0], [1.0, 2.0]], ["0", "1"], ["0"], "1/2 values"),
        ([], [], [], "nothing to draw"),
        ([[0.0] * 129], ["0"], [str(place) for place in range(129)], "at most 128"),
    ],
)
def test_a_grid_that_cannot_be_read_is_refused(values, rows, columns, said):
    with pytest.raises(UserError, match=said):
        heat(values, rows, columns, title="a", rows="layer", columns="head", unit="b")


def test_grids_that_reach_to_one_value_share_a_scale():
    values = [[0.25, 0.0], [0.0, 0.0]]
    assert shares(drawn(values, reaches=0.5).drawing, 2)[0, 0] == shares(drawn([[0.5, 0.25], [0, 0]]).drawing, 2)[0, 1]
    assert drawn(values, reaches=0.1).drawing == drawn(values).drawing
