"""`headstock cost`: seconds and memory of one block against length."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from headstock.cli.layout import columns, filled, print_json, results_alone
from headstock.cli.options import (
    AsJson,
    Device,
    Flag,
    Whole,
    device_named,
    refuse_settings_among,
    settings_of,
)
from headstock.cli.progress import CostProgress
from headstock.errors import UserError, near_name

if TYPE_CHECKING:
    from headstock.instruments.cost import Cost, Measured, Part, Ratio
    from headstock.model.config import ModelConfig

DEFAULT_LENGTHS = "256,512,1024,2048"
USUAL = {"d_model": "512", "n_heads": "8"}
FOLLOWS = {
    "mixer": "every variant begins with its own",
    "vocab_size": "no token is looked up or foretold",
    "context": "it follows from --lengths",
    "n_layers": "one block is measured",
}
ABSENT = "—"


def cost(
    *variants: Annotated[
        str,
        Parameter(
            help="MIXER[+POSITION][,key=value...], as `headstock list variants` names them; ratios are to the first."
        ),
    ],
    lengths: Annotated[str, Parameter(help="Tokens of a sequence, with commas between.")] = DEFAULT_LENGTHS,
    settings: Annotated[
        list[str] | None,
        Parameter(
            name="--set",
            negative="",
            help="key=value of the model for all variants, again for another [default: d_model=512, n_heads=8].",
        ),
    ] = None,
    batch: Annotated[Whole, Parameter(help="Sequences at once.")] = 1,
    match: Annotated[
        Literal["params", "flops", "none"],
        Parameter(help="What is made equal by the width of the feed-forward; operations are those at the longest."),
    ] = "params",
    plain: Annotated[bool, Flag, Parameter(help="Take every mixer's plain evaluation, which stores its weights.")] = (
        False
    ),
    seconds: Annotated[
        float, Parameter(help="How long turns are taken; there are five at the least, however long they take.")
    ] = 60.0,
    device: Device = "auto",
    as_json: AsJson = False,
) -> int:
    """Measure what one block of every variant costs as sequences grow: seconds and memory, forward and in training.

    Everything is measured in turns, float32, with as many threads as torch takes. Memory is counted exactly, beyond
    inputs, parameters and their gradients. "mixing" is the block without its maps, norms and feed-forward.
    """
    refuse_settings_among(variants)
    tokens = _tokens(lengths)
    pairs = settings_of(settings)
    used = device_named(device)

    from headstock.instruments.cost import cost_by_length

    with CostProgress() as watch, results_alone():
        configs = _configs(variants, pairs, max(tokens), match)
        found = cost_by_length(configs, tokens, batch=batch, plain=plain, seconds=seconds, device=used, watch=watch)
    if as_json:
        print_json({"match": match, **found.to_dict()})
    else:
        print(_laid_out(found, match))
    return 0


def _tokens(lengths: str) -> list[int]:
    written = [part.strip() for part in lengths.split(",")]
    if not all(part.isdecimal() and 0 < int(part) < 2**31 for part in written):
        raise UserError(f"--lengths is {lengths!r}: give numbers of tokens with commas between, such as 256,512.")
    return [int(part) for part in written]


def _configs(
    variants: Sequence[str], pairs: Sequence[tuple[str, str]], longest: int, match: Literal["params", "flops", "none"]
) -> "dict[str, ModelConfig]":
    """Give each variant's config by its label, matched. Raises UserError for whatever cannot be measured."""
    from headstock.comparison.matching import matched, sizes
    from headstock.comparison.plan import labels_of
    from headstock.model.config import ModelConfig, config_of, parse_variant
    from headstock.model.mixers import mixer_class, told_of

    if not variants:
        raise UserError("nothing is measured: name a variant or more, such as softmax and differential.")
    for variant in variants:
        if variants.count(variant) > 1:
            raise UserError(f"the variant {variant!r} is named twice: name it once.")
    own = [key for variant in variants for key in parse_variant(variant) if key != "mixer"]
    for key in (*own, *(key for key, _ in pairs)):
        if key in FOLLOWS:
            raise UserError(f"{key!r} is not a setting here: {FOLLOWS[key]}.")
        if key not in ModelConfig.model_fields:
            raise UserError(f"unknown setting {key!r}: {near_name(key, set(ModelConfig.model_fields) - set(FOLLOWS))}")
    shared: dict[str, Any] = {**USUAL, **dict(pairs), "vocab_size": 1, "context": longest, "n_layers": 1}
    labels = labels_of(variants)
    configs = [config_of(variant, **shared) for variant in variants]
    for config in configs:
        with told_of(config.mixer):
            mixer_class(config.mixer).check(config)
            sizes(config)
    return dict(zip(labels, matched(labels, configs, match), strict=True))


