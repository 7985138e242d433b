"""What the pictures with axes share: plain axes, ticks, and labels at the ends of lines."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from headstock.pictures.labels import elided_apart, moved_apart
from headstock.pictures.palette import ArmLook, stand_in
from headstock.pictures.svg import Margins, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 400
SMALL = 10.5
LETTER = 6.4
"""Pixels of a letter, on the generous side: the reader's font is not known."""
LINE = 14
"""Pixels from one label to the next."""


@dataclass(frozen=True)
class LineEnd:
    """Where an arm's line ends, for its label: x in data units, y in data units."""

    label: str
    look: ArmLook
    x: float
    y: float


def plain(axes: "Axes", *, rules: str = "y") -> None:
    """Leave of the axes only a base line, muted numbers and thin rules across (along "y", "x" or neither)."""
    axes.patch.set_visible(False)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(stand_in("muted"))
    axes.spines["bottom"].set_linewidth(0.8)
    axes.tick_params(length=0, colors=stand_in("muted"), labelsize=SMALL, pad=5)
    axes.tick_params(axis="x", which="minor", length=0, labelbottom=False)
    if rules:
        axes.grid(axis="y" if rules == "y" else "x", color=stand_in("rule"), linewidth=0.8)
    axes.set_axisbelow(True)


def note(
    axes: "Axes",
    x: float,
    y: float,
    text: str,
    *,
    colour: str = "muted",
    align: str = "left",
    size: float = SMALL,
    plate: bool = False,
) -> None:
    """Write at a place in pixels from the axes' lower left corner; a plate hides what runs behind the letters."""
    width, height = size_of(axes)
    axes.text(
        x / width,
        y / height,
        text,
        transform=axes.transAxes,
        color=stand_in(colour),
        fontsize=size,
        horizontalalignment=align,
        verticalalignment="center",
        bbox={"facecolor": stand_in("ground"), "edgecolor": "none", "pad": 1} if plate else None,
    )


def size_of(axes: "Axes") -> tuple[float, float]:
    """Give the axes' width and height in pixels."""
    return float(axes.bbox.width), float(axes.bbox.height)


def around(values: Sequence[float], share: float = 0.06) -> tuple[float, float]:
    """Give limits that leave some room around values; around a single value, room of its own size."""
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    room = (high - low) * share
    if room <= abs(high) * 1e-9:
        room = abs(high) * 0.1 or 1.0
    return low - room, high + room


