"""An explanation as aligned text, for a terminal or a pipe."""

from collections.abc import Sequence

from headstock.programs.explaining.anatomy import moment
from headstock.programs.explaining.explanation import Explanation, as_text, weight_as_text
from headstock.programs.values import shown

WIDEST_TABLE = 24
"""Tokens, up to which a head's weights are set out."""


def text_of(one: Explanation) -> str:
    """Give all of an explanation, block by block."""
    blocks = [one.title, *one.notes, _values(one), _standing(one), *_heads(one), _layers(one), _columns(one)]
    if one.moved:
        rows = [[part.part, part.line, f"{part.largest:.2g}"] for part in one.moved]
        blocks.append("Weights that have moved\n" + aligned([["part", "line", "largest change"], *rows]))
    return "\n\n".join(block for block in blocks if block)


def _values(one: Explanation) -> str:
    rows = [["", "", *map(shown, one.tokens)]]
    for part in one.expressions:
        name = part.name
        if part.program is not None:
            rows.append([name, "program", *map(shown, part.program)])
            name = ""
        rows.append([name, "model", *(as_text(part, place) for place in range(len(one.tokens)))])
    return "Values\n" + aligned(rows)


def _standing(one: Explanation) -> str:
    rows = [["expression", "line", "computed by", "stands", "source"]]
    rows += [[part.name, part.line, part.how, part.where, part.source] for part in one.expressions]
    return "Expressions\n" + aligned(rows)


def _heads(one: Explanation) -> list[str]:
    found = []
    for head in one.heads:
        said = f"Layer {head.part.layer} head {head.part.number}, {head.part.name} ({', '.join(head.part.lines)})"
        if len(one.labels) > WIDEST_TABLE:
            found.append(f"{said}: {len(one.labels)} × {len(one.labels)} weights, which are in .heads")
            continue
        rows = [["query \\ key", *one.labels]]
        for label, weights in zip(one.labels, head.weights, strict=True):
            rows.append([label, *(weight_as_text(weight, len(one.labels)) for weight in weights)])
        found.append(f"{said}\n{aligned(rows)}")
    return found


def _layers(one: Explanation) -> str:
    if not one.n_layers:
        return ""
    rows = [["layer", "units", "what they make", "line"]]
    for layer in range(one.n_layers):
        rows.append([str(layer), "all", "heads and units", ", ".join(one.lines_of_layer(layer))])
        for part in one.units:
            if part.layer == layer:
                span = str(part.first) if part.first == part.last else f"{part.first}-{part.last}"
                rows.append(["", span, part.name, part.line])
    return "Layers\n" + aligned(rows)


def _columns(one: Explanation) -> str:
    rows = [["column", "holds", "from", "until", "line"]]
    for column in one.columns:
        for place, held in enumerate(column.holds):
            until = "" if held.until is None else moment(held.until)
            rows.append(["" if place else str(column.number), held.name, moment(held.since), until, held.line])
    return "Columns\n" + aligned(rows)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Set rows in columns, two spaces before and between."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(wide) for cell, wide in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(f"  {line}".rstrip() for line in lines)
