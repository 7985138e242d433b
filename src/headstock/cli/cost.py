"""`headstock cost`: seconds and memory of one block against length."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from headstock.cli.cost_tables import laid_out
from headstock.cli.layout import print_json, results_alone
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
    from headstock.model.config import ModelConfig

DEFAULT_LENGTHS = "256,512,1024,2048"
USUAL = {"d_model": "512", "n_heads": "8"}
FOLLOWS = {
    "mixer": "every variant begins with its own",
    "vocab_size": "no token is looked up or foretold; with --fits, --set vocab_size counts",
    "context": "it follows from --lengths",
    "n_layers": "one block is measured; with --fits, --set n_layers counts",
}
WHOLE = {"n_layers": "2", "vocab_size": "256"}
"""What only the model that is to fit has, and its values where none are given."""


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
        Parameter(help="What is made equal by the width of the feed-forward; FLOPs are those at the longest."),
    ] = "params",
    plain: Annotated[bool, Flag, Parameter(help="Take every mixer's plain evaluation, which stores its weights.")] = (
        False
    ),
    seconds: Annotated[
        float, Parameter(help="How long turns are taken; there are five at the least, however long they take.")
    ] = 60.0,
    fits: Annotated[
        float | None,
        Parameter(
            help="GiB: say the longest sequence that they have room for, of mixing, of a block, and of a whole model "
            "of n_layers=2 and vocab_size=256 or as --set says, with AdamW."
        ),
    ] = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> int:
    """Measure what one block of every variant costs as sequences grow: seconds and memory, forward and in training.

    Everything is measured in turns, float32, with as many threads as torch takes. Memory is counted exactly, beyond
    inputs, parameters and their gradients, and stands beside what has to be held by formula. Parts are projections
    (the maps into heads and out of them), mixing (what lies between) and the feed-forward.
    """
    refuse_settings_among(variants)
    tokens = _tokens(lengths)
    given = settings_of(settings)
    pairs = dict(given)
    if len(pairs) < len(given):
        raise UserError("a setting is given twice: give each key once.")
    whole = {key: pairs.pop(key, WHOLE[key]) for key in WHOLE} if fits is not None else {}
    used = device_named(device)
    if fits is not None and not 0 < fits < 2**40:
        raise UserError(f"--fits is {fits:g}: give the GiB of a memory, such as 8.")
    if fits is not None and len(set(tokens)) < 3:
        raise UserError("--fits reads growth off three lengths or more: give --lengths such as 256,512,1024.")

    from headstock.instruments.cost import cost_by_length, longest_that_fits

    with CostProgress() as watch, results_alone():
        configs = _configs(variants, pairs, max(tokens), match)
        models = {label: _whole_model(config, whole) for label, config in configs.items()}
        found = cost_by_length(configs, tokens, batch=batch, plain=plain, seconds=seconds, device=used, watch=watch)
        fitting = None if fits is None else longest_that_fits(found, models, fits * 2**30)
    if as_json:
        said = (
            {} if fitting is None else {"memory_gib": fits, **_sizes(models), "fits": [asdict(one) for one in fitting]}
        )
        print_json({"match": match, **found.to_dict(), **said})
    else:
        print(laid_out(found, match, fitting, fits, _sizes(models)))
    return 0


def _whole_model(config: "ModelConfig", whole: dict[str, str]) -> "ModelConfig":
    """Give the config of the model that is to fit; as it is where there is none."""
    return type(config)(**{**config.model_dump(), **whole})


def _sizes(models: "dict[str, ModelConfig]") -> dict[str, int]:
    """Give what all whole models share beside what is measured of them."""
    model = next(iter(models.values()))
    return {key: getattr(model, key) for key in WHOLE}


def _tokens(lengths: str) -> list[int]:
    written = [part.strip() for part in lengths.split(",")]
    if not all(part.isdecimal() and 0 < int(part) < 2**31 for part in written):
        raise UserError(f"--lengths is {lengths!r}: give numbers of tokens with commas between, such as 256,512.")
    return [int(part) for part in written]


def _configs(
    variants: Sequence[str], pairs: dict[str, str], longest: int, match: Literal["params", "flops", "none"]
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
    for key in (*own, *pairs):
        if key in FOLLOWS:
            raise UserError(f"{key!r} is not a setting here: {FOLLOWS[key]}.")
        if key not in ModelConfig.model_fields:
            raise UserError(f"unknown setting {key!r}: {near_name(key, set(ModelConfig.model_fields) - set(FOLLOWS))}")
    shared: dict[str, Any] = {**USUAL, **pairs, "vocab_size": 1, "context": longest, "n_layers": 1}
    labels = labels_of(variants)
    configs = [config_of(variant, **shared) for variant in variants]
    for config in configs:
        with told_of(config.mixer):
            mixer_class(config.mixer).check(config)
            sizes(config)
    return dict(zip(labels, matched(labels, configs, match), strict=True))
