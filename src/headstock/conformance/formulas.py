"""What a mixer says it costs is what it costs: parameters, operations, bytes of the cache, memory."""

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from headstock.conformance.check import Finding, NotApplicableError, check, failed, passed
from headstock.conformance.trial import BATCH, CONTEXT, TIME, Trial
from headstock.instruments.growth import exponent
from headstock.instruments.memory import peak_bytes
from headstock.model.accounting import cache_bytes, flops_per_token, parameters
from headstock.model.cache import Cache

LENGTHS = (512, 1024, 2048)
"""Tokens at which memory is measured: every evaluation by blocks has begun."""
EXPONENT = 1.15
"""Highest power of the length that counts as a line."""


@check(
    "parameters = formula",
    usually="`own_parameters` leaves out what the mixer trains beyond the shell's maps",
)
def parameters_are_the_formula(trial: Trial) -> Finding:
    """The formula of `accounting.parameters` counts what the blocks hold."""
    counted = parameters(trial.config).blocks
    held = sum(parameter.numel() for parameter in trial.model().blocks.parameters())
    return _equal(held, counted, "numbers in the blocks")


@check(
    "operations = formula",
    usually="`mixing_flops` or `own_flops` leaves out a product of the plain evaluation, or counts one too many",
)
def operations_are_the_formula(trial: Trial) -> Finding:
    """The formula of `accounting.flops_per_token` counts what the plain evaluation computes, at two lengths."""
    found = []
    for time in (TIME, CONTEXT):
        model = trial.model(torch.float32, plain=True)
        with counting_operations() as counter:
            model(trial.ids(time=time))
        finding = _equal(
            counter.get_total_flops(),
            flops_per_token(trial.config, time) * time * BATCH,
            f"operations for {time} tokens",
        )
        if finding.status == "failed":
            return finding
        found.append(finding)
    return found[-1]


def counting_operations() -> FlopCounterMode:
    """torch's counter, taught to see triangular solutions: half a square of multiplications a right-hand side."""

    def solving(matrix: torch.Size, right: torch.Size, *_: Any, out_shape: Any, **__: Any) -> int:
        return matrix.numel() * right[-1]

    return FlopCounterMode(display=False, custom_mapping={torch.ops.aten.linalg_solve_triangular: solving})


@check(
    "cache bytes = formula",
    usually="`kept_numbers` or `state_numbers` leaves out what the cache holds, or the state is kept in another dtype",
)
def cache_bytes_are_the_formula(trial: Trial) -> Finding:
    """The formula of `accounting.cache_bytes` counts what the cache holds, in float32 and bfloat16."""
    trial.needs_causal()
    finding = passed("")
    for dtype in (torch.bfloat16, torch.float32):
        for time in (1, TIME):
            model, cache = trial.model(dtype), Cache(trial.config.n_layers)
            model(trial.ids(time=time), cache=cache)
            counted = cache_bytes(trial.config, time, dtype) * BATCH
            what = f"bytes for {time} tokens in {str(dtype).removeprefix('torch.')}"
            finding = _equal(cache.n_bytes, counted, what)
            if finding.status == "failed":
                return finding
    return finding


def _equal(measured: int, counted: int, what: str) -> Finding:
    if measured == counted:
        return passed(f"{measured:,} {what}, as counted")
    return failed(f"{measured:,} {what}, but the formula says {counted:,}")


@check(
    "memory is linear",
    usually="the fast evaluation stores a weight for every pair of tokens; or say that it does, in `memory_is_linear`",
    dear=True,
)
def memory_is_linear(trial: Trial) -> Finding:
    """Training's peak grows in a line with the length, where `memory_is_linear` claims it."""
    trial = trial.alone().changed(context=max(LENGTHS))
    if not trial.kind.memory_is_linear(trial.config):
        raise NotApplicableError("it claims nothing of its memory")
    peaks = []
    for length in LENGTHS:
        model, ids = trial.model(torch.float32), trial.ids(batch=1, time=length)

        def train(model: torch.nn.Module = model, ids: torch.Tensor = ids) -> None:
            with torch.enable_grad():
                model(ids).square().mean().backward()

        peaks.append(peak_bytes(train))
    power = exponent(LENGTHS, peaks)
    said = f"the peak grows with the length to the power {power:.2f}, {EXPONENT} allowed"
    sizes = " → ".join(f"{peak / 1e6:.1f}" for peak in peaks)
    return (passed if power <= EXPONENT else failed)(f"{said} ({sizes} MB)")
