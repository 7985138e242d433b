"""The same laws on a CUDA device, whose kernels are others."""

import pytest
import torch

from headstock.model.cache import Cache
from headstock.model.transformer import build
from tests.model.cases import SIZES, TIME, Case, close, every_position, some_ids

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-4), (torch.bfloat16, 0.1)], ids=["float32", "bfloat16"])
@every_position
def test_every_path_on_the_device_equals_plain_on_the_cpu(case: Case, dtype: torch.dtype, atol: float) -> None:
    model, ids = case.model(dtype), some_ids()
    real = torch.arange(TIME).expand(3, -1) >= torch.tensor([[0], [4], [TIME]])  # the last row sees nothing
    model.plain = True
    with torch.no_grad():
        whole, padded = model(ids), model(ids, real=real)
        model.plain = False
        model.to("cuda")
        ids, cache = ids.cuda(), Cache(2)
        close(model(ids).cpu(), whole, atol)
        close(model(ids, real=real.cuda()).cpu(), padded, atol)
        pieces = [model(piece, cache=cache).cpu() for piece in ids.split([4, 1, 4], 1)]
        close(torch.cat(pieces, dim=1), whole, atol)


def test_building_leaves_the_devices_generator_as_it_was() -> None:
    before = torch.cuda.get_rng_state()
    build("differential", **SIZES)
    assert torch.equal(torch.cuda.get_rng_state(), before)
