"""How `headstock cost` lays its results out for a terminal: tables of no more than a hundred letters a line."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headstock.cli.layout import columns, filled

if TYPE_CHECKING:
    from headstock.instruments.cost import Cost, Fits, Growth, Measured, Part, Pass, Quantity, Ratio

ABSENT = "—"
PASSES: "tuple[Pass, Pass]" = ("forward", "training")
TITLES: "dict[Part, str]" = {
    "block": "The whole block",
    "projections": "Projections alone: queries, keys, values and gates, and the output map",
    "mixing": "Mixing alone: from queries, keys and values to what the output map reads",
    "feedforward": "The feed-forward alone",
}


def laid_out(
    found: "Cost",
    match: str,
    fitting: "Sequence[Fits] | None" = None,
    memory_gib: float | None = None,
    whole: Mapping[str, int] | None = None,
) -> str:
    """Give everything that a measurement says, and what fits into a memory where that was asked."""
    parts = [part for part in TITLES if any(one.part == part for one in found.measured)]
    blocks = [filled(_conditions(found)), _variants(found, match)]
    blocks += [_seconds(found, part) for part in parts]
    blocks += [_memory(found, parts, step) for step in PASSES]
    blocks += [_kernels(found), _growth(found, parts)]
    if fitting and memory_gib:
        blocks.append(_fits(found, fitting, memory_gib, whole or {}))
    blocks += [filled(sentence) for sentence in (*found.left_out, *_notes(found))]
    return "\n\n".join(block for block in blocks if block)


def _conditions(found: "Cost") -> str:
    here = found.environment
    threads = "1 thread" if here["threads"] == "1" else f"{here['threads']} threads"
    where = here["processor"] if here["device"] == "cpu" else here["device"]
    how = ", every weight stored" if found.plain else ""
    return (
        f"One block, batch {found.batch}, {here['dtype']}{how}: {found.turns} turns of everything, on {where}, "
        f"{threads}, torch {here['torch']}."
    )


def _variants(found: "Cost", match: str) -> str:
    equal = {"params": "parameters made equal", "flops": "FLOPs made equal", "none": "nothing made equal"}[match]
    rows = [["variant", "parameters", "d_ff"]]
    rows += [[arm.label, f"{arm.block_parameters:,}", f"{arm.d_ff:,}"] for arm in found.variants]
    return f"Variants, {equal}\n{columns(rows, indent='  ', numbers=(1, 2))}"


def _seconds(found: "Cost", part: "Part") -> str:
    rows = [["tokens", "variant", "forward ms", "ratio", "training ms", "ratio"]]
    for length in found.lengths:
        for place, arm in enumerate(found.variants):
            row = [f"{length:,}" if place == 0 else "", arm.label]
            for one in (found.at(arm.label, length, part, "forward"), found.at(arm.label, length, part, "training")):
                row += [ABSENT, ABSENT] if one is None else [_milliseconds(one), _ratio(one.ratio)]
            rows.append(row)
    said = TITLES[part]
    if len(found.variants) > 1:
        said += f"; ratios to {found.variants[0].label}"
    else:
        rows = [[cell for place, cell in enumerate(row) if place not in (3, 5)] for row in rows]
    return f"{said}\n{columns(rows, indent='  ', numbers=[0, *range(2, len(rows[0]))])}"


def _memory(found: "Cost", parts: "Sequence[Part]", step: "Pass") -> str:
    """Lay out MiB as they were counted, and beside them by formula."""
    rows = [["tokens", "variant", *(cell for part in parts for cell in (part, "formula"))]]
    for length in found.lengths:
        for place, arm in enumerate(found.variants):
            row = [f"{length:,}" if place == 0 else "", arm.label]
            for one in (found.at(arm.label, length, part, step) for part in parts):
                row += [ABSENT, ABSENT] if one is None else [_mebibytes(one.peak_bytes), _mebibytes(one.expected_bytes)]
            rows.append(row)
    said = {"forward": "MiB, forward", "training": "MiB, training"}[step]
    table = columns(rows, indent="  ", numbers=[0, *range(2, len(rows[0]))])
    return f"{said}: the most held at once, and what has to be by formula\n{table}"


def _kernels(found: "Cost") -> str:
    """Say what mixed, from which length on."""
    rows = [["variant", "forward", "training"]]
    for arm in found.variants:
        row = [arm.label]
        for step in PASSES:
            said: list[str] = []
            last = ""
            for one in found.of(arm.label, "mixing", step):
                if one.kernel != last:
                    said.append(f"{one.kernel} from {one.length:,} on" if last else one.kernel)
                last = one.kernel
            row.append(", ".join(said) or ABSENT)
        rows.append(row)
    return f"Kernels that mixed\n{columns(rows, indent='  ')}"


def _milliseconds(one: "Measured") -> str:
    return f"{1000 * one.median_seconds:,.2f} ±{one.half_spread:.0%}"


def _ratio(ratio: "Ratio | None") -> str:
    return ABSENT if ratio is None else f"{ratio.median:.2f} ±{(ratio.high - ratio.low) / 2:.2f}"


def _mebibytes(count: int | None) -> str:
    return ABSENT if count is None else f"{count / 2**20:,.1f}"


def _growth(found: "Cost", parts: "Sequence[Part]") -> str:
    """Lay out the exponents of time, then those of memory."""
    if not found.growth:
        return ""
    lengths = [f"{length:,}" for length in found.growth[0].lengths]
    tables = []
    quantities: tuple[tuple[str, Quantity], ...] = (("time", "seconds"), ("memory", "bytes"))
    for what, quantity in quantities:
        rows = [["variant", "part", "forward", "training"]]
        for arm in found.variants:
            for part in parts:
                fits = [found.exponent(arm.label, part, step, quantity) for step in PASSES]
                if any(fits):
                    rows.append([arm.label, part, *map(_exponent, fits)])
        said = f"Exponents p of {what} ~ tokens^p, fitted to {len(lengths)} lengths, {lengths[0]} to {lengths[-1]}"
        tables.append(f"{said}\n{columns(rows, indent='  ')}")
    return "\n\n".join(tables)


def _exponent(fit: "Growth | None") -> str:
    if fit is None:
        return ABSENT
    return f"{fit.exponent:.2f} ({fit.low:.2f}, {fit.high:.2f})".replace("-", "−")


def _fits(found: "Cost", fitting: "Sequence[Fits]", memory_gib: float, whole: Mapping[str, int]) -> str:
    """Lay out the longest lengths, three figures of each, and say what they rest on."""
    holders = list(dict.fromkeys(one.holder for one in fitting))
    rows = [["variant", "pass", *holders]]
    for arm in found.variants:
        for place, step in enumerate(PASSES):
            own = {one.holder: one for one in fitting if (one.label, one.step) == (arm.label, step)}
            longest = (_floored(own[holder].tokens) for holder in holders)
            rows.append([arm.label if place == 0 else "", step, *longest])
    table = columns(rows, indent="  ", numbers=range(2, len(rows[0])))
    title = (
        f"The longest sequence that {memory_gib:g} GiB have room for, in tokens; batch {found.batch}, "
        f"{whole['n_layers']} {'layer' if whole['n_layers'] == 1 else 'layers'}, vocabulary {whole['vocab_size']:,}"
    )
    worst: dict[str, float] = {}
    for one in fitting:
        if one.off_by is not None and one.holder != "model":
            worst[one.holder] = max(worst.get(one.holder, 0.0), abs(one.off_by))
    told = " and ".join(f"{off:.1%} ({holder})" for holder, off in worst.items())
    said = [
        "Foreseen: bytes measured of mixing and block, carried on as a polynomial of the length. By formula: "
        "parameters, gradients and AdamW's two numbers for each, the residual, the loss."
    ]
    if told:
        said.append(f"From the shorter lengths, bytes at the longest would have been foreseen within {told}.")
    stored = {arm.label: found.weights_bytes[arm.label][found.lengths[-1]] for arm in found.variants}
    alone: dict[int, list[str]] = {}
    for label, size in stored.items():
        if size:
            filled_at = math.isqrt(int(memory_gib * 2**30 * found.lengths[-1] ** 2 / size))
            alone.setdefault(filled_at, []).append(label)
    if alone:
        when = "; ".join(f"{', '.join(labels)} at {n:,} tokens" for n, labels in alone.items())
        said.append(f"By formula, all weights stored once would fill it alone: {when}.")
    return "\n".join([title, table, *(filled(sentence, "  ") for sentence in said)])


def _floored(tokens: int) -> str:
    """Round down to three figures."""
    step = 10 ** max(0, len(str(tokens)) - 3)
    return f"{tokens // step * step:,}"


def _notes(found: "Cost") -> list[str]:
    notes = [
        "training: forward and backward. ±: half the width of the middle half of the turns. MiB: the most held at once "
        "beyond inputs, parameters and their gradients, counted from every allocation. formula: what the plain formula "
        "needs to hold; copies, masks and the room of kernels come on top."
    ]
    if found.growth:
        notes.append("In brackets: the 95 % interval of least squares on logarithms, by Student's t.")
    longest = max(one.length for one in found.measured)
    stored = {arm.label: found.weights_bytes[arm.label][longest] for arm in found.variants}
    by_size: dict[int, list[str]] = {}
    for label, size in stored.items():
        if size:
            by_size.setdefault(size, []).append(label)
    if by_size:
        said = "; ".join(f"{', '.join(labels)} {size / 2**20:,.1f} MiB" for size, labels in by_size.items())
        notes.append(f"By formula, all weights at {longest:,} tokens, stored once, are {said}.")
    whole = [arm.label for arm in found.variants if not arm.mixing_is_apart]
    if whole:
        notes.append(f"The mixing of {', '.join(whole)} is all that its mixer does, maps included.")
    return notes
