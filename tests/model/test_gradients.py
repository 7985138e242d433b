"""Every gradient equals a finite difference, in float64, for a tiny model of each mixer."""

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from tests.model.cases import Case, both_paths, every_mixer

IDS = torch.tensor([[0, 3, 1, 4], [2, 2, 0, 1]])
REAL = torch.tensor([[True] * 4, [False, False, True, True]])
DOCUMENTS = torch.tensor([[0, 0, 1, 1], [0] * 4])


@pytest.mark.parametrize("reading", [{}, {"real": REAL}, {"documents": DOCUMENTS}], ids=["whole", "padded", "packed"])
@both_paths
@every_mixer
def test_gradients_are_those_of_finite_differences(case: Case, plain: bool, reading: dict[str, Tensor]) -> None:
    model = case.model(vocab_size=5, context=4, d_model=4, n_heads=2, n_layers=1)
    model.plain = plain
    names = [name for name, _ in model.named_parameters()]

    def logits(*numbers: Tensor) -> Tensor:
        return functional_call(model, dict(zip(names, numbers, strict=True)), (IDS,), reading)

    assert torch.autograd.gradcheck(logits, tuple(model.parameters()), fast_mode=True)


@both_paths
@pytest.mark.parametrize("variant", ["softmax+rope,norm=rmsnorm,feedforward=swiglu,n_kv_heads=1", "softmax1+alibi"])
def test_gradients_through_positions_and_parts_are_those_of_finite_differences(variant: str, plain: bool) -> None:
    test_gradients_are_those_of_finite_differences(Case("parts", variant), plain, {"real": REAL})
