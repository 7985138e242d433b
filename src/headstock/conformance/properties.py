"""What a mixer claims: what its weights are, what order it sees, what its heads share, which choices it reads."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from headstock.conformance.check import (
    Differences,
    Finding,
    NotApplicableError,
    all_finite,
    apart,
    check,
    failed,
    listed,
    passed,
)
from headstock.conformance.trial import BATCH, EMPTY, TIME, WHOLE, Call, Trial, calls, mixers, paths
from headstock.errors import UserError
from headstock.model.attention import shared_by_groups
from headstock.model.config import ROTARY
from headstock.model.frame import Frame
from headstock.model.mixers.base import KEYS_OF_SOME, HeadMixer
from headstock.model.positions import Rotation
from headstock.model.transformer import Transformer

SHIFT = 300
"""Places by which all tokens are moved: past those that bfloat16 can tell apart."""
SUMS_IN_BFLOAT16 = 1e-5
"""How far from 1 the rows of a bfloat16 model may sum: weights are float32 there."""
A_CHANGE = 1e-6
"""Least difference, as a share of the largest logit, that shows that something was read."""


@check(
    "weights are as declared",
    usually="`weights_are` claims something else than `weigh` gives, or the weights are computed in the model's narrow "
    "dtype",
)
def weights_are_as_declared(trial: Trial) -> Finding:
    """Normalised rows sum to 1, none below 0; some signed ones are below; all are finite; none shown where none are."""
    declared = trial.kind.weights_under(trial.config)
    if declared == "none":
        try:
            trial.model().weights(trial.ids())
        except UserError as error:
            return passed(f"refused: {error}")
        return failed('weights are shown, but declared "none"')
    furthest, some_negative = 0.0, False
    for dtype, allowed in ((torch.float64, 1e-10), (torch.bfloat16, SUMS_IN_BFLOAT16)):
        for reading in trial.readings:
            sees_something = trial.sees(reading).any(-1)
            for weights in trial.model(dtype).weights(trial.ids(), **reading.says):
                where = f"{reading.name}, {str(dtype).removeprefix('torch.')}"
                if not all_finite(weights):
                    return failed(f"some are not finite ({where})")
                if weights.dtype not in (torch.float32, torch.float64):
                    return failed(f"they are {str(weights.dtype).removeprefix('torch.')}, not float32 or wider")
                some_negative = some_negative or bool((weights < 0).any())
                if declared != "normalised":
                    continue
                if bool((weights < 0).any()):
                    return failed(f"declared normalised, but one is {float(weights.min()):.2g} ({where})")
                sums = weights.sum(-1).transpose(0, 1)[:, sees_something]
                off = float((sums - 1).abs().max())
                if not off <= allowed:
                    return failed(
                        f"declared normalised, but a row is {off:.1e} from 1, {allowed:.0e} allowed ({where})"
                    )
                furthest = max(furthest, off)
    if declared == "normalised":
        return passed(f"rows sum to 1 within {furthest:.1e}, {SUMS_IN_BFLOAT16:.0e} allowed, none below 0")
    if declared == "signed" and not some_negative:
        return failed("declared signed, but none is below 0")
    return passed(f"{declared}, all finite")


@check(
    "hidden keys weigh 0",
    usually="the mask is applied before something that makes 0 into more, or with a finite constant; write −inf, or "
    "set what is hidden to 0 at the end",
)
def hidden_keys_weigh_nothing(trial: Trial) -> Finding:
    """Every key that a query may not attend to weighs exactly 0, counted by hand, also under extreme scores."""
    trial.needs_weights()
    wrong = []
    for name, model in (("usual scores", trial.model()), ("extreme scores", sharpened(trial))):
        for reading in trial.readings:
            hidden = ~trial.sees(reading)[:, None]
            shown = model.weights(trial.ids(), **reading.says)
            if any(weights.masked_select(hidden.expand_as(weights)).count_nonzero() for weights in shown):
                wrong.append(f"{name}, {reading.name}")
    return failed(f"some weigh more ({listed(wrong)})") if wrong else passed("exactly 0")


def sharpened(trial: Trial, *, plain: bool = True) -> Transformer:
    """Give a model of float32 whose scores are extreme: the mixers' maps are a hundred times as large."""
    model = trial.model(torch.float32, plain=plain)
    with torch.no_grad():
        for mixer in mixers(model):
            for parameter in mixer.parameters():
                if parameter.ndim >= 2:
                    parameter.mul_(1e2)
    return model


@check(
    "output = weights × values",
    usually="`weights` shows another average than `forward` takes: both should come from one function",
)
def output_is_what_the_weights_say(trial: Trial) -> Finding:
    """The weights that are shown, times the values, give what the mixer puts out, plainly."""
    trial.needs_weights()
    differences = Differences()
    for reading in (WHOLE, EMPTY):
        for layer, call in enumerate(calls(trial.model(plain=True), trial.ids(), reading)):
            mixer = call.mixer
            if not isinstance(mixer, HeadMixer):
                raise NotApplicableError("it is no HeadMixer, so only itself knows its values")
            heads = mixer.project(call.x_bqm, call.frame)
            weights = mixer.weights(call.x_bqm, call.frame)
            z = weights @ shared_by_groups(heads.v_bhkd, mixer.heads.output_heads)
            differences.hold(f"{reading.name}, block {layer}", mixer.out(z, heads), call.output_bqm)
    return differences.finding()


