"""Views as HTML: a page of its own, or an element for a page that is there."""

import json
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from jinja2 import Template
from markupsafe import Markup

from headstock.instruments.viewer.encoding import EncodedMap, levels, packed
from headstock.instruments.viewer.view import MOST_IN_A_NOTEBOOK, View
from headstock.pictures.labels import showable
from headstock.pictures.pages import resource, style, templates

_FACTS = {
    "normalised": "A query's weights add up to 1.",
    "signed": "Weights may be negative.",
    "unnormalised": "A query's weights need not add up to 1.",
}
SCRIPT = ("words", "weights", "shades", "expected", "overview", "map", "text", "viewer")
KINDS = ("the difference", "the first map", "the second map")


def as_page(view: View) -> str:
    """Give the whole page."""
    return _rendered([view], whole=True, with_weights=True)


def as_fragment(views: Sequence[View]) -> str:
    """Give views as one element, for a page that is already there, such as a notebook's."""
    return _rendered(views, whole=False, with_weights=sum(view.n_weights for view in views) <= MOST_IN_A_NOTEBOOK)


def _rendered(views: Sequence[View], *, whole: bool, with_weights: bool) -> str:
    page = _template().render(
        whole=whole,
        css=style(__package__),
        script=_script(),
        views=[_shown(view, with_weights) for view in views],
    )
    return showable(page.strip() + "\n")


@cache
def _script() -> Markup:
    """Give the parts of the script as one, with names that nothing else sees."""
    parts = (resource(f"{__package__}.script", f"{part}.js") for part in SCRIPT)
    return Markup('(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n")


def _shown(view: View, with_weights: bool) -> dict[str, Any]:
    """Give what the template needs of a view."""
    kinds = [_maps(view, kind) for kind in range(3 if any(layer.pairs for layer in view.layers) else 1)]
    notes = list(view.notes)
    if view.layers and not with_weights:
        notes.append(
            f"The {view.n_weights:,} weights are more than a notebook should hold, so only the small pictures are "
            f'here. inspected(model, ids).save("page.html"), of headstock.instruments.viewer, makes a page of all.'
        )
    facts = " ".join(filter(None, [_FACTS.get(view.weights_are, ""), _precision(view)] if view.layers else []))
    held = [(f"{kind}.{layer}.{head}", one.packed) for kind, layer, head, one in _numbered(kinds)]
    return {
        "title": view.title,
        "summary": view.summary,
        "text": view.labels,
        "facts": facts,
        "notes": notes,
        "meta": _json(_meta(view, kinds, with_weights)),
        "maps": [(name, Markup(letters)) for name, letters in held] if with_weights else [],
    }


def _maps(view: View, kind: int) -> list[list[EncodedMap]]:
    """Give the maps of one kind, by layer: 0 what is averaged by, 1 and 2 the maps whose difference that is."""
    if kind == 0:
        return [list(layer.maps) for layer in view.layers]
    return [[pair[kind - 1] for pair in layer.pairs] for layer in view.layers]


def _numbered(kinds: Sequence[list[list[EncodedMap]]]) -> list[tuple[int, int, int, EncodedMap]]:
    return [
        (kind, layer, head, one)
        for kind, layers in enumerate(kinds)
        for layer, maps in enumerate(layers)
        for head, one in enumerate(maps)
    ]


def _meta(view: View, kinds: Sequence[list[list[EncodedMap]]], with_weights: bool) -> dict[str, Any]:
    """Give all that the script is told at once; maps come after it, each when it is asked for."""
    every = _numbered(kinds)
    return {
        "labels": view.labels,
        "width": view.width,
        "whole": with_weights,
        "levels": [[levels(width, signed) for signed in (False, True)] for width in (1, 2)],
        "kinds": KINDS[: len(kinds)],
        # of each map: its largest weight, whether it is a triangle, whether it is signed
        "maps": [[[_map(one) for one in maps] for maps in layers] for layers in kinds],
        "small": packed(b"".join(one.small for *_, one in every)) if every else "",
        "shares": [[[_short(share, 5) for share in row] for row in layer.shares] for layer in view.layers],
        "heads": [[_head(one) for one in view.heads if one.layer == layer] for layer in range(len(view.layers))],
        "predictions": [
            [[[label, _short(share)] for label, share in one.top], _short(one.probability), one.rank]
            for one in view.predictions
        ],
    }


def _map(one: EncodedMap) -> list[float | bool]:
    return [_short(one.scale, 7) or 0.0, one.triangle, one.signed]


def _head(one: Any) -> list[float | int | None]:
    summed = (one.effective_tokens, one.sink, one.previous, one.negative, one.largest)
    return [*(_short(value) for value in summed), one.largest_query, one.largest_key]


def _short(value: float | None, digits: int = 4) -> float | None:
    """Keep so many digits; what is no finite number is None, for JSON knows none."""
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None
    return float(f"{value:.{digits}g}")


def _precision(view: View) -> str:
    """Say how far a weight that is shown may lie from the true one."""
    signed = any(one.signed for layer in view.layers for one in layer.maps)
    share = 1 / levels(view.width, signed)
    return (
        f"Weights are kept in {8 * view.width} bits, by their square root: one of size w is shown to within "
        f"{_plain(share)}·√w where the largest is 1, and written with no more digits than that leaves."
    )


def _plain(value: float) -> str:
    """Write one digit, and no exponent."""
    return f"{value:.{max(0, -math.floor(math.log10(value)))}f}"


def _json(value: Any) -> Markup:
    """Write JSON that no tag can end, and that no page reads as anything else."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


@cache
def _template() -> Template:
    environment = templates()
    environment.filters.update(breakable=_breakable)
    return environment.get_template(f"{__package__}/page.html.j2")


def _breakable(title: str) -> Markup:
    """Let a long variant break after its commas."""
    return Markup(",<wbr>").join(title.split(","))
