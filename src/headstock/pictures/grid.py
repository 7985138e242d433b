"""A grid of shaded cells: layers × heads, layers × positions, queries × keys."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from markupsafe import Markup

from headstock.errors import UserError
from headstock.pictures import numbers
from headstock.pictures.axes import LETTER, SMALL, WIDTH, letters, note, plain
from headstock.pictures.labels import elided
from headstock.pictures.palette import stand_in
from headstock.pictures.picture import Picture, Table
from headstock.pictures.shading import SHADES, Line, Scale, ground, paths, runs, scale_of, strokes
from headstock.pictures.svg import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 128
"""Rows or columns; finer cells are no longer seen."""
MOST_WRITTEN = 80
"""Cells whose values are written in them."""
STRONGEST_BEHIND_TEXT = 0.45
"""Above it ink on a shade has less contrast than 4.5 in one of the two schemes."""
TOP, BAR = 26, 8


def heat(
    values: Sequence[Sequence[float]],
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    *,
    title: str,
    rows: str,
    columns: str,
    unit: str,
    says: str = "",
    signed: bool | None = None,
    zero: bool = True,
    root: bool = False,
    reaches: float | None = None,
    missing: str = "no value",
    caption: str = "",
    name: str = "",
    source: str = "",
) -> Picture:
    """Draw values[row][column], the first row on top, with a scale; where they are few, each is written in its cell.

    `rows` and `columns` name the axes, `unit` what is shaded. `signed` shades apart what lies above and below 0 (None:
    where there is anything below); otherwise the scale begins at 0, or with zero=False at the smallest value. With
    `root` the shade grows with the square root, as many small weights ask for. The scale reaches to the largest value,
    or at least to `reaches`, for several grids with one scale. A cell that is not finite is struck out,
    and `missing` says what that means. `says` is read aloud in place of the title.

    Raises UserError where labels and values do not fit together, where there is nothing to draw, or more than 128
    rows or columns.
    """
    _refuse(values, row_labels, column_labels)
    known = [value for row in values for value in row if math.isfinite(value)]
    if signed is None:
        signed = min(known, default=0.0) < 0
    scale = scale_of(known if reaches is None else [*known, reaches], signed=signed, zero=zero, root=root)
    sheet = _Sheet(
        values,
        [elided(label, 16) for label in row_labels],
        [elided(label, 14) for label in column_labels],
        rows,
        columns,
        unit,
        scale,
    )
    lost = sum(map(len, values)) - len(known)
    parts = [f"Shade: {unit}{', by its square root' if root else ''}."]
    if signed:
        parts.append("Blue lies above 0, orange below.")
    parts += [f"Struck out: {missing}."] if lost else []
    return Picture(
        name=name or title,
        title=title,
        drawing=_draw(sheet, says or title),
        caption=" ".join([*parts, *([caption] if caption else [])]),
        table=Table(
            [f"{rows} \\ {columns}", *column_labels],
            [[label, *(numbers.small(value) for value in row)] for label, row in zip(row_labels, values, strict=True)],
        ),
        source=source,
    )


@dataclass(frozen=True)
class _Sheet:
    """What stands where, in pixels."""

    values: Sequence[Sequence[float]]
    row_labels: Sequence[str]
    column_labels: Sequence[str]
    rows: str
    columns: str
    unit: str
    scale: Scale

    @cached_property
    def shape(self) -> tuple[int, int]:
        return len(self.values), len(self.values[0])

    @cached_property
    def left(self) -> float:
        return 10 + LETTER * max(map(letters, self.row_labels))

    @cached_property
    def cell(self) -> tuple[int, int]:
        """Width and height of a cell; square where there are many rows."""
        rows, columns = self.shape
        width = max(3, min(48, int((WIDTH - self.left - 8) / columns)))
        return width, min(28, width) if rows > 12 else max(16, min(28, width))

    @cached_property
    def size(self) -> tuple[int, int]:
        rows, columns = self.shape
        return self.cell[0] * columns, self.cell[1] * rows

    @cached_property
    def upright(self) -> bool:
        """Whether column labels must stand on end: words that would touch. Of numbers, some are left out instead."""
        return not _all_whole(self.column_labels) and self.across > self.cell[0]

    @cached_property
    def across(self) -> float:
        """Width of the longest column label, lying."""
        return LETTER * (max(map(letters, self.column_labels)) + 1)

    @cached_property
    def below(self) -> float:
        """Height of the column labels."""
        return 6 + (LETTER * max(map(letters, self.column_labels)) if self.upright else 12)

    @cached_property
    def written(self) -> list[list[str]] | None:
        """What is written in the cells; None where they are too many or too narrow."""
        known = [abs(value) for row in self.values for value in row if math.isfinite(value)]
        rows, columns = self.shape
        if not known or rows * columns > MOST_WRITTEN:
            return None
        size = math.floor(math.log10(max(known))) if max(known) else 0
        places = max(0, 2 - size if size >= 0 else 1 - size)
        words = [[numbers.fixed(value, places) if math.isfinite(value) else "" for value in row] for row in self.values]
        return words if max(len(word) for row in words for word in row) * 6 <= self.cell[0] - 2 else None

    @cached_property
    def strongest(self) -> float:
        return STRONGEST_BEHIND_TEXT if self.written else 1.0


def _draw(sheet: _Sheet, says: str) -> Markup:
    (columns_wide, rows_high), (cell_width, cell_height) = sheet.size, sheet.cell
    width = max(WIDTH, sheet.left + columns_wide + 8)

    def draw(axes: "Axes") -> None:
        plain(axes, rules="")
        axes.set_axis_off()
        axes.set(xlim=(0, columns_wide), ylim=(0, rows_high))
        ground(axes, (0, 0, columns_wide, rows_high))
        half = cell_height / 2
        by_shade: dict[int | None, list[Line]] = {}
        struck: list[Line] = []
        for place, row in enumerate(sheet.values):
            y = rows_high - (place + 0.5) * cell_height
            for start, end, shade in runs([sheet.scale.shade(v) if math.isfinite(v) else None for v in row]):
                by_shade.setdefault(shade, []).append(((start * cell_width, y), (end * cell_width, y)))
                if shade is None:
                    corners = range(start * cell_width, end * cell_width, cell_width)
                    struck += [((x, y - half), (x + cell_width, y + half)) for x in corners]
        blank = by_shade.pop(None, [])
        for shade, lines in by_shade.items():
            strokes(axes, lines, shade or 0, cell_height, sheet.strongest)
        paths(axes, blank, color=stand_in("ground"), linewidth=cell_height, capstyle="butt")
        paths(axes, struck, color=stand_in("rule"), linewidth=0.8)
        if min(cell_width, cell_height) >= 5:
            upright = [((x, 0.0), (x, float(rows_high))) for x in range(0, columns_wide + 1, cell_width)]
            across = [((0.0, y), (float(columns_wide), y)) for y in range(0, rows_high + 1, cell_height)]
            paths(axes, [*upright, *across], color=stand_in("ground"), linewidth=1)
        for place, words in enumerate(sheet.written or []):
            for column, word in enumerate(words):
                at = ((column + 0.5) * cell_width, rows_high - (place + 0.5) * cell_height)
                note(axes, *at, word, colour="ink", align="center")
        _names(axes, sheet)
        _key(axes, sheet)

    height = TOP + rows_high + sheet.below + 72
    return drawn(
        width, height, (sheet.left, width - sheet.left - columns_wide, TOP, height - TOP - rows_high), says, draw
    )


def _names(axes: "Axes", sheet: _Sheet) -> None:
    """Write the labels of rows and columns, every so many where they would touch, and what they are."""
    rows_high, (cell_width, cell_height) = sheet.size[1], sheet.cell
    note(axes, -sheet.left, rows_high + 14, sheet.rows, size=11.5)
    every = _every(sheet.row_labels, 12 / cell_height)
    for place, label in list(enumerate(sheet.row_labels))[::every]:
        note(axes, -6, rows_high - (place + 0.5) * cell_height, label, align="right")
    every = _every(sheet.column_labels, (12 if sheet.upright else sheet.across) / cell_width)
    for place, label in list(enumerate(sheet.column_labels))[::every]:
        axes.text(
            (place + 0.5) * cell_width,
            -5 if sheet.upright else -11,
            label,
            color=stand_in("muted"),
            fontsize=SMALL,
            rotation=90 if sheet.upright else 0,
            rotation_mode="anchor",
            horizontalalignment="right" if sheet.upright else "center",
            verticalalignment="center",
        )
    note(axes, 0, -sheet.below - 12, sheet.columns, size=11.5)


def _every(labels: Sequence[str], needed: float) -> int:
    """Give that every so many labels are written, a round step for numbers; `needed` is a label's room in cells."""
    rounds = [size * 10**power for power in range(3) for size in (1, 2, 5)]
    return next(step for step in rounds if step >= needed) if _all_whole(labels) else math.ceil(needed)


