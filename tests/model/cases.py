"""One table of models that every path must agree on: each mixer with each of its positions, and each other choice once.

One position a mixer is for every day, the others are marked `full`.

Times, heads, head sizes and batches all differ in number, so that an axis taken for another shows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from headstock.conformance.suite import usual_position
from headstock.model.config import POSITIONS, ModelConfig, config_of
from headstock.model.mixers import mixer_class, mixer_names
from headstock.model.transformer import Transformer, build_from

VOCAB, CONTEXT, TIME, BATCH = 17, 12, 9, 3
SIZES = {"vocab_size": VOCAB, "context": CONTEXT, "d_model": 16, "n_layers": 2, "n_heads": 4}


@dataclass(frozen=True)
class Case:
    """A variant with a name."""

    name: str
    variant: str

    def __str__(self) -> str:
        return self.name

    def config(self, **overrides: Any) -> ModelConfig:
        return config_of(self.variant, **{**SIZES, **overrides})

    def model(self, dtype: torch.dtype = torch.float64, **overrides: Any) -> Transformer:
        return stirred(build_from(self.config(**overrides)), dtype).eval()


def stirred(model: Transformer, dtype: torch.dtype = torch.float64, spread: float = 0.3) -> Transformer:
    """Move every number away from where it starts: no weight is 1, no bias 0, no attention nearly uniform."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += spread * torch.randn(parameter.shape, generator=generator)
    return model.to(dtype)


def some_ids(batch: int = BATCH, time: int = TIME, seed: int = 0) -> Tensor:
    return torch.randint(VOCAB, (batch, time), generator=torch.Generator().manual_seed(seed))


def close(actual: Tensor, expected: Tensor, atol: float = 1e-10) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=atol)


MIXERS_WITH_POSITIONS = [
    Case(f"{mixer}-{position}", f"{mixer}+{position}")
    for mixer in mixer_names()
    for position in POSITIONS
    if position not in mixer_class(mixer).refuses
]


def _usual(mixer: str) -> str:
    allowed = [position for position in POSITIONS if position not in mixer_class(mixer).refuses]
    return f"{mixer}-{usual_position(allowed)}"


_NOT_EVERY_DAY = {case.name for case in MIXERS_WITH_POSITIONS} - {_usual(mixer) for mixer in mixer_names()}


def cells(cases: list[Case]) -> list[Any]:
    """Give pytest's parameters, those for no ordinary day marked."""
    full = pytest.mark.full
    return [pytest.param(case, marks=full if case.name in _NOT_EVERY_DAY else (), id=case.name) for case in cases]