@check(
    "a shuffled prefix",
    usually="`sees_order` claims the opposite of what the mixer does",
)
def shuffled_prefix(trial: Trial) -> Finding:
    """Without positions one block cannot tell a shuffled prefix, unless it says that it sees order; then it can."""
    trial = trial.alone().changed(position="none", window=None)
    shuffled = [3, 0, 4, 2, 1, 6, 5, 7, 8]
    ids, kind = trial.ids(), trial.kind
    differences = Differences()
    for path, model in paths(trial):
        first, second = model(ids)[:, -1], model(ids[:, shuffled])[:, -1]
        if kind.sees_order and apart(second, first) < A_CHANGE:
            return failed(f"sees_order is true, but a shuffled prefix changes nothing ({path})")
        differences.hold(path, second, first)
    return passed("it tells one order from another, as it says") if kind.sees_order else differences.finding()


@check(
    "a shift changes nothing",
    usually="a place enters by itself and not by its distance, only queries or only keys are turned, or the angles "
    "are computed in a narrow dtype",
)
def shift_changes_nothing(trial: Trial) -> Finding:
    """With places 300 on for all tokens the mixer gives the same, where positions are relative."""
    position = trial.config.position
    if position not in (*ROTARY, "alibi", "none"):
        raise NotApplicableError(f"{position} positions are no business of the mixer's")
    if trial.kind.sees_order and position not in ROTARY:
        raise NotApplicableError("it sees order by itself and claims nothing of distance")
    differences = Differences(1e-9)
    for path, model in paths(trial):
        for call in calls(model, trial.ids()):
            differences.hold(path, call.mixer(call.x_bqm, _shifted(call, trial)), call.output_bqm)
    return differences.finding()


def _shifted(call: Call, trial: Trial) -> Frame:
    """Give the frame with every place SHIFT further; a mixer with an order of its own keeps its places."""
    config, frame = trial.config, call.frame
    places = torch.arange(TIME) + SHIFT
    if frame.rotation is not None:
        rotation = Rotation.at(places, config.d_head, call.x_bqm.dtype, layout=config.position)
        frame = replace(frame, rotation=rotation)
    if not trial.kind.sees_order:
        frame = replace(frame, visible=replace(frame.visible, places_bk=places))
    return frame


@check(
    "choices are read",
    usually="a key of the config is accepted and has no effect, or has none in the fast evaluation: read it, or name "
    "it in `refuses` with the reason",
)
def choices_are_read(trial: Trial) -> Finding:
    """Position, soft cap, norms, and keys that only some mixers read, each change the logits where not refused.

    So they do in both evaluations, which agree.
    """
    trial = trial.changed(window=None)  # a window of 1 leaves nothing to choose
    choices = _other_choices(trial)
    differences = Differences()
    read, refused, without_effect = [], [], []
    (_, fast), (_, plain) = paths(trial)
    ids = trial.ids()
    for key, other_value in choices.items():
        name = trial.config.position if key == "position" else key
        try:
            other = trial.changed(**{key: other_value})
        except NotApplicableError:
            refused.append(name)
            continue
        (_, other_fast), (_, other_plain) = paths(other)
        differences.hold(f"fast and plain under {key}={other_value}", other_fast(ids), other_plain(ids))
        for path, model, changed in (("fast", fast, other_fast), ("plain", plain, other_plain)):
            if apart(changed(ids), model(ids)) < A_CHANGE:
                without_effect.append(f"{name}, {path}")
        read.append(name)
    if without_effect:
        return failed(f"accepted, but without effect: {listed(without_effect)}")
    if not read:
        raise NotApplicableError(f"refuses {', '.join(refused)}")
    finding = differences.finding()
    if finding.status == "failed":
        return finding
    return passed(f"{', '.join(read)}" + (f"; refused: {', '.join(refused)}" if refused else ""))


def _other_choices(trial: Trial) -> dict[str, object]:
    """Give another value than the config's of each key that is tried, of `KEYS_OF_SOME` where the mixer reads it."""
    config, kind = trial.config, trial.kind
    normed = config.head_norm == "rmsnorm" or (config.head_norm == "own" and kind.norms_heads)
    values: dict[str, tuple[object, ...]] = {
        "soft_cap": (0.3, None),
        "qk_norm": ("rmsnorm", "none"),
        "scale_scores": (False, True),
        "head_norm": ("none",) if normed else ("rmsnorm",),
        "k": (2, 1),
        "lambda_init": (0.4, None),
        "lambda_scale": (False, True),
        "lambdas": ("fixed", "layer"),
        "position": ("none",),
    }
    read = {key: others for key, others in values.items() if key not in KEYS_OF_SOME or key in kind.reads}
    other = {key: [value for value in others if value != getattr(config, key)] for key, others in read.items()}
    return {key: others[0] for key, others in other.items() if others}


