"""The suite: every check in reading order, and what runs where.

    every check               at every position that the mixer allows, or at the one that the variant names
    those marked dear         at one position, the first of rope, alibi and the others that it allows
    those marked slow         nowhere, unless they are asked for by name
    full=True                 all of them, the dear ones at every position, the slow ones at one

A check that raises has failed, with what was raised as its finding, and the others go on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from headstock.conformance import evaluations, formulas, inner_values, keeping, lookahead, masks, numbers, properties
from headstock.conformance.check import (
    Check,
    Finding,
    NotApplicableError,
    SkippedError,
    check,
    failed,
    passed,
)
from headstock.conformance.report import Outcome, Report
from headstock.conformance.trial import CONTEXT, SIZES, TIME, VOCABULARY, Trial, paths
from headstock.errors import UserError, near_name
from headstock.model.config import POSITIONS, ModelConfig, config_of, parse_variant
from headstock.model.mixers import mixer_class, told_of
from headstock.model.mixers.base import Mixer

PREFERRED = ("rope", "alibi", "learned")
"""Where one position stands for all: those whose places the mixer itself meets first."""


@check(
    "it reads",
    usually="the class cannot be built from (config, layer), `weigh` gives back no weights, or an evaluation raises",
)
def it_reads(trial: Trial) -> Finding:
    """A model of it can be built, and gives finite logits of the right shape, fast and plain."""
    for path, model in paths(trial):
        for time in (TIME, 1):
            logits = model(trial.ids(time=time))
            wanted = (*trial.ids(time=time).shape, trial.config.vocab_size)
            if logits.shape != wanted:
                return failed(f"{path}: logits are {tuple(logits.shape)} instead of {wanted}")
            if not bool(logits.isfinite().all()):
                return failed(f"{path}: a logit of {time} tokens is not finite")
    return passed("finite logits")


CHECKS: Mapping[str, Sequence[Check]] = {
    "Causality": [
        it_reads,
        lookahead.future_moves_nothing,
        lookahead.future_gets_no_gradient,
        lookahead.beginning_reads_the_same,
        lookahead.all_in_sight_is_seen,
    ],
    "Evaluations": [
        evaluations.fast_is_plain,
        evaluations.fast_is_plain_over_blocks,
        evaluations.cached_is_whole,
        evaluations.in_pieces_is_whole,
        evaluations.padded_rows_decode_on,
        evaluations.cache_can_be_read_on_twice,
        evaluations.row_is_free_of_its_batch,
        evaluations.reading_leaves_no_trace,
        evaluations.evaluation_drops_nothing,
        evaluations.dropout_follows_its_draws,
        evaluations.compiled_is_eager,
    ],
    "Masks": [
        masks.padded_left_is_single,
        masks.padded_right_is_single,
        masks.packed_is_separate,
        masks.documents_stay_apart,
        masks.empty_rows_are_zeros,
        masks.window_shows_its_keys,
        masks.both_directions,
        masks.another_sequence,
    ],
    "Claims": [
        properties.weights_are_as_declared,
        properties.hidden_keys_weigh_nothing,
        properties.output_is_what_the_weights_say,
        properties.shuffled_prefix,
        properties.shift_changes_nothing,
        properties.choices_are_read,
        properties.grouped_is_expanded,
        properties.heads_stand_alone,
    ],
    "Inner values": [
        inner_values.looking_moves_nothing,
        inner_values.what_is_written_is_used,
    ],
    "Numbers": [
        numbers.float32_is_near_float64,
        numbers.bfloat16_is_near_float64,
        numbers.extreme_scores_stay_finite,
        numbers.gradients_are_differences,
    ],
    "Formulas": [
        formulas.parameters_are_the_formula,
        formulas.operations_are_the_formula,
        formulas.cache_bytes_are_the_formula,
        formulas.memory_is_linear,
    ],
    "Keeping": [
        keeping.saved_is_loaded,
        keeping.one_seed_makes_one_model,
    ],
}

Listener = Callable[[Outcome, int, int], None]
"""Told of every outcome as it comes, how many there are by then, and how many there will be."""


def check_mixer(
    variant: str, *, only: Sequence[str] | None = None, full: bool = False, on_outcome: Listener | None = None
) -> Report:
    """Run the suite on a mixer: a name, `package.module:Class` or `file.py:Class`, or a variant of one.

    variant: MIXER[+POSITION][,key=value...]. Without a position every one that the mixer allows is tried; sizes that
    are not given are small.
    only: names of checks; all of them where not given.
    full: run what takes a minute too, and what takes seconds at every position.
    on_outcome: called with each outcome, the number done and the number in all.

    Raises UserError where there is no such mixer or check, or the mixer cannot have these sizes.
    """
    given = parse_variant(variant)
    for key in ("vocab_size", "context"):
        if key in given:
            raise UserError(f"{key!r} is not a setting here: the suite chooses its own; leave {key} out.")
    kind = mixer_class(given["mixer"])
    if "position" in given:
        configs = [config_of(variant, **_small(kind))]
    else:
        allowed = [position for position in POSITIONS if position not in kind.refuses]
        configs = [config for position in allowed if (config := _fitting(variant, kind, position)) is not None]
        configs = configs or [config_of(variant, **_small(kind), position=allowed[0])]  # which says what is wrong
    return _report(variant, configs, only, full, on_outcome)


def check_config(
    config: ModelConfig,
    *,
    only: Sequence[str] | None = None,
    full: bool = False,
    on_outcome: Listener | None = None,
) -> Report:
    """Run the suite on one config; its vocabulary and context are taken small, all else as it is.

    Raises UserError for a config that its mixer refuses, one without blocks, or a check that there is not.
    """
    small = ModelConfig(**{**config.model_dump(), "vocab_size": VOCABULARY, "context": CONTEXT})
    return _report(small.variant, [small], only, full, on_outcome)


def usual_position(positions: Sequence[str]) -> str:
    """Give the position that stands for all of those that a mixer allows."""
    return next((position for position in PREFERRED if position in positions), positions[0])


def _small(kind: type[Mixer]) -> dict[str, Any]:
    return {**SIZES, **kind.tried_with}


def _fitting(variant: str, kind: type[Mixer], position: str) -> ModelConfig | None:
    """Give the config at a position; None where a key or the mixer excludes it."""
    try:
        config = config_of(variant, **_small(kind), position=position)
        with told_of(config.mixer):
            mixer_class(config.mixer).check(config)
    except UserError:
        return None
    return config


def check_names() -> list[str]:
    """Give the names of all checks, in reading order."""
    return [item.name for items in CHECKS.values() for item in items]


def _report(
    variant: str,
    configs: Sequence[ModelConfig],
    only: Sequence[str] | None,
    full: bool,
    on_outcome: Listener | None,
) -> Report:
    for name in only or ():
        if name not in check_names():
            raise UserError(f"there is no check {name!r}: {near_name(name, check_names())}")
    for config in configs:
        with told_of(config.mixer):
            mixer_class(config.mixer).check(config)
        if not config.n_layers:
            raise UserError("a model without blocks has no mixer to check: choose n_layers of 1 or more.")
    usual = usual_position([config.position for config in configs])
    plan = [
        (group, item, config)
        for config in configs
        for group, items in CHECKS.items()
        for item in items
        if (only is None or item.name in only or item is it_reads)
        and (config.position == usual or (full and not item.slow) or not item.dear)
    ]
    outcomes: list[Outcome] = []
    unreadable: set[str] = set()
    for group, item, config in plan:
        if config.position in unreadable:
            finding = Finding("skipped", f"{it_reads.name}: no")
        elif item.slow and not full and only is None:
            finding = Finding("skipped", "takes a minute: --full (full=True) runs it")
        else:
            finding = _found(item, config)
        if item is it_reads and finding.status == "failed":
            unreadable.add(config.position)
        usually = item.usually if finding.status == "failed" else ""
        outcomes.append(Outcome(group, item.name, config.position, finding.status, finding.found, item.law, usually))
        if on_outcome is not None:
            on_outcome(outcomes[-1], len(outcomes), len(plan))
    declared = mixer_class(configs[0].mixer).weights_under(configs[0])
    return Report(variant, declared, tuple(config.position for config in configs), tuple(outcomes))


def _found(item: Check, config: ModelConfig) -> Finding:
    """Run one check; torch's generator is left as it was, and no gradient is kept unless it asks for one."""
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad(), told_of(config.mixer):
            torch.manual_seed(0)
            return _looked(item, Trial(config))
    except Exception as error:  # a mixer may raise anything
        said = " ".join(str(error).split()) or "without a word"
        return failed(said if isinstance(error, UserError) else f"{type(error).__name__}: {said}")


def _looked(item: Check, trial: Trial) -> Finding:
    try:
        return item.look(trial)
    except NotApplicableError as reason:
        return Finding("not applicable", str(reason))
    except SkippedError as reason:
        return Finding("skipped", str(reason))
