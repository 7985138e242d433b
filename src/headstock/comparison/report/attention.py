"""Where an arm looks: every head's weights at the deciding position, a shaded cell a key, the tokens beneath.

Made of the page's own boxes and not drawn, so that letters stay letters and a long row breaks on a narrow screen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from headstock.comparison.report.summaries import finished
from headstock.comparison.results import ArmOnTask, Attention, TaskOutcome
from headstock.comparison.statistics.sentences import listed
from headstock.pictures import numbers
from headstock.pictures.palette import ArmLook
from headstock.pictures.picture import Table

MOST_CELLS = 20_000
"""On one page, over all arms and tasks; a cell is some fifty bytes, with its number in the table behind."""
NARROW_KEYS, WIDE_KEYS = 32, 18
"""How many keys stand in one line where labels are single letters, and where they are words."""
FACTS = {
    "normalised": "weights of a head add up to 1",
    "signed": "weights may be negative",
    "unnormalised": "weights need not add up to 1",
}


@dataclass(frozen=True)
class Row:
    """One head's cells; `layer` is said on a layer's first head."""

    layer: str
    head: str
    cells: Markup


@dataclass(frozen=True)
class Block:
    """One line of keys with every head's cells over them; `labels` say which is the deciding position."""

    labels: list[tuple[str, bool]]
    rows: list[Row]


@dataclass(frozen=True)
class Shade:
    """One step of the scale: the weight it stands for, how strong the colour is, and whether it is the negative one."""

    weight: str
    strength: str
    negative: bool


@dataclass(frozen=True)
class View:
    """Everything that the page shows of one arm's weights on one task."""

    name: str
    arm: str
    look: ArmLook
    finding: str
    prediction: str
    target: str
    words: bool
    blocks: list[Block]
    scale: list[Shade]
    facts: str
    says: str
    table: Table
    source: str


Weights = list[list[list[float]]]


def views(task: TaskOutcome, looks: dict[str, ArmLook], most_cells: int) -> list[View]:
    """Give a view for each arm that has weights, of so many cells; arms whose weights add up to 1 share one scale."""
    shown = [(arm, arm.attention, _largest(arm.attention)) for arm in task.arms if arm.attention is not None]
    shared = max((largest for _, attention, largest in shown if attention.weights_are == "normalised"), default=0.0)
    return [
        _view(
            task,
            arm,
            attention,
            shared if attention.weights_are == "normalised" else largest,
            looks[arm.label],
            most_cells,
        )
        for arm, attention, largest in shown
        if _keys(attention)
    ]


def _view(
    task: TaskOutcome, arm: ArmOnTask, attention: Attention, largest: float, look: ArmLook, most_cells: int
) -> View:
    keys = _keys(attention)
    n_layers, n_heads, n_keys = _shown(len(attention.weights), max(map(len, attention.weights)), keys, most_cells)
    first = keys - n_keys
    labels = attention.labels[first:keys]
    weights = [[head[first:keys] for head in layer[:n_heads]] for layer in attention.weights[:n_layers]]
    signed = any(weight < 0 for layer in weights for head in layer for weight in head)
    words = any(len(label) > 1 for label in labels)
    most = WIDE_KEYS if words else NARROW_KEYS
    # Lines of equal length: 40 keys stand as 14, 13 and 13, not as 18, 18 and 4.
    lines = math.ceil(len(labels) / most)
    cuts = [round(place * len(labels) / lines) for place in range(lines + 1)]
    finding, first_run = _finding(attention), finished(arm)[:1]
    left_out = _left_out(attention, n_layers, n_heads, first, keys)
    return View(
        name=f"Attention, {task.name}",
        arm=arm.label,
        look=look,
        finding=finding,
        prediction=attention.prediction,
        target=attention.target,
        words=words,
        blocks=[
            _block(labels, weights, start, end, largest, attention.position - first) for start, end in pairwise(cuts)
        ],
        scale=_scale(largest, signed),
        facts=" ".join([f"{FACTS.get(attention.weights_are, attention.weights_are).capitalize()}.", *left_out]),
        says=f"Weights of {arm.label} on {task.name} at the deciding position, token {attention.position}: {finding}. "
        f"It says {attention.prediction}; right is {attention.target}.",
        table=_table(labels, weights, first),
        source=first_run[0].folder if first_run else "",
    )


