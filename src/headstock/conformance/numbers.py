"""Numbers: narrow dtypes near wide ones, extreme scores finite, gradients those of finite differences."""

from functools import partial

import torch
from torch import Tensor
from torch.func import functional_call

from headstock.conformance.check import Differences, Finding, all_finite, check, failed, listed, passed
from headstock.conformance.properties import sharpened
from headstock.conformance.trial import EMPTY, LEFT, PACKED, WHOLE, Trial, paths
from headstock.model.dropout import seed_from
from headstock.model.transformer import Transformer

LONG = 400
"""Tokens read in narrow dtypes: well past the places that bfloat16 can tell apart."""
NEAR = 0.9
"""Share of the tokens that are looked at, the nearest: where a mixer chooses keys, rounding may choose others."""
IN_FLOAT32, IN_BFLOAT16 = 1e-5, 3e-2
"""Largest difference from float64 allowed, as a share of the largest logit."""
STEP, IN_DIFFERENCES = 1e-6, 1e-5
"""Step of a finite difference, and how far from it a gradient may be, as a share of it where that is above 1."""


@check(
    "float32 is near float64",
    usually="a sum of many numbers, a difference of near ones or a logarithm loses digits",
)
def float32_is_near_float64(trial: Trial) -> Finding:
    """In float32 nine tokens in ten of 400 have logits within 1e-5 of those in float64, each path for itself."""
    return _near_float64(trial, torch.float32, IN_FLOAT32)


@check(
    "bfloat16 is near float64",
    usually="scores, softmax, positions, sums or a state are computed in the model's dtype: `wide` gives float32",
)
def bfloat16_is_near_float64(trial: Trial) -> Finding:
    """In bfloat16 nine tokens in ten of 400 have logits within 3 % of those in float64, each path for itself."""
    return _near_float64(trial, torch.bfloat16, IN_BFLOAT16)


def _near_float64(trial: Trial, dtype: torch.dtype, allowed: float) -> Finding:
    trial = trial.alone().changed(context=LONG)
    ids = trial.ids(batch=2, time=LONG)
    differences = Differences(allowed)
    for path, narrow in paths(trial, dtype):
        exact = trial.model(plain=narrow.plain)
        exact.load_state_dict(narrow.state_dict())  # the very same numbers
        logits, expected = narrow(ids), exact(ids)
        if logits.dtype != dtype:
            return failed(f"{path}: the logits of a model in {dtype} are {logits.dtype}")
        far_bq = (logits.double() - expected).abs().amax(-1) / expected.abs().max()
        nearest = far_bq.flatten().sort().values[: int(NEAR * far_bq.numel())]  # NaN is sorted last
        furthest = nearest.amax() if all_finite(logits) else torch.tensor(torch.nan)
        differences.hold(path, furthest, torch.zeros(()))
    return differences.finding()


@check(
    "extreme scores stay finite",
    usually="an exponential of a positive number, or a logarithm of what has become 0: subtract the maximum first, "
    "use logsigmoid and logsumexp",
)
def extreme_scores_stay_finite(trial: Trial) -> Finding:
    """With maps a hundred times as large, scores ten thousand, weights, logits and gradients are finite in float32."""
    wrong = []
    for path, plain in (("fast", False), ("plain", True)):
        for reading in (WHOLE, EMPTY):
            model = sharpened(trial, plain=plain)
            where = f"{path}, {reading.name}"
            if plain and trial.kind.weights_are != "none":
                wrong += [
                    f"a weight ({where})" for w in model.weights(trial.ids(), **reading.says) if not all_finite(w)
                ]
            with torch.enable_grad():
                logits = model(trial.ids(), **reading.says)
                logits[reading.meant(trial.ids())].square().mean().backward()
            if not all_finite(logits):
                wrong.append(f"a logit ({where})")
            elif not all_finite(*(parameter.grad for parameter in model.parameters())):
                wrong.append(f"a gradient ({where})")
    return failed(f"not finite: {listed(list(dict.fromkeys(wrong)))}") if wrong else passed("all finite")


@check(
    "gradients = differences",
    usually="something is detached, written in place, or has a backward pass of its own that is wrong",
    dear=True,
)
def gradients_are_differences(trial: Trial) -> Finding:
    """Along a random direction of each parameter the gradient is a finite difference, in float64, fast and plain."""
    trial = trial.alone()
    furthest, wrong = 0.0, []
    for path, model in paths(trial):
        with torch.enable_grad():
            _probe(model, trial).backward()  # type: ignore[no-untyped-call]
        for name, parameter in model.named_parameters():
            generator = torch.Generator().manual_seed(seed_from("direction", name))
            direction = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            said = 0.0 if parameter.grad is None else float((parameter.grad * direction).sum())
            step = STEP * direction
            above = _probe(model, trial, name, step)
            below = _probe(model, trial, name, -step)
            found = float(above - below) / (2 * STEP)
            off = abs(said - found) / max(1.0, abs(found))
            if off <= IN_DIFFERENCES:
                furthest = max(furthest, off)
            else:
                wrong.append(f"{path}, {name}: {said:.4g} instead of {found:.4g}")
    if wrong:
        return failed(f"they are not: {listed(wrong)}")
    return passed(f"differ by {furthest:.1e} at most, {IN_DIFFERENCES:.0e} allowed")


def _probe(model: Transformer, trial: Trial, name: str | None = None, step: Tensor | None = None) -> Tensor:
    """Give one number that all logits enter, whole, padded and packed; with one parameter moved by a step."""
    if name is not None and step is not None:
        moved = dict(model.named_parameters())[name] + step
        read = partial(functional_call, model, {name: moved})
    else:
        read = partial(functional_call, model, {})
    total = torch.zeros((), dtype=torch.float64)
    for reading in (WHOLE, LEFT, PACKED):
        logits = read((trial.ids(),), reading.says)[reading.meant(trial.ids())]
        generator = torch.Generator().manual_seed(seed_from("projection", reading.name))
        total = total + (logits * torch.randn(logits.shape, generator=generator, dtype=logits.dtype)).sum()
    return total
