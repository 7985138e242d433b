import itertools
import re

import pytest

from headstock.pictures import palette


def test_arms_can_be_told_apart_without_colour():
    looks = palette.looks([(f"arm {place}", place == 2) for place in range(30)])
    assert len({(look.colour, look.dash, look.marker) for look in looks.values()}) == 30
    assert len({(look.dash, look.marker) for look in list(looks.values())[:8]}) == 8


def contrast(one, other):
    def light(colour):
        channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]

    lower, higher = sorted(
        sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), light(colour), strict=True))
        for colour in (one, other)
    )
    return (higher + 0.05) / (lower + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_text_can_be_read_on_what_lies_behind_it(scheme):
    blocks = re.findall(r"--ground:#.*?(?=\})", palette.css())
    colours = dict(re.findall(r"--([\w-]+):(#\w{6});", blocks[scheme]))
    arms = [name for name in colours if name.startswith("arm-")]
    assert len(arms) == 8
    pairs = [(text, "ground") for text in ("ink", "muted", "claim", "warn", *arms)]
    pairs += [("ink", "claim-ground"), ("claim", "claim-ground"), ("warn", "warn-ground"), ("ink", "panel")]
    assert {
        pair: contrast(*(colours[name] for name in pair))
        for pair in pairs
        if contrast(*(colours[name] for name in pair)) < 4.5
    } == {}
    assert contrast(colours["ground"], "#ffffff" if scheme else "#000000") > 4.5


def seen(colour, kind):
    """A colour in CIELAB as an eye with a kind of colour blindness sees it (Machado, Oliveira and Fernandes 2009)."""
    mixes = {
        "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        "protan": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
        "deutan": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
        "tritan": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
    }
    to_xyz = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))

    def times(matrix, vector):
        return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]

    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    mixed = [min(1.0, max(0.0, c)) for c in times(mixes[kind], linear)]
    x, y, z = (
        (part / white) ** (1 / 3) if part / white > 0.008856 else 7.787 * part / white + 16 / 116
        for part, white in zip(times(to_xyz, mixed), (0.9505, 1.0, 1.089), strict=True)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("kind", ["none", "protan", "deutan", "tritan"])
@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_the_first_three_arms_and_the_floor_are_told_apart_by_any_eye(scheme, kind):
    first = [palette.COLOURS[name][scheme] for name in ("arm-1", "arm-2", "arm-3", "arm-floor")]
    for one, other in itertools.combinations(first, 2):
        apart = sum((a - b) ** 2 for a, b in zip(seen(one, kind), seen(other, kind), strict=True)) ** 0.5
        assert apart > 20