def _block(labels: Sequence[str], weights: Weights, start: int, end: int, largest: float, deciding: int) -> Block:
    rows = [
        Row(
            f"layer {layer}" if head == 1 else "",
            str(head),
            Markup("".join(_cell(weight, largest) for weight in cells[start:end])),
        )
        for layer, heads in enumerate(weights, start=1)
        for head, cells in enumerate(heads, start=1)
    ]
    return Block([(labels[key], key == deciding) for key in range(start, end)], rows)


def _cell(weight: float, largest: float) -> str:
    if not math.isfinite(weight):
        return '<i class="hs-none"></i>'
    kind = ' class="hs-less"' if weight < 0 else ""
    return f'<i{kind} style="--w:{_strength(weight, largest)}"></i>'


def _strength(weight: float, largest: float) -> str:
    """Give how strong a weight's shade is, 0 to 1: its square root, so that an even spread is still seen."""
    return f"{math.sqrt(min(1.0, abs(weight) / largest)):.2f}" if largest else "0"


def _scale(largest: float, signed: bool) -> list[Shade]:
    shares = [0.0, 0.05, 0.25, 0.5, 1.0]
    if signed:
        shares = [-1.0, -0.25, 0.0, 0.25, 1.0]
    places = max(2, 1 - math.floor(math.log10(largest))) if largest else 2
    return [
        Shade(numbers.fixed(share * largest, places), _strength(share * largest, largest), share < 0)
        for share in shares
    ]


def _largest(attention: Attention) -> float:
    sizes = (abs(weight) for layer in attention.weights for head in layer for weight in head if math.isfinite(weight))
    return max(sizes, default=0.0)


def _finding(attention: Attention) -> str:
    """Say where the largest weight is, or that there is none larger than another."""
    places = [
        (abs(weight), weight, layer, head, key)
        for layer, heads in enumerate(attention.weights, start=1)
        for head, cells in enumerate(heads, start=1)
        for key, weight in enumerate(cells[: len(attention.labels)])
        if math.isfinite(weight)
    ]
    if not places:
        return "no weight is a number"
    size, weight, layer, head, key = max(places)
    if size - min(places)[0] <= 1e-6 * size and len(places) > 1:
        return f"every key gets the same, {numbers.fixed(weight, 3)}"
    written = numbers.fixed(weight, 2)
    return f"most on “{attention.labels[key]}” at position {key}, {written} in head {head} of layer {layer}"


def _keys(attention: Attention) -> int:
    """Give how many keys have a label and a weight in every head; none where there is no head."""
    lengths = [len(head) for layer in attention.weights for head in layer]
    return min([len(attention.labels), *lengths]) if lengths else 0


def _shown(layers: int, heads: int, keys: int, most_cells: int) -> tuple[int, int, int]:
    """Give how many layers, heads and keys fit into so many cells; keys give way first, for the last ones say most."""
    while layers * heads * keys > most_cells:
        if keys > 32 or heads == layers == 1:
            keys -= max(1, keys // 4)
        elif heads > 2 or layers == 1:
            heads -= 1
        else:
            layers -= 1
        if keys <= 1:
            break
    return layers, heads, keys


def _left_out(attention: Attention, n_layers: int, n_heads: int, first: int, keys: int) -> list[str]:
    """Say what is not shown, and the most weight that any shown head gives to it."""
    said = []
    if first:
        beyond = max(
            (math.fsum(abs(weight) for weight in head[:first] if math.isfinite(weight)))
            for layer in attention.weights
            for head in layer
        )
        share = numbers.fixed(beyond, 2)
        said.append(f"The last {keys - first} of {keys} keys are shown; no head gives the others more than {share}.")
    parts = []
    if len(attention.weights) > n_layers:
        parts.append(f"the first {n_layers} of {len(attention.weights)} layers")
    heads = max(map(len, attention.weights))
    if heads > n_heads:
        parts.append(f"the first {n_heads} of {heads} heads")
    if parts:
        said.append(f"Shown are {listed(parts)}; all are in comparison.json.")
    return said


def _table(labels: Sequence[str], weights: Weights, first: int) -> Table:
    heads = [
        (f"layer {layer}, head {head}", cells)
        for layer, heads in enumerate(weights, start=1)
        for head, cells in enumerate(heads, start=1)
    ]
    rows = [
        [f"{first + key} {label}", *(numbers.fixed(cells[key], 3) for _, cells in heads)]
        for key, label in enumerate(labels)
    ]
    return Table(["key", *(name for name, _ in heads)], rows)
