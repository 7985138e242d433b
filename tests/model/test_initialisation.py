"""A model's numbers are a function of (config, seed), shared by the arms of a comparison; no other draw is moved."""

import itertools
import random

import numpy as np
import pytest
import torch
from torch import Tensor

from headstock.model.transformer import build
from tests.model.cases import SIZES, Case, every_case

ARMS = ["softmax", "softmax1", "differential", "uniform", "table", "softmax+rope", "softmax,n_kv_heads=2,tied=true"]


@every_case
def test_a_seed_fixes_every_number_and_another_changes_them(case: Case) -> None:
    one, same, other = (build(case.variant, **{**SIZES, "seed": seed}) for seed in (3, 3, 4))
    for (name, a), b in zip(one.named_parameters(), same.parameters(), strict=True):
        assert torch.equal(a, b), name
    assert not torch.equal(one.embed.weight, other.embed.weight)


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations(ARMS, 2)))
def test_arms_of_one_seed_share_every_number_of_equal_name_and_shape(a: str, b: str) -> None:
    first, second = (dict(build(arm, **SIZES).named_parameters()) for arm in (a, b))
    shared = [name for name in first if name in second and first[name].shape == second[name].shape]
    assert {"embed.weight", "blocks.1.mixer.output.weight", "blocks.1.feedforward.into.weight"} <= set(shared)
    for name in shared:
        assert torch.equal(first[name], second[name]), name


@pytest.mark.parametrize("init", ["fan-in", "gpt2", "torch"])
def test_building_leaves_every_global_generator_as_it_was(init: str) -> None:
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    build("differential", **SIZES, init=init)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before[1:]


def numbers(init: str) -> dict[str, Tensor]:
    variant = f"softmax,init={init},qkv_bias=true,output_bias=true,unembed_bias=true"
    return dict(build(variant, vocab_size=500, context=200, d_model=64, n_layers=8).named_parameters())


def drawn_at(number: Tensor, std: float, name: str) -> None:
    assert number.std().item() == pytest.approx(std, rel=0.05), name
    assert abs(number.mean().item()) < std / 10, name


def inputs(name: str) -> int:
    return 256 if "feedforward.out" in name else 64


@pytest.mark.parametrize("init", ["fan-in", "gpt2"])
def test_norms_start_at_one_and_biases_at_zero(init: str) -> None:
    for name, number in numbers(init).items():
        if name.endswith("bias"):
            assert number.count_nonzero() == 0, name
        elif "norm" in name:
            assert torch.equal(number, torch.ones_like(number)), name


def test_fan_in_draws_maps_by_their_inputs_and_tokens_larger_than_places() -> None:
    for name, number in numbers("fan-in").items():
        if number.ndim == 2:
            std = {"embed.weight": 0.3, "position.weight": 0.02}.get(name, (3 * inputs(name)) ** -0.5)
            drawn_at(number, std, name)


def test_gpt2_draws_at_two_hundredths_and_shrinks_what_goes_into_the_residual() -> None:
    for name, number in numbers("gpt2").items():
        if number.ndim == 2:
            drawn_at(
                number, 0.02 / 4 if name.endswith(("mixer.output.weight", "feedforward.out.weight")) else 0.02, name
            )


def test_torch_init_draws_as_torchs_own_modules_do() -> None:
    for name, number in numbers("torch").items():
        if name in ("embed.weight", "position.weight"):
            drawn_at(number, 1.0, name)
        elif "norm" not in name:
            bound = inputs(name) ** -0.5
            assert 0.85 * bound < number.abs().max().item() <= bound, name
            if number.ndim == 2:
                drawn_at(number, bound / 3**0.5, name)  # a uniform draw


def test_lambda_starts_by_layer_and_is_drawn_at_a_tenth() -> None:
    model = build("differential,n_layers=12,d_head=64", **{**SIZES, "n_layers": 12})
    for layer, block in enumerate(model.blocks):
        mixer = block.mixer
        assert mixer.lambda_init == pytest.approx(0.8 - 0.6 * 2.718281828459045 ** (-0.3 * layer))
        assert torch.equal(mixer.norm.weight, torch.ones(128))
    drawn = torch.cat([p.detach() for name, p in model.named_parameters() if "lambda" in name])
    assert drawn.shape == (12 * 4 * 64,)
    assert drawn.std().item() == pytest.approx(0.1, rel=0.05)
    assert len(drawn.unique()) == len(drawn)
    assert model.blocks[0].mixer.lambda_init == pytest.approx(0.2)
