"""The kernel that is named is the one that ran."""

import pytest
import torch

from headstock.model.kernels import kernel_that_ran
from headstock.model.transformer import Transformer, build
from tests.model.cases import SIZES, Case, every_mixer, some_ids


def ran(model: Transformer, time: int = 9) -> str:
    return kernel_that_ran(model, some_ids(time=time))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "variant",
    ["softmax", "softmax+rope,n_kv_heads=2", "softmax+alibi", "softmax1", "differential", "differential+alibi"],
)
def test_a_fused_mixer_takes_the_fused_kernel(variant: str, dtype: torch.dtype) -> None:
    assert ran(build(variant, **SIZES).to(dtype).eval()) == "fused (flash, CPU)"


def test_a_uniform_average_runs_along_and_a_table_stores_its_weights() -> None:
    assert ran(build("uniform", **SIZES)) == "running mean"
    assert ran(build("table", **SIZES)) == "plain"


@every_mixer
def test_a_plain_model_stores_its_weights(case: Case) -> None:
    model = case.model()
    model.plain = True
    assert ran(model) == "plain"


@pytest.mark.parametrize("variant", ["softmax", "softmax1", "differential", "uniform"])
def test_attention_dropout_leaves_the_fast_evaluation_and_that_is_said(variant: str) -> None:
    model = build(f"{variant},dropout_attention=0.1", **SIZES)
    assert ran(model.train()) == "plain"
    assert ran(model.eval()) != "plain"


def test_a_model_without_blocks_mixes_by_nothing() -> None:
    assert ran(build("softmax,n_layers=0", **SIZES | {"n_layers": 0})) == "none"
