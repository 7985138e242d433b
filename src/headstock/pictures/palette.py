"""Colours that follow light and dark, and one look for each arm: colour, dash and marker, the same on every picture.

A picture is drawn with stand-in colours, one for each name below; `as_variables` turns those into CSS variables, whose
values the page sets for either scheme. Text and marks keep a contrast of 4.5 or more in both.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_BASE = {
    # name: (light, dark)
    "ground": ("#fdfcf9", "#16181c"),
    "panel": ("#f4f2ec", "#1f2227"),
    "ink": ("#1c1e22", "#e8e6e1"),
    "muted": ("#5b6069", "#a4a8b0"),
    "rule": ("#d8d5cc", "#3a3e46"),
    "claim": ("#174a9c", "#8bb6f5"),
    "claim-ground": ("#e9eff8", "#1c2737"),
    "warn": ("#7a3d00", "#f0b36a"),
    "warn-ground": ("#fbf0e0", "#33261a"),
    "cell": ("#ebe8e0", "#2a2e35"),
}
_ARMS = [
    ("#14408f", "#7fb0f5"),
    ("#b84e00", "#e5903f"),
    ("#0d8053", "#74f0b3"),
    ("#a526b3", "#d94fcb"),
    ("#5e4a00", "#e3cd78"),
    ("#0b5a5e", "#3fa9b5"),
    ("#7d1f3a", "#d9606f"),
]
_FLOOR = ("#666a80", "#d9dcea")
# Shades are mixed by opacity, so these two are written as channels; they are never text.
_CHANNELS = {"more": ("20 64 143", "127 176 245"), "less": ("184 78 0", "229 144 63")}

_DASHES: list[tuple[float, ...]] = [(), (6, 2), (2, 1.6), (7, 2, 1.5, 2), (10, 2.5), (4, 1.5, 1, 1.5, 1, 1.5)]
_MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
_FLOOR_DASH, _FLOOR_MARKER = (1.2, 1.8), "h"

COLOURS: dict[str, tuple[str, str]] = {
    **_BASE,
    **{f"arm-{place}": pair for place, pair in enumerate(_ARMS, start=1)},
    "arm-floor": _FLOOR,
}
"""Every colour by name: (in the light scheme, in the dark one)."""

_STAND_INS = {name: f"#fe01{place:02x}" for place, name in enumerate([*COLOURS, *_CHANNELS])}
_NAMES = {stand_in: name for name, stand_in in _STAND_INS.items()}


@dataclass(frozen=True)
class ArmLook:
    """How an arm is drawn: the name of its colour, its dash (empty: a whole line) and its marker."""

    colour: str
    dash: tuple[float, ...]
    marker: str


def looks(arms: Sequence[tuple[str, bool]]) -> dict[str, ArmLook]:
    """Give each arm, (label, floor) in the order of the plan, a look of its own; the first floor is grey and dotted.

    With more arms than colours a colour comes again, with another dash and another marker.
    """
    given: dict[str, ArmLook] = {}
    place, floor_given = 0, False
    for label, floor in arms:
        if label in given:
            continue
        if floor and not floor_given:
            given[label], floor_given = ArmLook("arm-floor", _FLOOR_DASH, _FLOOR_MARKER), True
            continue
        lap = place // len(_ARMS)
        dash, marker = _DASHES[place % len(_DASHES)], _MARKERS[(place + lap) % len(_MARKERS)]
        given[label] = ArmLook(f"arm-{place % len(_ARMS) + 1}", dash, marker)
        place += 1
    return given


def looks_by_label(labels: Sequence[str]) -> dict[str, ArmLook]:
    """Give each label a look of its own, in their order, where none of them is a floor."""
    return looks([(label, False) for label in labels])


def stand_in(name: str) -> str:
    """Give the colour to draw with where the page's colour of this name is meant."""
    return _STAND_INS[name]


def as_variables(svg: str) -> str:
    """Turn every stand-in colour of a drawn picture into the CSS variable that it stands for."""
    return re.sub("|".join(_NAMES), lambda found: _variable(_NAMES[found[0]]), svg)


def in_both_schemes(name: str) -> tuple[str, str]:
    """Give a colour, "more" and "less" too, as it is in light and in dark: "#rrggbb" each."""
    if name in COLOURS:
        return COLOURS[name]
    light, dark = ("#" + "".join(f"{int(part):02x}" for part in one.split()) for one in _CHANNELS[name])
    return light, dark


def css() -> str:
    """Give the rules that set the variables for light, for dark, and for paper."""
    light, dark = (_declarations(scheme) for scheme in (0, 1))
    roots = ".hs,.hs-ground"
    return (
        f"{roots}{{color-scheme:light dark;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{{roots}{{{dark}}}}}\n"
        f"@media print{{{roots}{{color-scheme:light;{light}}}}}\n"
    )


def _variable(name: str) -> str:
    return f"var(--{name})" if name in COLOURS else f"rgb(var(--{name}))"


def _declarations(scheme: int) -> str:
    every = [(name, pair[scheme]) for name, pair in [*COLOURS.items(), *_CHANNELS.items()]]
    return "".join(f"--{name}:{value};" for name, value in every)