def _all_whole(labels: Sequence[str]) -> bool:
    return all(label.isdigit() for label in labels)


def _key(axes: "Axes", sheet: _Sheet) -> None:
    """Draw the scale under the grid: every shade, and the values at its ends and middle."""
    first = -SHADES if sheet.scale.signed else 0
    bottom, step = -sheet.below - 48, 160 / (SHADES - first)
    note(axes, 0, bottom + 15, sheet.unit)
    ground(axes, (0, bottom - BAR / 2, 160, BAR))
    for place, shade in enumerate(range(first, SHADES)):
        middle = shade if shade < 0 else shade + 1
        strokes(axes, [((place * step, bottom), ((place + 1) * step, bottom))], middle, BAR, sheet.strongest)
    for share, align in ((first / SHADES, "left"), ((first + SHADES) / 2 / SHADES, "center"), (1.0, "right")):
        x = 160 * (share * SHADES - first) / (SHADES - first)
        note(axes, x, bottom - 13, numbers.small(sheet.scale.value(share), 3), align=align)


def _refuse(values: Sequence[Sequence[float]], row_labels: Sequence[str], column_labels: Sequence[str]) -> None:
    rows, columns = len(row_labels), len(column_labels)
    if len(values) != rows or any(len(row) != columns for row in values):
        held = f"{len(values)} rows of {'/'.join(map(str, sorted({len(row) for row in values}))) or 'no'} values"
        raise UserError(f"a grid with {rows} × {columns} labels was given {held}: give one label a row and a column.")
    if not rows or not columns:
        raise UserError("a grid needs at least one row and one column: there is nothing to draw.")
    if max(rows, columns) > MOST:
        raise UserError(
            f"a grid of {rows} × {columns} cells is too fine to be seen: at most {MOST} rows and columns are drawn, so "
            f"read its values instead."
        )
