"""The formula of memory is held to what was counted: it is a floor, and says by which factor at most it is one."""

from typing import Any

import pytest
import torch

from headstock.errors import UserError
from headstock.instruments.cost import PARTS, PASSES, Part, Pass, expected_bytes
from headstock.instruments.cost.subject import Subject
from headstock.instruments.memory import peak_bytes
from headstock.model.config import config_of
from headstock.model.mixers import mixer_class, mixer_names

SIZES: dict[str, Any] = {"vocab_size": 1, "context": 512, "d_model": 64, "n_heads": 4}
MIXERS = [mixer for mixer in mixer_names() if mixer != "lstm"]
OF_A_FLOOR = 0.94
"""Of the formula: the running mean keeps no values for its backward pass."""


def counted(variant: str, length: int, part: Part, step: Pass, plain: bool, batch: int = 1, **sizes: Any) -> float:
    """Give how many times the formula's bytes were held."""
    config = config_of(variant, **{**SIZES, **sizes})
    subject = Subject(variant, config, plain, torch.device("cpu"))
    way = subject.ways(length, batch, [part])[part]
    run = way.forward if step == "forward" else way.training
    subject.block.train(step == "training")
    run()
    way.let_go()
    return peak_bytes(run) / expected_bytes(config, length, part, step, batch=batch, plain=plain)


@pytest.mark.parametrize("plain", [True, False], ids=["stored", "fast"])
@pytest.mark.parametrize("mixer", MIXERS)
def test_a_block_holds_what_the_formula_says_and_less_than_four_times_as_much(mixer: str, plain: bool) -> None:
    for step in PASSES:
        assert OF_A_FLOOR <= counted(mixer, 320, "block", step, plain) < 3.8, step


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    "options", ["+alibi", "+alibi,window=64", ",window=64", ",causal=false", "+alibi,causal=false", "+alibi,soft_cap=5"]
)
@pytest.mark.parametrize("mixer", MIXERS)
def test_it_is_a_floor_with_penalties_windows_caps_and_both_directions_too(
    mixer: str, options: str, batch: int
) -> None:
    try:
        mixer_class(mixer).check(config_of(mixer + options, **SIZES))
    except UserError as error:
        pytest.skip(f"the mixer refuses these: {error}")
    for step in PASSES:
        for part in ("mixing", "block"):
            assert counted(mixer + options, 320, part, step, plain=False, batch=batch) >= OF_A_FLOOR, (step, part)


@pytest.mark.parametrize("variant", ["softmax+alibi", "softmax1+alibi", "softmax,causal=false", "sigmoid,window=64"])
def test_a_block_with_them_holds_less_than_twice_the_formulas_bytes(variant: str) -> None:
    for step in PASSES:
        assert counted(variant, 512, "block", step, plain=False) < 2, step


@pytest.mark.parametrize("step", PASSES)
@pytest.mark.parametrize("variant", ["softmax", "uniform", "sigmoid", "softmax,norm=rmsnorm"])
def test_a_block_of_plain_attention_holds_the_formulas_bytes_within_a_tenth(variant: str, step: Pass) -> None:
    assert 1 <= counted(variant, 512, "block", step, plain=True) < 1.1


@pytest.mark.parametrize(
    ("part", "step", "most"),
    [
        ("projections", "forward", 1.001),
        ("projections", "training", 1.34),
        ("feedforward", "forward", 1.13),
        ("feedforward", "training", 1.001),
        ("mixing", "forward", 1.06),
        ("mixing", "training", 1.06),
    ],
)
def test_each_part_of_plain_attention_has_a_factor(part: Part, step: Pass, most: float) -> None:
    assert 0.999 <= counted("softmax", 512, part, step, plain=True) < most


@pytest.mark.parametrize("variant", ["softmax+rope,feedforward=swiglu", "softmax,n_kv_heads=1", "linear,qkv_bias=true"])
@pytest.mark.parametrize("part", PARTS)
def test_other_shapes_are_followed(variant: str, part: Part) -> None:
    for step in PASSES:
        assert OF_A_FLOOR <= counted(variant, 320, part, step, plain=False) < 5, step


def test_at_few_tokens_the_gradient_of_a_map_is_what_counts() -> None:
    parts: list[Part] = ["projections", "feedforward"]
    for part in parts:
        assert 0.999 <= counted("softmax", 16, part, "training", plain=True) < 1.34, part


def test_stored_weights_are_the_square_and_all_else_the_line_in_the_formula() -> None:
    config = config_of("softmax", **{**SIZES, "context": 8192})
    stored = [expected_bytes(config, n, "mixing", "forward", plain=True) for n in (2048, 4096)]
    fast = [expected_bytes(config, n, "mixing", "training") for n in (2048, 4096)]
    assert stored[1] == 4 * stored[0] == 4 * 3 * 4 * 2048**2 * 4
    assert fast[1] == 2 * fast[0]


def test_a_batch_is_so_many_times_the_bytes_but_for_one_gradient_of_a_map() -> None:
    config = config_of("softmax", **SIZES)
    one, three = (expected_bytes(config, 512, "block", "forward", batch=n) for n in (1, 3))
    assert three == 3 * one
    one, three = (expected_bytes(config, 512, "block", "training", batch=n) for n in (1, 3))
    assert three == 3 * one - 2 * 64 * 256 * 4


def test_dropout_of_weights_stores_them_in_training_alone() -> None:
    config = config_of("softmax,dropout_attention=0.1", **SIZES)
    free = config_of("softmax", **SIZES)
    forward, training = (expected_bytes(config, 512, "mixing", step) for step in PASSES)
    assert forward == expected_bytes(free, 512, "mixing", "forward")
    assert training > 10 * expected_bytes(free, 512, "mixing", "training")


def test_a_table_counts_the_gradient_of_its_places() -> None:
    long, short = (config_of("table", **{**SIZES, "context": n}) for n in (4096, 512))
    difference = expected_bytes(long, 64, "mixing", "training") - expected_bytes(short, 64, "mixing", "training")
    assert difference == pytest.approx(4 * 4 * (4096**2 - 512**2), rel=0.05)


@pytest.mark.parametrize(("part", "step"), [("blok", "forward"), ("mixing", "backward"), (None, "forward")])
def test_an_unknown_part_or_pass_is_refused(part: Any, step: Any) -> None:
    with pytest.raises(UserError, match=r"there is no ('blok'|'backward'|None) to foresee"):
        expected_bytes(config_of("softmax", **SIZES), 16, part, step)
