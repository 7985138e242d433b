"""Closed formulas say what the real thing is: parameters, operations, bytes."""

import pytest
import torch

from headstock.conformance.formulas import counting_operations
from headstock.model.accounting import cache_bytes, flops_per_token, parameters
from headstock.model.cache import Cache
from headstock.model.config import ModelConfig, config_of
from tests.model.cases import BATCH, TIME, Case, every_case, some_ids


@every_case
def test_parameters_are_counted_where_they_stand(case: Case) -> None:
    model, counted = case.model(), parameters(case.config())

    def held(module: torch.nn.Module | None) -> int:
        return 0 if module is None else sum(p.numel() for p in module.parameters())

    assert counted.embedding == held(model.embed)
    assert counted.position == held(model.position)
    assert counted.blocks == held(model.blocks)
    assert counted.final_norm == held(model.final_norm)
    assert counted.unembedding == held(model.unembed)
    assert counted.total == held(model)
    assert counted.non_embedding == held(model.blocks) + held(model.final_norm)


@every_case
def test_operations_are_those_that_torch_counts_in_the_plain_evaluation(case: Case) -> None:
    model = case.model(torch.float32)
    model.plain = True
    with torch.no_grad(), counting_operations() as counter:
        model(some_ids())
    assert counter.get_total_flops() == flops_per_token(case.config(), TIME) * TIME * BATCH


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@every_case
def test_bytes_of_a_cache_are_those_it_holds(case: Case, dtype: torch.dtype) -> None:
    model, cache = case.model(dtype), Cache(case.config().n_layers)
    with torch.no_grad():
        model(some_ids(), cache=cache)
    assert cache.n_bytes == cache_bytes(case.config(), TIME, dtype) * BATCH


def test_gpt2_small_has_its_published_number_of_parameters() -> None:
    counted = parameters(
        config_of(
            "softmax,d_model=768,n_layers=12,n_heads=12,qkv_bias=true,output_bias=true,tied=true",
            vocab_size=50_257,
            context=1_024,
        )
    )
    assert counted.total == 124_439_808
    assert (counted.embedding, counted.position, counted.final_norm) == (38_597_376, 786_432, 1_536)
    assert counted.blocks == 12 * 7_087_872 == 12 * (12 * 768**2 + 13 * 768)


def test_differential_attention_costs_what_softmax_of_the_same_head_size_costs() -> None:
    sizes = {"vocab_size": 50, "context": 32, "d_model": 64}
    softmax, differential = config_of("softmax+rope", **sizes), config_of("differential+rope", **sizes)
    assert parameters(differential).blocks - parameters(softmax).blocks == 2 * (4 + 2) * softmax.d_head
    assert flops_per_token(differential) == flops_per_token(softmax)
    assert cache_bytes(differential) == cache_bytes(softmax)


def test_mixing_is_counted_at_the_context_unless_a_length_is_given() -> None:
    config = ModelConfig(vocab_size=50, context=32)
    assert flops_per_token(config) == flops_per_token(config, 32) > flops_per_token(config, 16)
    assert flops_per_token(config, 33) - flops_per_token(config, 32) == config.n_layers * 2 * 2 * config.d_model


def test_grouped_heads_shrink_the_cache_by_their_group() -> None:
    sizes = {"vocab_size": 50, "context": 32, "d_model": 64, "n_heads": 8}
    whole = cache_bytes(config_of("softmax", **sizes))
    assert whole == 2 * 2 * 64 * 4 * 32  # layers, keys and values, width, bytes, tokens
    assert cache_bytes(config_of("softmax,n_kv_heads=2", **sizes)) == whole // 4
