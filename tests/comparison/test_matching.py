import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock.comparison.matching import TOLERANCE, matched, sizes, still_differs
from headstock.errors import UserError
from headstock.model.accounting import flops_per_token, parameters
from headstock.model.config import config_of
from headstock.model.transformer import build_from
from tests.comparison.here import MIXERS

SHAPE = {"vocab_size": 40, "context": 32}
VARIANTS = ("softmax", "differential", "uniform", "softmax1+rope", "softmax,n_kv_heads=2", "softmax,feedforward=swiglu")


@given(st.permutations(VARIANTS), st.sampled_from((64, 96, 128)))
def test_matched_arms_have_equal_parameters_without_embeddings_as_torch_counts_them(variants, width):
    configs = [config_of(variant, **SHAPE, d_model=width) for variant in variants]
    made = matched(variants, configs, "params")
    assert made[0] == configs[0]
    counts = []
    for config in made:
        model = build_from(config)
        outside = [model.embed, *([model.position] if model.position else []), model.unembed]
        counts.append(
            sum(p.numel() for p in model.parameters()) - sum(p.numel() for part in outside for p in part.parameters())
        )
    assert max(abs(count - counts[0]) for count in counts) <= TOLERANCE * counts[0]


@pytest.mark.parametrize("variant", VARIANTS[1:])
def test_no_other_width_would_match_better(variant):
    one, other = matched(["softmax", variant], [config_of(v, **SHAPE) for v in ("softmax", variant)], "params")
    goal = parameters(one).non_embedding

    def distance(width):
        return abs(parameters(other.model_copy(update={"d_ff": width})).non_embedding - goal)

    assert distance(other.d_ff) <= min(distance(other.d_ff - 1), distance(other.d_ff + 1))


def test_matching_by_operations_makes_operations_equal():
    configs = matched(VARIANTS, [config_of(variant, **SHAPE) for variant in VARIANTS], "flops")
    counts = [flops_per_token(config) for config in configs]
    assert max(abs(count - counts[0]) for count in counts) <= TOLERANCE * counts[0]


@pytest.mark.parametrize("match", ["none", "time"])
def test_without_matching_of_sizes_nothing_is_changed(match):
    configs = [config_of(variant, **SHAPE) for variant in VARIANTS]
    assert matched(VARIANTS, configs, match) == configs


def test_what_no_feedforward_can_make_equal_is_refused_with_the_figure_and_the_way_out():
    configs = [config_of(f"{mixer},feedforward=none", **SHAPE) for mixer in ("softmax", "uniform")]
    with pytest.raises(UserError, match=r"uniform has 49\.\d% fewer .* choose --match none"):
        matched(["softmax", "uniform"], configs, "params")


def test_what_still_differs_is_said_relative_to_the_baseline():
    said = still_differs(["softmax", "uniform"], [config_of(v, **SHAPE) for v in ("softmax", "uniform")])
    assert said.startswith("still unlike softmax's: ")
    assert "bytes of a full cache (uniform −50.00 %)" in said
    assert still_differs(["a", "b"], [config_of("softmax", **SHAPE)] * 2) == ""


def test_a_mixer_that_trains_more_than_it_says_is_refused():
    with pytest.raises(UserError, match=r"trains \+2 numbers beside what it says"):
        sizes(config_of(f"{MIXERS}:Uncounted", **SHAPE))


@given(st.sampled_from(VARIANTS), st.integers(0, 3), st.booleans())
def test_the_sizes_of_a_config_are_those_of_the_model(variant, n_layers, tied):
    config = config_of(variant, **SHAPE, n_layers=n_layers, tied=tied)
    assert sizes(config).parameters == sum(p.numel() for p in build_from(config).parameters())
