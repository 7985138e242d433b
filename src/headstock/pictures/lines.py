"""Lines over an axis: a figure by depth, position, length or step, one line each with its label at the end."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from headstock.errors import UserError
from headstock.pictures import numbers
from headstock.pictures.axes import (
    LINE,
    WIDTH,
    LineEnd,
    around,
    few_ticks,
    label_ends,
    line,
    margin_for,
    note,
    plain,
    ticks_by_factors,
)
from headstock.pictures.palette import ArmLook, looks_by_label, stand_in
from headstock.pictures.picture import Picture, Table
from headstock.pictures.svg import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Series = tuple[Sequence[float], Sequence[float]]
LEVEL = ArmLook("muted", (2, 2), "")
MOST_ROWS = 48
"""Of one line in the table behind the picture."""


def lines(
    series: Mapping[str, Series],
    *,
    x: str,
    y: str,
    title: str,
    says: str = "",
    log_x: bool = False,
    log_y: bool = False,
    zero: bool | None = None,
    bands: Mapping[str, Series] | None = None,
    band: str = "",
    levels: Mapping[str, float] | None = None,
    looks: Mapping[str, ArmLook] | None = None,
    caption: str = "",
    name: str = "",
    source: str = "",
) -> Picture:
    """Draw {label: (xs, ys)} with the axes named `x` and `y`, units in the names; an empty label stays unwritten.

    `zero` puts 0 on the y axis (None: yes, unless that axis is logarithmic). `bands` are {label: (lows, highs)} at the
    same xs, and `band` says what they are. `levels` are {name: y}: lines across, for a bound or a published figure.
    `looks` keeps a label's look from picture to picture. A value that is not finite leaves a gap. A value that a
    logarithmic axis cannot hold is left out, and the caption says how many. `says` is read aloud in place of the title.

    Raises UserError where lengths do not fit together, where no value is left to draw, for bands that are not named,
    and for zero=True on a logarithmic axis.
    """
    bands, levels = bands or {}, levels or {}
    _refuse(series, bands, band, log_y=log_y, zero=zero)
    looks = looks or looks_by_label(list(series))
    strokes = {label: _stroke(label, series, bands, log_x, log_y) for label in series}
    counted = sum(_finite(point) for xs, ys in series.values() for point in zip(xs, ys, strict=True))
    lost = counted - sum(
        _finite(point) for stroke in strokes.values() for point in zip(stroke.xs, stroke.ys, strict=True)
    )
    if counted == lost:
        raise UserError("a picture of lines was given no value that it can show: give at least one finite value.")
    frame = _Frame(x, y, log_x, log_y, not log_y if zero is None else zero, levels)
    every = {label: max(1, math.ceil(len(stroke.xs) / MOST_ROWS)) for label, stroke in strokes.items()}
    parts = [f"Band: {band}."] if bands else []
    parts += (
        [f"Dotted: {', '.join(f'{what} {numbers.small(level)}' for what, level in levels.items())}."] if levels else []
    )
    if lost:
        parts.append(f"{numbers.count(lost, 'value')} at or below 0 cannot stand on a logarithmic axis.")
    parts += [caption] if caption else []
    if max(every.values()) > 1:
        parts.append(f"The table has one value in {max(every.values())} of the longest line.")
    return Picture(
        name=name or title,
        title=title,
        drawing=_draw(frame, strokes, looks, says or title),
        caption=" ".join(parts),
        table=_table(series, bands, every, x, y),
        source=source,
    )


@dataclass(frozen=True)
class _Stroke:
    """One line with its band; what cannot be shown is not a number here."""

    xs: list[float]
    ys: list[float]
    lows: list[float]
    highs: list[float]


@dataclass(frozen=True)
class _Frame:
    """The axes."""

    x: str
    y: str
    log_x: bool
    log_y: bool
    zero: bool
    levels: Mapping[str, float]


def _stroke(label: str, series: Mapping[str, Series], bands: Mapping[str, Series], log_x: bool, log_y: bool) -> _Stroke:
    def shown(values: Sequence[float], log: bool) -> list[float]:
        return [value if math.isfinite(value) and (value > 0 or not log) else math.nan for value in values]

    xs, ys = series[label]
    lows, highs = bands.get(label, ((), ()))
    return _Stroke(shown(xs, log_x), shown(ys, log_y), shown(lows, log_y), shown(highs, log_y))


def _draw(frame: _Frame, strokes: Mapping[str, _Stroke], looks: Mapping[str, ArmLook], says: str) -> Markup:
    labels = [label for label, stroke in strokes.items() if any(map(_finite, zip(stroke.xs, stroke.ys, strict=True)))]
    short, right = margin_for([*labels, *frame.levels])
    height = max(250, 80 + LINE * len(short))
    across = [value for stroke in strokes.values() for value in stroke.xs if math.isfinite(value)]
    up = [v for stroke in strokes.values() for v in (*stroke.ys, *stroke.lows, *stroke.highs) if math.isfinite(v)]
    up += frame.levels.values()

    def draw(axes: "Axes") -> None:
        plain(axes)
        _scales(axes, frame, across, up)
        axes.set_xlabel(frame.x, color=stand_in("muted"), fontsize=11.5, labelpad=6)
        note(axes, -38, axes.bbox.height + 16, frame.y, size=11.5)
        ends = []
        for level, written in zip(frame.levels.values(), short[len(labels) :], strict=True):
            axes.axhline(level, color=stand_in("muted"), linewidth=0.9, dashes=LEVEL.dash, clip_on=False)
            ends.append(LineEnd(written, LEVEL, axes.get_xlim()[1], level))
        for label, written in zip(labels, short[: len(labels)], strict=True):
            stroke, look = strokes[label], looks[label]
            colour = stand_in(look.colour)
            if stroke.lows:
                axes.fill_between(
                    stroke.xs, stroke.lows, stroke.highs, color=colour, alpha=0.16, linewidth=0, clip_on=False
                )
            line(axes, stroke.xs, stroke.ys, look)
            end = [point for point in zip(stroke.xs, stroke.ys, strict=True) if _finite(point)][-1]
            if label:
                ends.append(LineEnd(written, look, *end))
        label_ends(axes, ends)

    return drawn(WIDTH, height, (46, right, 34, 44), says, draw)


def _scales(axes: "Axes", frame: _Frame, across: Sequence[float], up: Sequence[float]) -> None:
    if frame.log_x:
        ticks_by_factors(axes, "x", across)
    else:
        axes.set_xlim(*((min(across), max(across)) if min(across) < max(across) else around(across)))
        few_ticks(axes, "x", whole=all(value == round(value) for value in across))
    if frame.log_y:
        ticks_by_factors(axes, "y", up)
        return
    low, high = around(up)
    if frame.zero:
        # No room is left beyond zero where every value lies on one side of it.
        low = min(0.0, low) if min(up) < 0 else 0.0
        high = max(0.0, high) if max(up) > 0 else 0.0
    axes.set_ylim(low, high if high > low else low + 1)
    few_ticks(axes, "y")
    if low < 0 < high:
        axes.axhline(0, color=stand_in("muted"), linewidth=0.8)


def _table(
    series: Mapping[str, Series], bands: Mapping[str, Series], every: Mapping[str, int], x: str, y: str
) -> Table:
    """Give every so many points of each line, the last one always."""
    head = ["line", x, y, *(["band, low", "band, high"] if bands else [])]
    rows = []
    for label, (xs, ys) in series.items():
        lows, highs = bands.get(label, ([math.nan] * len(xs),) * 2)
        chosen = range(len(xs) - 1, -1, -every[label])[::-1]
        for place in chosen:
            values = [xs[place], ys[place], *([lows[place], highs[place]] if bands else [])]
            rows.append([label, *(numbers.small(value, 5) for value in values)])
    return Table(head, rows)


def _finite(point: Sequence[float]) -> bool:
    return all(map(math.isfinite, point))


def _refuse(
    series: Mapping[str, Series], bands: Mapping[str, Series], band: str, *, log_y: bool, zero: bool | None
) -> None:
    for label, (xs, ys) in series.items():
        if len({len(xs), len(ys), *map(len, bands.get(label, ()))}) > 1:
            raise UserError(f"the line {label!r} has {len(xs)} x for {len(ys)} y: give as many of each, bands too.")
    if unknown := sorted(set(bands) - set(series)):
        raise UserError(f"a band was given for {unknown[0]!r}, which is no line: name it as its line.")
    if bands and not band:
        raise UserError("bands were given without a name: say in `band` what they are, such as 'the range of 3 seeds'.")
    if zero and log_y:
        raise UserError("a logarithmic axis has no zero: leave out zero=True or log_y=True.")
