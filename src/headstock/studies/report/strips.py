"""A claim as a strip: the band that was published, and ours as a bar over it, on a scale of the claim's own."""

import math
from typing import TYPE_CHECKING

from markupsafe import Markup

from headstock.pictures.axes import note
from headstock.pictures.palette import stand_in
from headstock.pictures.svg import drawn
from headstock.studies import writing as write
from headstock.studies.judging import Judgement, band

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 480, 44
SIDE = 74
"""Pixels beside the scale, for the letters at a band's ends."""
COLOURS = {True: "claim", False: "warn", None: "muted"}
"""By whether ours agrees."""


def strip(judgement: Judgement) -> Markup | None:
    """Draw one claim; None where there is nothing of ours."""
    if judgement.estimate is None or math.isnan(judgement.estimate):
        return None
    says = f"Ours: {write.ours(judgement)}. Band: {band(judgement.claim)}. {judgement.verdict.capitalize()}."
    return drawn(WIDTH, HEIGHT, (SIDE, SIDE, 4, 20), says, lambda axes: _draw(axes, judgement))


def limits(judgement: Judgement) -> tuple[float, float]:
    """Give the scale's ends: around band and estimate, and the interval as far as it does not make these invisible."""
    claim, estimate = judgement.claim, judgement.estimate
    core = [end for end in (claim.at_least, claim.at_most, estimate) if end is not None and math.isfinite(end)]
    if not core:
        return 0.0, 1.0
    low, high = min(core), max(core)
    span = high - low or abs(high) * 0.1 or 1.0
    ends = [end for end in (judgement.low, judgement.high) if end is not None and math.isfinite(end)]
    first, last = (max(min([low, *ends]), low - 1.5 * span), min(max([high, *ends]), high + 1.5 * span))
    room = 0.15 * (last - first) or 0.15 * span
    return first - room, last + room


def _draw(axes: "Axes", judgement: Judgement) -> None:
    claim = judgement.claim
    low, high = limits(judgement)
    axes.set(xlim=(low, high), ylim=(0, 1), xticks=[], yticks=[])
    axes.patch.set_visible(False)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(stand_in("rule"))
    near, far = max(claim.at_least, low), min(claim.at_most, high)
    if claim.at_least == claim.at_most:
        axes.plot([near, near], [0, 1], color=stand_in("ink"), linewidth=1.4)
    else:
        axes.fill_between([near, far], 0, 1, color=stand_in("claim"), alpha=0.16, linewidth=0)
    for end in {claim.at_least, claim.at_most} - {-math.inf, math.inf}:
        axes.plot([end, end], [0, 1], color=stand_in("muted"), linewidth=0.8)
        _name_end(axes, end, judgement)
    _bar(axes, judgement, (low, high))


def _name_end(axes: "Axes", end: float, judgement: Judgement) -> None:
    claim = judgement.claim
    at = float(axes.transAxes.inverted().transform(axes.transData.transform((end, 0)))[0]) * axes.bbox.width
    both = math.isfinite(claim.at_least) and math.isfinite(claim.at_most) and claim.at_least < claim.at_most
    align = "center" if not both else "right" if end == claim.at_least else "left"
    shift = {"center": 0, "right": 3, "left": -3}[align]
    note(axes, at + shift, -10, write.number(end), align=align)


def _bar(axes: "Axes", judgement: Judgement, ends: tuple[float, float]) -> None:
    """Draw ours: a bar from end to end of the interval, with an arrow where it goes on beyond the scale."""
    colour = stand_in(COLOURS[judgement.agrees])
    decided = judgement.agrees is not None
    if judgement.low is not None and judgement.high is not None:
        inside = [min(max(end, ends[0]), ends[1]) for end in (judgement.low, judgement.high)]
        if inside[0] < inside[1]:
            axes.plot(inside, [0.5, 0.5], color=colour, linewidth=3.2 if decided else 1.6, solid_capstyle="butt")
        for end, place, arrow in zip((judgement.low, judgement.high), inside, "<>", strict=True):
            axes.plot([place], [0.5], marker=arrow if end != place else "|", color=colour, markersize=9, clip_on=False)
    estimate = judgement.estimate
    assert estimate is not None
    axes.plot(
        [min(max(estimate, ends[0]), ends[1])],
        [0.5],
        marker={math.inf: ">", -math.inf: "<"}.get(estimate, "o"),
        markersize=7,
        markerfacecolor=colour if decided else stand_in("ground"),
        markeredgecolor=colour,
        markeredgewidth=1.4,
        clip_on=False,
    )
