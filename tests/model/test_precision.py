"""Narrow dtypes stay close to float64, and what must be wide inside a narrow model is."""

import pytest
import torch

from headstock.model.attention import dot_products
from headstock.model.norms import LayerNorm, RMSNorm
from headstock.model.visibility import Visible
from tests.model.cases import Case, both_paths, close, every_position, some_ids

TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 3e-2}  # of the largest logit
NORMED_SUMS = ("delta", "retention")
"""Their signed sums may nearly cancel, and then the head's norm makes what is left large again, rounding with it."""


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@both_paths
@every_position
def test_a_narrow_model_stays_close_to_float64(case: Case, plain: bool, dtype: torch.dtype) -> None:
    narrow = case.model(dtype)
    exact = case.model()
    exact.load_state_dict(narrow.state_dict())  # the very same numbers
    narrow.plain = plain
    exact.plain = True
    with torch.no_grad():
        expected = exact(some_ids())
        actual = narrow(some_ids())
    assert actual.dtype == dtype
    errors = ((actual.double() - expected) / expected.abs().max()).abs().amax(-1)
    if case.config().mixer in NORMED_SUMS:
        assert errors.quantile(0.9) <= TOLERANCE[dtype]
        assert errors.max() <= 10 * TOLERANCE[dtype]
    else:
        assert errors.max() <= TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_weights_are_float32_in_a_narrow_model(dtype: torch.dtype) -> None:
    for variant in ("uniform", "table", "softmax+alibi", "softmax1+rope", "differential"):
        for weights in Case(variant, variant).model(dtype).weights(some_ids()):
            assert weights.dtype == torch.float32


def test_scores_of_a_narrow_model_are_float32() -> None:
    q = torch.full((1, 1, 1, 64), 255.0, dtype=torch.bfloat16)
    k = torch.full((1, 1, 1, 64), 257.0, dtype=torch.bfloat16)  # 257 itself is no bfloat16; 256 is
    score = dot_products(q, k, Visible(1, 1, torch.device("cpu")))
    assert score.item() == 255 * 256 * 64 / 8  # bfloat16 would round it


@pytest.mark.parametrize("norm", [LayerNorm(300, eps=1e-5), RMSNorm(300, eps=1e-5)], ids=["layernorm", "rmsnorm"])
def test_norms_keep_their_statistics_in_float32(norm: torch.nn.Module) -> None:
    x = 100 + torch.randn(4, 300)
    narrow = norm.to(torch.bfloat16)(x.bfloat16())
    exact = norm.double()(x.bfloat16().double())
    assert narrow.dtype == torch.bfloat16
    close(narrow.double(), exact.bfloat16().double(), atol=1e-6)  # only the result is rounded


def test_a_float16_norm_does_not_overflow_in_its_squares() -> None:
    norm = RMSNorm(8, eps=1e-5).half()
    close(norm(torch.full((1, 8), 1000.0, dtype=torch.float16)).float(), torch.ones(1, 8), atol=1e-3)