CHOICES = [
    Case("grouped-heads", "softmax+rope,n_kv_heads=2"),
    Case("one-key-head", "softmax+alibi,n_kv_heads=1"),
    Case("grouped-softmax1", "softmax1+rope-interleaved,n_kv_heads=2"),
    Case("grouped-differential", "differential+rope,n_heads=8,n_kv_heads=4"),
    Case("grouped-differential-alibi", "differential+alibi,n_heads=8,n_kv_heads=2"),
    Case("grouped-uniform", "uniform,n_kv_heads=2"),
    Case("grouped-table", "table+alibi,n_kv_heads=2"),
    Case("six-heads", "softmax1+alibi,n_heads=6,d_head=2"),
    Case("wide-heads", "differential+rope,d_head=6"),
    Case("biases", "softmax,qkv_bias=true,output_bias=true,unembed_bias=true"),
    Case("biases-differential", "differential,qkv_bias=true,output_bias=true"),
    Case("no-feedforward-bias", "softmax,feedforward_bias=false"),
    Case("shared-query-key", "softmax+rope,query_key=shared,qkv_bias=true"),
    Case("shared-query-key-differential", "differential,query_key=shared"),
    Case("token-as-query-and-key", "softmax,query_key=identity,qkv_bias=true"),
    Case("token-as-query-key-and-value", "softmax,query_key=identity,value_map=identity"),
    Case("window", "softmax+rope,window=4"),
    Case("window-of-one", "softmax,window=1"),
    Case("window-alibi-grouped", "softmax1+alibi,window=3,n_kv_heads=2"),
    Case("window-differential", "differential+rope,window=5"),
    Case("window-uniform", "uniform,window=3"),
    Case("window-table", "table,window=3"),
    Case("window-past-the-context", "softmax+none,window=40"),
    Case("soft-cap", "softmax+rope,soft_cap=0.5"),
    Case("soft-cap-window-differential", "differential+alibi,soft_cap=0.7,window=4"),
    Case("scores-not-scaled", "softmax+rope,scale_scores=false,n_kv_heads=2"),
    Case("qk-norm", "softmax+rope,qk_norm=rmsnorm,n_kv_heads=2"),
    Case("qk-layernorm-differential", "differential+xpos,qk_norm=layernorm"),
    Case("head-norm", "softmax+rope,head_norm=rmsnorm,n_kv_heads=2"),
    Case("no-head-norm", "differential,head_norm=none,lambda_scale=false"),
    Case("lambda-a-head-grouped", "differential+rope,lambdas=head,n_heads=8,n_kv_heads=4"),
    Case("lambda-fixed", "differential+alibi,lambdas=fixed,lambda_init=0.5"),
    Case("lambda-fixed-at-0", "differential+alibi,lambdas=fixed,lambda_init=0,n_heads=8,n_kv_heads=4"),
    Case("grouped-sink-soft-cap", "sink+alibi,n_kv_heads=2,soft_cap=0.5"),
    Case("window-sigmoid", "sigmoid+rope,window=4,n_kv_heads=1"),
    Case("grouped-entmax15", "entmax15+alibi,n_kv_heads=2,qk_norm=rmsnorm"),
    Case("top-three", "topk+rope,k=3,n_kv_heads=2"),
    Case("top-two-of-a-window", "topk+none,k=2,window=4"),
    Case("window-forgetting", "forgetting+rope,window=4,n_kv_heads=2"),
    Case("soft-cap-forgetting", "forgetting+none,soft_cap=0.5,qkv_bias=true"),
    Case("grouped-linear", "linear+learned,n_kv_heads=2,qkv_bias=true"),
    Case("token-as-key-and-value-linear", "linear,query_key=identity,value_map=identity"),
    Case("grouped-delta", "delta+rope,n_kv_heads=2,qkv_bias=true"),
    Case("shared-query-key-delta", "delta+none,query_key=shared,d_head=6"),
    Case("grouped-retention", "retention+xpos,n_kv_heads=2,qk_norm=rmsnorm"),
    Case("wide-lstm", "lstm+none,d_head=6,output_bias=true"),
    Case("lstm-without-output-map", "lstm,output_map=false"),
    Case("no-output-map", "softmax+alibi,output_map=false"),
    Case("bare-average", "uniform+none,n_heads=1,value_map=identity,output_map=false,residual=replacing,norm=none"),
    Case("replacing", "softmax,residual=replacing"),
    Case("post-norm", "softmax,norm_placement=post"),
    Case("post-norm-with-final", "differential+rope,norm_placement=post,final_norm=true,norm=rmsnorm"),
    Case("no-norm", "softmax,norm=none"),
    Case("no-final-norm", "softmax,final_norm=false"),
    Case("rmsnorm-swiglu", "differential+rope,norm=rmsnorm,feedforward=swiglu"),
    Case("swiglu-without-bias", "softmax,feedforward=swiglu,feedforward_bias=false,d_ff=5"),
    Case("relu", "table,feedforward=relu"),
    Case("no-feedforward", "softmax,feedforward=none"),
    Case("tied", "softmax+rope,tied=true"),
    Case("no-blocks", "softmax,n_layers=0"),
    Case("gpt2-init", "softmax,init=gpt2"),
    Case("torch-init", "softmax,init=torch"),
]

CASES = MIXERS_WITH_POSITIONS + CHOICES
ONE_A_MIXER = [Case(mixer, mixer) for mixer in mixer_names()]


def averaging(cases: list[Case]) -> Any:
    """Parametrise by those of the cases whose mixer averages, and so has weights."""
    return pytest.mark.parametrize(
        "case", cells([case for case in cases if mixer_class(case.config().mixer).weights_are != "none"])
    )


every_case: Callable[..., Any] = pytest.mark.parametrize("case", cells(CASES))
every_position: Callable[..., Any] = pytest.mark.parametrize("case", cells(MIXERS_WITH_POSITIONS))
every_mixer: Callable[..., Any] = pytest.mark.parametrize("case", ONE_A_MIXER, ids=str)
both_paths: Callable[..., Any] = pytest.mark.parametrize("plain", [False, True], ids=["fast", "plain"])
