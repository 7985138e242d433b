"""Which parts of a compiled model have other weights than were certified: what training has moved, by line."""

from collections.abc import Mapping

from torch import Tensor

from headstock.model.transformer import Transformer
from headstock.programs.explaining.anatomy import Anatomy
from headstock.programs.explaining.explanation import Moved

Weights = Mapping[str, Tensor]
"""By their names in `state_dict`."""


def moved_parts(anatomy: Anatomy, model: Transformer, before: Weights) -> tuple[Moved, ...]:
    """Give the parts whose weights have changed, the most changed first."""
    after = model.state_dict()
    change = {name: (after[name].detach().double().cpu() - before[name].double().cpu()).abs() for name in before}
    found = [
        Moved(part, line, largest) for part, line, largest in _changes(anatomy, change, model.config.d_head) if largest
    ]
    return tuple(sorted(found, key=lambda one: -one.largest))


def _changes(anatomy: Anatomy, change: Weights, d_head: int) -> list[tuple[str, str, float]]:
    found = [
        (said, "", _largest([change[name] for name in names if name in change]))
        for said, names in (
            ("embedding of tokens", ["embed.weight"]),
            ("embedding of positions", ["position.weight"]),
            ("unembedding", ["unembed.weight", "unembed.bias"]),
        )
    ]
    for layer in range(anatomy.n_layers):
        found += _changes_of_heads(anatomy, change, layer, d_head) + _changes_of_units(anatomy, change, layer)
    return found


def _changes_of_heads(anatomy: Anatomy, change: Weights, layer: int, d_head: int) -> list[tuple[str, str, float]]:
    at = f"blocks.{layer}.mixer."
    heads = [head for head in anatomy.heads if head.layer == layer]
    found = []
    for number in range(len(change[f"{at}query.weight"]) // d_head):
        own = slice(number * d_head, (number + 1) * d_head)
        parts = [change[f"{at}{name}.weight"][own] for name in ("query", "key", "value")]
        parts += [change[f"{at}{name}.bias"][own] for name in ("query", "key", "value") if f"{at}{name}.bias" in change]
        parts.append(change[f"{at}output.weight"][:, own])
        said, line = f"layer {layer} head {number}, which was empty", ""
        if number < len(heads):
            said, line = f"layer {layer} head {number}, {heads[number].name}", ", ".join(heads[number].lines)
        found.append((said, line, _largest(parts)))
    if f"{at}output.bias" in change:
        found.append((f"layer {layer} heads, constants", "", _largest([change[f"{at}output.bias"]])))
    return found


def _changes_of_units(anatomy: Anatomy, change: Weights, layer: int) -> list[tuple[str, str, float]]:
    at = f"blocks.{layer}.feedforward."
    if f"{at}into.weight" not in change:
        return []
    spans = [
        (part.first, part.last + 1, f"layer {layer} units {part.first}-{part.last}, {part.name}", part.line)
        for part in anatomy.units
        if part.layer == layer
    ]
    used = max((last for _, last, _, _ in spans), default=0)
    total = change[f"{at}into.weight"].shape[0]
    if used < total:
        spans.append((used, total, f"layer {layer} units {used}-{total - 1}, which were empty", ""))
    found = []
    for first, last, said, line in spans:
        parts = [change[f"{at}into.weight"][first:last], change[f"{at}out.weight"][:, first:last]]
        if f"{at}into.bias" in change:
            parts.append(change[f"{at}into.bias"][first:last])
        found.append((said, line, _largest(parts)))
    if f"{at}out.bias" in change:
        found.append((f"layer {layer} units, constants", "", _largest([change[f"{at}out.bias"]])))
    return found


def _largest(parts: list[Tensor]) -> float:
    return max((float(part.max()) for part in parts if part.numel()), default=0.0)
