"""What holds for the table of cases holds for any config: choices do not only work one at a time."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings

from headstock.conformance.formulas import counting_operations
from headstock.model.accounting import cache_bytes, flops_per_token, parameters
from headstock.model.cache import Cache
from headstock.model.config import ModelConfig
from headstock.model.transformer import build_from
from tests.model.any_config import buildable_configs
from tests.model.cases import BATCH, TIME, close, some_ids, stirred


def hold_every_law(config: ModelConfig) -> None:
    """Paths agree, the future is hidden, and the formulas count what is there."""
    model, ids = stirred(build_from(config)).eval(), some_ids()
    documents = torch.tensor([[0] * 4 + [1] * 5] * BATCH)
    real = torch.arange(TIME).expand(BATCH, -1) >= torch.tensor([[0], [5], [8]])
    cache = Cache(config.n_layers)
    with torch.no_grad():
        fast = model(ids)
        size = max(1.0, fast.abs().max().item())
        model.plain = True
        with counting_operations() as counter:
            plain = model(ids)
        model.plain = False
        close(fast / size, plain / size)
        close(torch.cat([model(piece, cache=cache) for piece in ids.split([3, 1, 5], 1)], dim=1) / size, fast / size)
        close(model(ids[:, :4]) / size, fast[:, :4] / size)
        packed, padded = model(ids, documents=documents), model(ids, real=real)
        close(packed[:, 4:] / size, model(ids[:, 4:]) / size)
        close(padded[1:2, 5:] / size, model(ids[1:2, 5:]) / size)
    assert parameters(config).total == sum(p.numel() for p in model.parameters())
    assert counter.get_total_flops() == flops_per_token(config, TIME) * TIME * BATCH
    assert cache.n_bytes == cache_bytes(config, TIME, torch.float64) * BATCH


@settings(max_examples=25)
@given(config=buildable_configs())
def test_every_law_holds_for_any_config(config: ModelConfig) -> None:
    hold_every_law(config)


@pytest.mark.full
@settings(max_examples=1500, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(config=buildable_configs())
def test_every_law_holds_for_very_many_configs(config: ModelConfig) -> None:
    hold_every_law(config)
