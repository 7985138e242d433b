"""The kernel that is named is the one that ran."""

import pytest
import torch

from headstock.model.kernels import kernel_that_ran
from headstock.model.transformer import Transformer, build
from tests.model.cases import ONE_A_MIXER, SIZES, Case, averaging, some_ids


def ran(model: Transformer, time: int = 9) -> str:
    return kernel_that_ran(model, some_ids(time=time))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "variant",
    ["softmax", "softmax+rope,n_kv_heads=2", "softmax+alibi", "softmax1", "differential2"],
)
def test_a_fused_mixer_takes_the_fused_kernel(variant: str, dtype: torch.dtype) -> None:
    assert ran(build(variant, **SIZES).to(dtype).eval()) == "fused (flash, CPU)"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("variant", ["differential", "differential+alibi", "differential,n_kv_heads=2,causal=false"])
def test_maps_are_subtracted_block_by_block_and_few_queries_plainly(variant: str, dtype: torch.dtype) -> None:
    model = build(variant, **SIZES | {"context": 40}).to(dtype).eval()
    assert (ran(model, time=40), ran(model, time=9)) == ("blockwise", "plain")


def test_a_uniform_average_runs_along_and_a_table_stores_its_weights() -> None:
    assert ran(build("uniform", **SIZES)) == "running mean"
    assert ran(build("table", **SIZES)) == "plain"


@averaging(ONE_A_MIXER)
def test_a_plain_model_stores_its_weights(case: Case) -> None:
    model = case.model()
    model.plain = True
    assert ran(model) == "plain"


@pytest.mark.parametrize("variant", ["linear", "delta", "retention"])
def test_a_mixer_with_a_state_goes_chunk_by_chunk(variant: str) -> None:
    assert ran(build(variant, **SIZES)) == "chunked"


def test_a_plain_lstm_goes_token_by_token() -> None:
    model = build("lstm", **SIZES)
    assert ran(model) == "torch's LSTM"
    model.plain = True
    assert ran(model) == "recurrent"


@pytest.mark.parametrize("variant", ["softmax", "softmax1", "differential", "uniform"])
def test_attention_dropout_leaves_the_fast_evaluation_and_that_is_said(variant: str) -> None:
    model = build(f"{variant},dropout_attention=0.1", **SIZES | {"context": 40})
    assert ran(model.train(), time=40) == "plain"
    assert ran(model.eval(), time=40) != "plain"


def test_a_model_without_blocks_mixes_by_nothing() -> None:
    assert ran(build("softmax,n_layers=0", **SIZES | {"n_layers": 0})) == "none"
