"""An explanation as a piece of a page that needs nothing else: tables, in light and in dark."""

from collections.abc import Iterable, Sequence
from html import escape

from headstock.programs.explaining.anatomy import moment
from headstock.programs.explaining.explanation import Explained, ExplainedHead, Explanation, as_text, weight_as_text
from headstock.programs.values import shown

_STYLE = """
.hs-explained{color-scheme:light dark;--ground:#fdfcf9;--ink:#1c1e22;--muted:#5b6069;--rule:#d8d5cc;--head:#f4f2ec;
--warn:#7a3d00;--warn-ground:#fbf0e0;--weight:20 64 143;background:var(--ground);color:var(--ink);padding:1em;
font:14px/1.45 system-ui,sans-serif;font-variant-numeric:tabular-nums}
@media (prefers-color-scheme:dark){.hs-explained{--ground:#16181c;--ink:#e8e6e1;--muted:#a4a8b0;--rule:#3a3e46;
--head:#1f2227;--warn:#f0b36a;--warn-ground:#33261a;--weight:127 176 245}}
.hs-explained .wide{overflow-x:auto;margin:0 0 1em}
.hs-explained table{border-collapse:collapse;background:none;color:inherit}
.hs-explained caption{text-align:left;font-weight:600;padding:.3em 0}
.hs-explained th,.hs-explained td{border:1px solid var(--rule);padding:.15em .5em;text-align:left;color:inherit;
white-space:nowrap}
.hs-explained th{background:var(--head);font-weight:600}
.hs-explained td.off{background:var(--warn-ground);color:var(--warn);font-weight:600}
.hs-explained td.source{font-family:ui-monospace,monospace;color:var(--muted)}
.hs-explained p{margin:.3em 0;color:var(--muted)}
"""


def page_of(one: Explanation) -> str:
    """Give the piece of HTML; it brings its own style and loads nothing."""
    notes = "".join(f"<p>{escape(note)}</p>" for note in one.notes)
    parts = [_values(one), _standing(one), *(_head(one, head) for head in one.heads), _units(one), _columns(one)]
    if one.moved:
        rows = [[part.part, part.line, f"{part.largest:.2g}"] for part in one.moved]
        parts.append(_table("Weights that have moved", ["part", "line", "largest change"], _plain(rows)))
    return (
        f'<div class="hs-explained"><style>{_STYLE}</style><p><b>{escape(one.title)}</b></p>'
        f"{notes}{''.join(parts)}</div>"
    )


def _table(caption: str, heads: Sequence[str], rows: Iterable[str]) -> str:
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="wide" tabindex="0"><table><caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _plain(rows: Iterable[Sequence[str]]) -> list[str]:
    return ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]


def _values(one: Explanation) -> str:
    rows = []
    for part in one.expressions:
        if part.program is not None:
            cells = "".join(f"<td>{escape(shown(value))}</td>" for value in part.program)
            rows.append(f'<th scope="row">{escape(part.name)}</th><td>program</td>{cells}')
        rows.append(f'<th scope="row">{escape(part.name)}</th><td>model</td>{_held(part, len(one.tokens))}')
    return _table("Values", ["expression", "", *map(shown, one.tokens)], rows)


def _held(part: Explained, length: int) -> str:
    marks = [' class="off"' if part.differs[place] or part.moved[place] else "" for place in range(length)]
    return "".join(f"<td{mark}>{escape(as_text(part, place))}</td>" for place, mark in enumerate(marks))


def _standing(one: Explanation) -> str:
    rows = []
    for part in one.expressions:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in (part.line, part.how, part.where))
        source = f'<td class="source">{escape(part.source)}</td>'
        rows.append(f'<th scope="row">{escape(part.name)}</th>{cells}{source}')
    return _table("Expressions", ["expression", "line", "computed by", "stands", "source"], rows)


def _head(one: Explanation, head: ExplainedHead) -> str:
    rows = []
    for label, weights in zip(one.labels, head.weights, strict=True):
        cells = "".join(
            f'<td style="background:rgb(var(--weight)/{min(abs(weight), 1) * 0.35:.3f})">'
            f"{escape(weight_as_text(weight, len(one.labels)))}</td>"
            for weight in weights
        )
        rows.append(f'<th scope="row">{escape(label)}</th>{cells}')
    part = head.part
    said = f"Layer {part.layer} head {part.number}, {part.name} ({', '.join(part.lines)}): query × key"
    return _table(said, ["", *one.labels], rows)


def _units(one: Explanation) -> str:
    if not one.n_layers:
        return ""
    rows = []
    for layer in range(one.n_layers):
        rows.append([str(layer), "all", "heads and units", ", ".join(one.lines_of_layer(layer))])
        rows += [
            [str(layer), f"{part.first}-{part.last}", part.name, part.line] for part in one.units if part.layer == layer
        ]
    return _table("Layers", ["layer", "units", "what they make", "line"], _plain(rows))


def _columns(one: Explanation) -> str:
    rows = [
        [
            str(column.number),
            held.name,
            moment(held.since),
            "" if held.until is None else moment(held.until),
            held.line,
        ]
        for column in one.columns
        for held in column.holds
    ]
    return _table("Columns", ["column", "holds", "from", "until", "line"], _plain(rows))
