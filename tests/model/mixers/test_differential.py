"""Differential attention's fused call, which other devices than the CPU take, is its plain formula too."""

import pytest
import torch

from headstock.model.heads import Heads
from headstock.model.kernels import kernel_of
from headstock.model.mixers.differential import Differential
from headstock.model.visibility import Visible
from tests.model.cases import BATCH, TIME, Case, close

CPU = torch.device("cpu")
REAL = torch.arange(TIME) >= torch.tensor([[0], [4], [8]])
SEEN = {
    "causal": Visible(TIME, TIME, CPU),
    "after a cache": Visible(4, TIME, CPU),
    "padded": Visible(TIME, TIME, CPU, real_bk=REAL),
    "packed": Visible(TIME, TIME, CPU, document_bk=REAL.long()),
    "window": Visible(TIME, TIME, CPU, window=3),
    "alibi": Visible(TIME, TIME, CPU, slopes_h=torch.tensor([0.5, 0.5, 0.1, 0.1], dtype=torch.float64)),
    "both ways": Visible(TIME, TIME, CPU, causal=False),
}


@pytest.mark.parametrize("key_heads", [4, 2])
@pytest.mark.parametrize("seen", SEEN)
def test_one_fused_call_on_padded_queries_and_keys_is_the_formula(seen: str, key_heads: int) -> None:
    visible = SEEN[seen]
    mixer = Case("d", f"differential,n_kv_heads={key_heads}").model().blocks[0].mixer
    assert isinstance(mixer, Differential)
    sizes = mixer.heads

    def numbers(heads: int, time: int, width: int) -> torch.Tensor:
        return torch.randn(BATCH, heads, time, width, dtype=torch.float64, requires_grad=True)

    q = numbers(sizes.query_heads, visible.n_queries, sizes.key_size)
    k = numbers(sizes.key_heads, TIME, sizes.key_size)
    v = numbers(sizes.value_heads, TIME, sizes.value_size)
    fused = mixer.mix_padded(q, k, v, visible)
    plain = mixer.mix_plainly(Heads(q, k, v, None, visible, torch.empty(BATCH, visible.n_queries, 0)))
    close(fused, plain)
    upstream = torch.randn_like(plain)
    for one, other in zip(*(torch.autograd.grad(z, (q, k, v), upstream) for z in (fused, plain)), strict=True):
        close(one, other)
    assert kernel_of(lambda: mixer.mix_padded(q, k, v, visible)) == "fused (flash, CPU)"