def few_ticks(axes: "Axes", which: str, most: int = 5, *, whole: bool = False) -> None:
    """Put few round numbers on an axis, `whole` ones where asked, with real minus signs and no common offset."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    numbers = ScalarFormatter(useOffset=False)
    numbers.set_scientific(False)
    low, high = axis.get_view_interval()
    if max(abs(low), abs(high)) >= 1e5 or high - low < 1e-4:
        numbers.set_scientific(True)
        numbers.set_powerlimits((0, 0))
    axis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10], integer=whole))
    axis.set_major_formatter(numbers)
    axis.get_offset_text().set(color=stand_in("muted"), fontsize=SMALL)


def ticks_by_factors(axes: "Axes", which: str, values: Sequence[float], most: int = 6) -> None:
    """Make an axis logarithmic, with few ticks: the values themselves where they are few, else 1, 2, 5, 10, ..."""
    from matplotlib.ticker import NullFormatter, NullLocator

    low, high = min(values), max(values)
    low, high = (low / 1.3, high * 1.3) if which == "y" or low == high else (low, high)
    own = sorted(set(values)) if which == "x" else []
    if not 0 < len(own) <= 2 * most:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        fine = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
        for steps, every in ((fine, 1), ((1, 2, 5), 1), ((1,), 1), ((1,), math.ceil(len(decades) / most))):
            own = [step * 10.0**power for power in decades[::every] for step in steps]
            own = [value for value in own if low <= value <= high]
            if len(own) <= most:
                break
    shown = own[:: -math.ceil(len(own) / most)][::-1] if own else []
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axis.set_ticks(shown, labels=[_short(value) for value in shown])


def _short(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 1e6 and value == round(value) else f"{value:g}".replace("-", "−")


def margin_for(labels: Sequence[str], longest: int = 20) -> tuple[list[str], float]:
    """Give labels short enough for the right margin, and that margin in pixels."""
    short = elided_apart(labels, longest)
    return short, 24 + LETTER * max(map(letters, short), default=0)


def label_ends(axes: "Axes", ends: Sequence[LineEnd]) -> None:
    """Write each label beside its line's end, moved apart where ends meet, with a thin line from one to the other."""
    width, height = size_of(axes)
    on_axis: Callable[[float], float] = math.log if axes.get_yscale() == "log" else float
    low, high = map(on_axis, axes.get_ylim())
    at = [(on_axis(end.y) - low) / (high - low) * height for end in ends]
    # A label may stand a little outside, where many share a low picture.
    room = max(0.0, len(ends) * LINE - height) / 2
    for end, level, moved in zip(ends, at, moved_apart(at, LINE, -room, height + room), strict=True):
        right = axes.transAxes.inverted().transform(axes.transData.transform((end.x, end.y)))[0] * width
        if abs(moved - level) > 2 or right < width - 1:
            axes.plot(
                [(right + 5) / width, (width + 14) / width],
                [level / height, moved / height],
                transform=axes.transAxes,
                color=stand_in(end.look.colour),
                linewidth=0.7,
                clip_on=False,
            )
        note(axes, width + 17, moved, end.label, colour=end.look.colour, size=11.5)


def line(axes: "Axes", xs: Sequence[float], ys: Sequence[float], look: ArmLook, *, marks: int = 4) -> None:
    """Draw an arm's line in its look, with a few markers and one at its end; what is not finite leaves a gap."""
    dash = (0.0, look.dash) if look.dash else "-"
    axes.plot(xs, ys, color=stand_in(look.colour), linewidth=1.8, linestyle=dash, clip_on=False, zorder=3)
    known = [place for place, point in enumerate(zip(xs, ys, strict=True)) if all(map(math.isfinite, point))]
    every = max(1, math.ceil(len(known) / marks))
    chosen = sorted({*known[every // 2 :: every], *known[-1:]})
    markers(axes, [xs[place] for place in chosen], [ys[place] for place in chosen], look)


def markers(
    axes: "Axes", xs: Sequence[float], ys: Sequence[float], look: ArmLook, *, filled: bool = True, size: float = 5.5
) -> None:
    """Set an arm's marker at each place, filled or hollow."""
    colour, ground = stand_in(look.colour), stand_in("ground")
    axes.plot(
        xs,
        ys,
        linestyle="none",
        marker=look.marker,
        markersize=size,
        markerfacecolor=colour if filled else ground,
        markeredgecolor=ground if filled else colour,
        markeredgewidth=0.8 if filled else 1.4,
        clip_on=False,
        zorder=4,
    )


@cache
def swatch(look: ArmLook) -> Markup:
    """Draw an arm's line and marker alone, for the key at the head of the page."""

    def draw(axes: "Axes") -> None:
        axes.set_axis_off()
        axes.set(xlim=(0, 36), ylim=(0, 12))
        dash = (0.0, look.dash) if look.dash else "-"
        axes.plot([1, 35], [6, 6], color=stand_in(look.colour), linewidth=1.8, linestyle=dash)
        markers(axes, [18], [6], look, size=7)

    margins: Margins = (0, 0, 0, 0)
    return drawn(36, 12, margins, "", draw)


def letters(label: str) -> int:
    """Give a label's length in letters, those of wide scripts counted twice."""
    return sum(2 if ord(letter) > 0x2E80 else 1 for letter in label)