def _laid_out(found: "Cost", match: str) -> str:
    blocks = [filled(_conditions(found)), _variants(found, match)]
    blocks += [_part(found, "block"), _part(found, "mixing"), _growth(found)]
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
    equal = {"params": "parameters made equal", "flops": "operations made equal", "none": "nothing made equal"}[match]
    rows = [["variant", "parameters", "d_ff"]]
    rows += [[arm.label, f"{arm.block_parameters:,}", f"{arm.d_ff:,}"] for arm in found.variants]
    return f"Variants, {equal}\n{columns(rows, indent='  ', numbers=(1, 2))}"


def _part(found: "Cost", part: "Part") -> str:
    title = {
        "block": "The whole block",
        "mixing": "Mixing alone: from queries, keys and values to what the output map reads",
    }[part]
    first = found.variants[0].label
    rows = [["tokens", "variant", "forward ms", "ratio", "training ms", "ratio", "MiB", "MiB training", "kernel"]]
    for length in found.lengths:
        for place, arm in enumerate(found.variants):
            row = [f"{length:,}" if place == 0 else "", arm.label]
            forward, training = (found.at(arm.label, length, part, step) for step in ("forward", "training"))
            if forward is None or training is None:
                rows.append([*row, *[ABSENT] * 7])
                continue
            row += [_milliseconds(forward), _ratio(forward.ratio), _milliseconds(training), _ratio(training.ratio)]
            kernels = dict.fromkeys((forward.kernel, training.kernel))
            rows.append([*row, _mebibytes(forward), _mebibytes(training), " / ".join(kernels)])
    said = f"{title}; ratios to {first}" if len(found.variants) > 1 else title
    if len(found.variants) == 1:
        rows = [[cell for place, cell in enumerate(row) if place not in (3, 5)] for row in rows]
    return f"{said}\n{columns(rows, indent='  ', numbers=[0, *range(2, len(rows[0]) - 1)])}"


def _milliseconds(one: "Measured") -> str:
    return f"{1000 * one.median_seconds:,.2f} ±{one.half_spread:.0%}"


def _ratio(ratio: "Ratio | None") -> str:
    return ABSENT if ratio is None else f"{ratio.median:.2f} ±{(ratio.high - ratio.low) / 2:.2f}"


def _mebibytes(one: "Measured") -> str:
    return f"{one.peak_bytes / 2**20:,.1f}"


def _growth(found: "Cost") -> str:
    if not found.growth:
        return ""
    rows = [["variant", "part", "time forward", "time training", "memory forward", "memory training"]]
    for arm in found.variants:
        for part in ("block", "mixing"):
            fits = [
                found.exponent(arm.label, part, step, quantity)
                for quantity in ("seconds", "bytes")
                for step in ("forward", "training")
            ]
            if any(fits):
                cells = [
                    ABSENT if fit is None else f"{fit.exponent:.2f} ({fit.low:.2f}, {fit.high:.2f})" for fit in fits
                ]
                rows.append([arm.label, part, *(cell.replace("-", "−") for cell in cells)])
    lengths = [f"{length:,}" for length in found.growth[0].lengths]
    said = f"Exponents p of cost ~ tokens^p, fitted to {len(lengths)} lengths, {lengths[0]} to {lengths[-1]}"
    return f"{said}\n{columns(rows, indent='  ')}"


def _notes(found: "Cost") -> list[str]:
    notes = [
        "training: forward and backward. ±: half the width of the middle half of the turns. MiB: the most held at once "
        "beyond inputs, parameters and their gradients, counted from every allocation."
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