@check(
    "grouped = expanded",
    usually="key heads are repeated as a whole (0 1 0 1) and not each in its place (0 0 1 1), or along the wrong axis",
)
def grouped_is_expanded(trial: Trial) -> Finding:
    """Heads that share keys and values give what heads with copies of them give, each group's heads side by side."""
    config = trial.config
    if config.n_kv_heads == config.n_heads:
        trial = trial.changed(n_heads=2 * config.n_heads, n_kv_heads=config.n_heads)
    if trial.kind.numbers_heads:
        return _groups_side_by_side(trial)
    expanded_trial = trial.changed(n_kv_heads=trial.config.n_heads)
    differences = Differences()
    ids = trial.ids()
    for (path, grouped), (_, expanded) in zip(paths(trial), paths(expanded_trial), strict=True):
        _expand(grouped, expanded)
        differences.hold(path, grouped(ids), expanded(ids))
    return differences.finding()


def _groups_side_by_side(trial: Trial) -> Finding:
    """Each value head's map moves the outputs of its own group, whose heads stand side by side, and of no other."""
    for path, model in paths(trial):
        mixer = mixers(model)[0]
        if not isinstance(mixer, HeadMixer) or mixer.value is None:
            raise NotApplicableError("only itself knows how its heads share")
        sizes = mixer.heads
        group = sizes.output_heads // sizes.value_heads
        for head in range(sizes.value_heads):
            moved = _moved(
                model, mixer, trial, mixer.value, slice(head * sizes.value_size, (head + 1) * sizes.value_size)
            )
            expected = list(range(head * group, (head + 1) * group))
            if moved != expected:
                return failed(f"{path}: value head {head} moves heads {moved}, not {expected}")
    return passed("no head copies another, for they are numbered; each value head moves its own group alone")


def _moved(model: Transformer, mixer: HeadMixer, trial: Trial, linear: nn.Linear, rows: slice) -> list[int]:
    """Give the output heads that other rows of a map move."""
    before = _outputs(model, mixer, trial)
    with torch.no_grad():
        linear.weight[rows] += 1.0
    moved = (_outputs(model, mixer, trial) - before).abs().amax((0, 1, 3)) > 1e-9
    return moved.nonzero().flatten().tolist()


def _expand(grouped: Transformer, expanded: Transformer) -> None:
    """Copy all numbers, those of a shared head to each head that reads it."""
    numbers = grouped.state_dict()
    with torch.no_grad():
        for name, parameter in expanded.named_parameters():
            given, part = numbers[name], name.split(".")[-2]
            if given.shape == parameter.shape:
                parameter.copy_(given)
                continue
            mixer = mixers(grouped)[0]
            if not isinstance(mixer, HeadMixer) or part not in ("key", "value", "gate"):
                raise NotApplicableError(f"nobody but itself knows how heads share {name}")
            sizes = mixer.heads
            # Key heads whose maps average one value together stay together.
            together = sizes.key_heads // sizes.value_heads if part == "key" else 1
            width = {"key": sizes.key_size * together, "value": sizes.value_size, "gate": 1}[part]
            split = given.reshape(-1, width, *given.shape[1:])
            factor = parameter.shape[0] // given.shape[0]
            parameter.copy_(split.repeat_interleave(factor, dim=0).reshape(parameter.shape))


@check(
    "heads stand alone",
    usually="a norm or a softmax runs over the axis of heads too; give each head its own, or set `mixes_heads`",
)
def heads_stand_alone(trial: Trial) -> Finding:
    """Another query or value map of one head moves the outputs of that head, or of its group, and of no other."""
    if trial.kind.mixes_heads:
        raise NotApplicableError("it mixes heads, as it says")
    most = 0
    for path, model in paths(trial):
        mixer = mixers(model)[0]
        if not isinstance(mixer, HeadMixer):
            raise NotApplicableError("it is no HeadMixer, so only itself knows its heads")
        sizes = mixer.heads
        maps = [
            (mixer.query, sizes.key_size, 1, "query"),
            (mixer.value, sizes.value_size, sizes.output_heads // sizes.value_heads, "value"),
        ]
        if not any(isinstance(linear, nn.Linear) for linear, *_ in maps):
            raise NotApplicableError("its heads have no maps of their own")
        for linear, width, may_move, what in maps:
            if linear is None:
                continue
            moved = _moved(model, mixer, trial, linear, slice(linear.weight.shape[0] - width, None))
            if len(moved) > may_move:
                return failed(f"{path}: the last head's {what} map moves {len(moved)} heads' outputs, not {may_move}")
            most = max(most, len(moved))
    return passed(f"a head's map moves {most} of {sizes.output_heads} heads at most")


def _outputs(model: Transformer, mixer: HeadMixer, trial: Trial) -> Tensor:
    """Give the first block's outputs a head, before the output map: (batch, query, head, d)."""
    seen: list[Tensor] = []
    place = mixer if mixer.output is None else mixer.output
    with place.register_forward_hook(
        lambda _, given, output: seen.append(output if mixer.output is None else given[0])
    ):
        model(trial.ids())
    return seen[0].detach().reshape(BATCH, TIME, mixer.heads.output_heads, -1)
