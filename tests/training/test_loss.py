import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstock.model.transformer import build
from headstock.training import loss
from headstock.training.loss import loss_sum, plain_loss_sum

VARIANTS = ("softmax", "softmax,tied=true", "softmax,unembed_bias=true")


def _gradients(model, function, x, targets, scale=1.0):
    x = x.clone().requires_grad_()
    model.zero_grad()
    value = function(model, x, targets)
    (value * scale).backward()
    return value.detach(), x.grad, {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("variant", VARIANTS)
@given(rows=st.integers(1, 40), chunk=st.integers(1, 400), scale=st.floats(0.01, 100))
def test_the_loss_in_chunks_equals_the_loss_in_one_piece_and_so_do_its_gradients(variant, rows, chunk, scale):
    model = build(variant, vocab_size=13, context=4, d_model=8, n_heads=2, n_layers=1).double()
    x = torch.randn(rows, 8, dtype=torch.float64)
    targets = torch.randint(13, (rows,))
    whole = _gradients(model, plain_loss_sum, x, targets, scale)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss, "CHUNK_NUMBERS", chunk)
        chunked = _gradients(model, loss_sum, x, targets, scale)
    torch.testing.assert_close(chunked, whole, rtol=1e-11, atol=1e-11)


def test_the_chunked_loss_passes_finite_differences():
    model = build("softmax", vocab_size=7, context=4, d_model=4, n_heads=2, n_layers=0).double()
    x = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(7, (5,))
    assert torch.autograd.gradcheck(lambda x: loss_sum(model, x, targets), (x,))


def test_no_gradient_is_worked_out_where_none_is_asked_for():
    model = build("softmax", vocab_size=7, context=4, n_layers=0)
    x = torch.randn(5, 64)
    with torch.no_grad():
        value = loss_sum(model, x, torch.zeros(5, dtype=torch.int64))
    assert not value.requires_grad
    torch.testing.assert_close(value, plain_loss_sum(model, x, torch.zeros(5, dtype=torch.int64)).detach())


def test_a_bfloat16_model_has_its_loss_in_float32():
    model = build("softmax", vocab_size=7, context=4, n_layers=0).bfloat16()
    x = torch.randn(5, 64, dtype=torch.bfloat16, requires_grad=True)
    value = loss_sum(model, x, torch.arange(5))
    value.backward()
    assert value.dtype == torch.float32
    assert x.grad.dtype == torch.bfloat16
