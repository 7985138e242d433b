"""The models whose hooks are held to their promises, and hook functions that tests share."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from headstock.model.activations import Activations
from headstock.model.hooks import HookPoint
from headstock.model.mixers import mixer_class, mixer_names
from headstock.model.transformer import Transformer
from tests.model.cases import CASES, MIXERS_WITH_POSITIONS, Case, cells, some_ids

BOTH_WAYS = [
    Case(f"both-ways-{mixer}", f"{mixer},causal=false")
    for mixer in mixer_names()
    if "causal" not in mixer_class(mixer).refuses
]
MORE = [
    Case("post-norm-replacing", "softmax,norm_placement=post,residual=replacing"),
    Case("post-norm-no-feedforward", "softmax1+rope,norm_placement=post,feedforward=none"),
    Case("every-name-one-tensor", "softmax+none,norm=none,query_key=identity,value_map=identity,feedforward=none"),
    Case("both-ways-no-position", "softmax+none,causal=false,n_kv_heads=1"),
]
HOOKED = [*CASES, *BOTH_WAYS, *MORE]
TELLING = (
    "grouped-heads", "grouped-differential", "biases", "shared-query-key", "token-as-query-key-and-value", "window",
    "window-of-one", "soft-cap", "qk-norm", "no-output-map", "bare-average", "replacing", "post-norm", "no-norm",
    "rmsnorm-swiglu", "no-feedforward", "tied", "both-ways-softmax", "both-ways-linear", "grouped-delta",
)  # fmt: skip
"""Beside one case a mixer, those that differ in what there is to see; the others are for no ordinary day."""


def hooked(cases: list[Case]) -> list[Any]:
    """Give pytest's parameters, those for no ordinary day marked."""
    every_day = [*MIXERS_WITH_POSITIONS, *MORE, *(case for case in HOOKED if case.name in TELLING)]
    rare = [case for case in cases if case not in every_day]
    return [
        *cells([case for case in cases if case in every_day]),
        *(pytest.param(case, marks=pytest.mark.full, id=case.name) for case in rare),
    ]


every_hooked_case: Callable[..., Any] = pytest.mark.parametrize("case", hooked(HOOKED))
PER_PAIR_OF_TOKENS = ("attn_scores", "attn_scores_1", "attn_scores_2", "pattern", "pattern_1", "pattern_2")


def short(name: str) -> str:
    return name.rpartition(".")[2].removeprefix("hook_")


def moved(value: Tensor, hook: HookPoint) -> Tensor:
    """Another value of the same size, the same one every time."""
    generator = torch.Generator().manual_seed(len(hook.name))
    noise = torch.rand(value.shape, generator=generator, dtype=value.dtype)
    return value * (0.5 + noise) + 0.1 * noise


def zeroed(value: Tensor, hook: HookPoint) -> None:
    """Zero in place."""
    value.zero_()


def read(value: Tensor, hook: HookPoint) -> None:
    """Look and leave."""


def everything(model: Transformer, ids: Tensor | None = None, **reading: Any) -> tuple[Tensor, Activations]:
    with torch.no_grad():
        return model.run_with_cache(some_ids() if ids is None else ids, **reading)
