import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock.errors import UserError
from headstock.programs.blueprint import Blueprint, Head, Layer, Reading, Unit
from tests.programs.any_blueprint import any_blueprint
from tests.programs.by_columns import logits

SEEDS = st.integers(0, 10_000)


@settings(max_examples=25)
@given(SEEDS)
def test_a_built_model_gives_what_its_blueprint_says_column_by_column(seed):
    blueprint = any_blueprint(seed)
    ids = [(seed + 7 * position) % len(blueprint.vocabulary) for position in range(blueprint.context)]
    model = blueprint.build(torch.float64)
    found = model(torch.tensor([ids]))[0]
    assert torch.allclose(found, torch.tensor(logits(blueprint, ids), dtype=torch.float64), rtol=1e-10, atol=1e-10)


@settings(max_examples=25)
@given(SEEDS)
def test_slots_and_non_zeros_are_those_of_the_model(seed):
    blueprint = any_blueprint(seed)
    numbers = list(blueprint.build(torch.float64).parameters())
    assert blueprint.size().slots == sum(x.numel() for x in numbers)
    assert blueprint.size().nonzero == sum(int(x.count_nonzero()) for x in numbers)
    assert blueprint.size().share == blueprint.size().nonzero / blueprint.size().slots


@settings(max_examples=25)
@given(SEEDS)
def test_biases_are_there_only_where_a_constant_asks_unless_always(seed):
    blueprint = replace(any_blueprint(seed), biases=None)
    biases = [(name, x) for name, x in blueprint.build().named_parameters() if name.endswith("bias")]
    kinds = {name.split(".", 2)[-1].rsplit(".", 2)[0] for name, _ in biases}
    for kind in kinds:  # in some layer each kind of bias holds something
        assert any(x.any() for name, x in biases if kind in name)
    always = replace(blueprint, biases="always").config()
    assert always.qkv_bias
    assert always.output_bias
    assert always.unembed_bias == (not always.tied)


def _scoring(looks: list[float], offers: list[float], d_head: int) -> Blueprint:
    head = Head(
        "scores", tuple(Reading({"x": one}) for one in looks), tuple(Reading({"x": one}) for one in offers), (), ()
    )
    return Blueprint(
        ("x",), ("a",), 2, ({"x": 1},), None, (Layer((head,)),), (Reading({}),), causal=False, d_head=d_head
    )


def _scores(blueprint: Blueprint) -> torch.Tensor:
    name = "blocks.0.attn.hook_attn_scores"
    return blueprint.build().run_with_cache(torch.tensor([[0, 0]]), names=name)[1][name]


@settings(max_examples=25)
@given(st.sampled_from([1, 2, 4, 5, 9, 16, 49, 64]), st.data())
def test_scores_of_whole_numbers_are_whole_numbers_exactly(d_head, data):
    whole = st.lists(st.integers(-200, 200), min_size=1, max_size=min(d_head, 8))
    looks = data.draw(whole)
    offers = data.draw(st.lists(st.integers(-200, 200), min_size=len(looks), max_size=len(looks)))
    expected = sum(a * b for a, b in zip(looks, offers, strict=True))
    assert (_scores(_scoring(looks, offers, d_head)) == expected).all()


@settings(max_examples=25)
@given(st.sampled_from([1, 2, 5, 9, 49]), st.floats(-1e3, 1e3, width=32, allow_subnormal=False))
def test_a_score_of_zero_is_zero_exactly_for_every_size_of_head(d_head, weight):
    assert (_scores(_scoring([0.0], [weight], d_head)) == 0).all()
    if d_head > 1:
        assert (_scores(_scoring([1, -1], [weight, weight], d_head)) == 0).all()


@pytest.mark.parametrize(("numbers", "size"), [(0, 1), (1, 1), (2, 2), (5, 5)])
def test_a_head_is_as_large_as_its_numbers_need(numbers, size):
    head = Head("wide", (), (), (Reading({"x": 1}),) * numbers, ({"x": 1},) * numbers)
    blueprint = Blueprint(("x",), ("a",), 1, ({},), None, (Layer((head,)),), (Reading({}),), causal=True)
    assert blueprint.head_size == blueprint.config().d_head == size


def test_divided_scores_leave_the_weights_as_they_are_written():
    written = _scoring([3.0], [1.0], 4)
    assert (_scores(written) == 3).all()
    divided = replace(written, divide_scores=True)
    assert divided.build().blocks[0].mixer.query.weight[0, 0] == 3
    assert (_scores(divided) == 1.5).all()


def test_a_model_without_units_or_constants_has_no_feedforward_and_one_with_constants_alone_has():
    plain = _scoring([1.0], [1.0], 1)
    assert plain.config().feedforward == "none"
    adding = replace(plain, layers=(replace(plain.layers[0], adds={"x": 2.0}),), logits=(Reading({"x": 1}),))
    assert adding.config().feedforward == "relu"
    assert adding.build()(torch.tensor([[0]])).item() == 3


def test_building_leaves_torchs_generator_as_it_was():
    before = torch.get_rng_state()
    any_blueprint(3).build()
    assert (torch.get_rng_state() == before).all()


def test_a_built_model_is_ready_to_use_and_can_be_trained():
    model = any_blueprint(3).build()
    assert not model.training
    assert all(number.requires_grad and not number.is_meta for number in model.parameters())


@pytest.mark.parametrize(("weight", "spelt"), [(1e-9, "1e-09"), (7e4, "70000")])
def test_a_weight_that_the_dtype_cannot_hold_is_refused(weight, spelt):
    layers = (Layer((), (Unit(Reading({"x": weight}), {"x": 1}),)),)
    blueprint = Blueprint(("x",), ("a",), 1, ({"x": 1},), None, layers, (Reading({"x": 1}),), causal=True)
    assert math.isclose(blueprint.build()(torch.tensor([[0]])).item(), 1 + weight, rel_tol=1e-6)
    with pytest.raises(UserError, match=rf"blocks.0.feedforward.into.weight needs a weight of {spelt}, which float16"):
        blueprint.build(torch.float16)


def test_a_model_of_whole_numbers_is_refused():
    for dtype in (torch.int64, torch.float8_e4m3fn, "float32"):
        with pytest.raises(UserError, match=r"weights cannot be .*: choose torch\.float32"):
            any_blueprint(3).build(dtype)
