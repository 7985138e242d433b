"""Bars from zero, or points with intervals: one figure of several things, each with its name and its value."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from headstock.errors import UserError
from headstock.pictures import numbers
from headstock.pictures.axes import WIDTH, around, few_ticks, markers, note, plain
from headstock.pictures.labels import elided_apart
from headstock.pictures.palette import ArmLook, stand_in
from headstock.pictures.picture import Picture, Table
from headstock.pictures.svg import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Value = float | tuple[float, float, float]
"""A value alone, or (value, low, high)."""
ROW, BAR = 40, 12
PLAIN = ArmLook("arm-1", (), "o")
BESIDE = ArmLook("arm-2", (), "D")


def bars(
    values: Mapping[str, Value],
    *,
    unit: str,
    title: str,
    says: str = "",
    zero: bool = True,
    interval: str = "",
    beside: Mapping[str, float] | None = None,
    beside_is: str = "",
    looks: Mapping[str, ArmLook] | None = None,
    caption: str = "",
    name: str = "",
    source: str = "",
) -> Picture:
    """Draw {label: value} or {label: (value, low, high)} in `unit`, the first on top, each with its value in figures.

    Bars begin at zero; with zero=False they are points on an axis that need not hold it. `interval` says what low and
    high are. `beside` are {label: value} to compare with, hollow marks, and `beside_is` says what they are. `looks`
    keeps a label's look from picture to picture. A value that is not finite is said to be none. `says` is read aloud in
    place of the title.

    Raises UserError where there is nothing to draw, for intervals or values beside that are not named, and for a value
    beside what is not there.
    """
    beside = beside or {}
    entries = {label: _entry(value, beside.get(label, math.nan)) for label, value in values.items()}
    with_ends = any(isinstance(value, tuple) for value in values.values())
    _refuse(entries, beside, named=bool(interval) or not with_ends, beside_named=bool(beside_is) or not beside)
    parts = [f"Line: {interval}."] if with_ends else []
    parts += [f"Hollow: {beside_is}."] if beside else []
    head = ["of", unit, *(["low", "high"] if with_ends else []), *([beside_is] if beside else [])]
    rows = [
        [label, numbers.small(entry.value, 5)]
        + ([numbers.small(entry.low, 5), numbers.small(entry.high, 5)] if with_ends else [])
        + ([numbers.small(entry.beside, 5)] if beside else [])
        for label, entry in entries.items()
    ]
    return Picture(
        name=name or title,
        title=title,
        drawing=_draw(entries, unit, zero, looks or {}, says or title),
        caption=" ".join([*parts, *([caption] if caption else [])]),
        table=Table(head, rows),
        source=source,
    )


@dataclass(frozen=True)
class _Entry:
    """One row; what is not there is not a number."""

    value: float
    low: float
    high: float
    beside: float

    def known(self) -> list[float]:
        return [number for number in (self.value, self.low, self.high, self.beside) if math.isfinite(number)]

    def words(self) -> str:
        if not math.isfinite(self.value):
            return "no value"
        said = numbers.small(self.value)
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f"{said} ({' to '.join(numbers.outwards(self.low, self.high))})"
        return said


def _entry(value: Value, beside: float) -> _Entry:
    return _Entry(*value, beside) if isinstance(value, tuple) else _Entry(value, math.nan, math.nan, beside)


def _draw(entries: Mapping[str, _Entry], unit: str, zero: bool, looks: Mapping[str, ArmLook], says: str) -> Markup:
    known = [number for entry in entries.values() for number in entry.known()]
    words = [entry.words() for entry in entries.values()]
    short = elided_apart(list(entries), max(12, int((WIDTH - 40 - 6 * max(map(len, words))) / 6.6)))
    height = ROW * len(entries)
    low, high = around(known, 0.04)
    if zero:
        low, high = min(0.0, low) if min(known) < 0 else 0.0, max(0.0, high) if max(known) > 0 else 0.0
        high = high if high > low else 1.0

    def draw(axes: "Axes") -> None:
        plain(axes, rules="x")
        axes.set(xlim=(low, high), ylim=(0, height), yticks=[])
        few_ticks(axes, "x")
        if low <= 0 <= high:
            axes.axvline(0, color=stand_in("muted"), linewidth=0.9)
        axes.set_xlabel(unit, color=stand_in("muted"), fontsize=11.5, labelpad=6)
        for place, (label, entry) in enumerate(entries.items()):
            top, look = height - ROW * place, looks.get(label, PLAIN)
            note(axes, 3, top - 11, short[place], colour="ink", size=11.5, plate=True)
            colour = "ink" if math.isfinite(entry.value) else "muted"
            note(axes, axes.bbox.width, top - 11, words[place], colour=colour, align="right", size=11.5, plate=True)
            _mark(axes, entry, top - 28, look, bar=zero)

    return drawn(WIDTH, height + 54, (8, 8, 4, 46), says, draw)


def _mark(axes: "Axes", entry: _Entry, y: float, look: ArmLook, *, bar: bool) -> None:
    if math.isfinite(entry.value):
        if bar:
            axes.barh([y], [entry.value], height=BAR, color=stand_in(look.colour), alpha=0.6)
        ends = [end for end in (entry.low, entry.high) if math.isfinite(end)]
        if len(ends) == 2:
            axes.plot(ends, [y, y], color=stand_in("ink" if bar else look.colour), linewidth=1.6, clip_on=False)
            axes.plot(
                ends, [y, y], linestyle="none", marker="|", color=stand_in("ink" if bar else look.colour), markersize=8
            )
        if not bar:
            markers(axes, [entry.value], [y], look, size=7)
    if math.isfinite(entry.beside):
        markers(axes, [entry.beside], [y], BESIDE, filled=False, size=7)


def _refuse(entries: Mapping[str, _Entry], beside: Mapping[str, float], *, named: bool, beside_named: bool) -> None:
    if not any(entry.known() for entry in entries.values()):
        raise UserError("a picture of bars was given no finite value: there is nothing to draw.")
    if not named:
        raise UserError(
            "intervals were given without a name: say in `interval` what they are, such as '95 %, 8 seeds'."
        )
    if not beside_named:
        raise UserError(
            "values beside were given without a name: say in `beside_is` what they are, such as 'published'."
        )
    if unknown := sorted(set(beside) - set(entries)):
        raise UserError(f"a value was given to stand beside {unknown[0]!r}, which is no bar: name it as its bar.")
