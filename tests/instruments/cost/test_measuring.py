"""A block is measured as it runs: exact bytes, its own kernel, turns of everything, exponents with intervals."""

import json
import math
from typing import Any

import pytest

from headstock.errors import UserError
from headstock.instruments.cost import PARTS, PASSES, Cost, Ratio, cost_by_length, room, turns
from headstock.instruments.cost.expected import stored_once
from headstock.instruments.cost.turns import FEWEST_TURNS
from headstock.model.accounting import parameters
from headstock.model.config import config_of
from headstock.model.mixers import mixer_names
from headstock.model.mixers.base import Mixer

SIZES: dict[str, Any] = {"vocab_size": 1, "context": 256, "d_model": 16, "n_heads": 2}
LENGTHS = (16, 32, 64, 128)
MIB = 2**20


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "SHORTEST_SAMPLE", 1e-6)


def cost(*variants: str, lengths: tuple[int, ...] = LENGTHS, **choices: Any) -> Cost:
    configs = {variant: config_of(variant, **SIZES) for variant in variants}
    return cost_by_length(configs, lengths, **{"seconds": 1e-6, **choices})


@pytest.mark.parametrize("mixer", mixer_names())
def test_every_mixer_is_measured_in_both_parts_and_passes(mixer: str) -> None:
    found = cost(mixer, lengths=(16,))
    has_projections = mixer != "lstm"
    expected = [(part, step) for part in PARTS for step in PASSES if part != "projections" or has_projections]
    assert [(one.part, one.step) for one in found.measured] == expected
    assert all(one.peak_bytes > 0 and len(one.seconds) == FEWEST_TURNS for one in found.measured)
    assert found.variants[0].block_parameters == parameters(config_of(mixer, **SIZES, n_layers=1)).blocks
    block, *parts = (found.at(mixer, 16, part, "training") for part in PARTS)
    assert block is not None
    assert all(part is None or part.peak_bytes < block.peak_bytes for part in parts)
    assert found.variants[0].mixing_is_apart == has_projections


@pytest.mark.parametrize("variant", ["softmax+rope,qk_norm=rmsnorm", "forgetting,feedforward=swiglu", "differential"])
def test_what_is_kept_for_the_backward_pass_is_no_more_than_the_peak(variant: str) -> None:
    for one in cost(variant, lengths=(64,)).measured:
        assert (one.kept_bytes > 0) is (one.step == "training")
        assert one.kept_bytes <= one.peak_bytes


def test_the_projections_of_attention_without_maps_hold_nothing_and_are_measured_all_the_same() -> None:
    bare = "softmax+none,query_key=identity,value_map=identity,output_map=false,feedforward=none"
    found = cost(bare, lengths=(16, 32, 64))
    alone = found.at(bare, 16, "projections", "forward")
    assert alone is not None
    assert alone.peak_bytes == alone.expected_bytes == 0
    assert found.at(bare, 16, "feedforward", "forward") is None
    assert found.exponent(bare, "projections", "forward", "seconds") is not None
    assert found.exponent(bare, "projections", "forward", "bytes") is None
    assert "<svg" in found._repr_html_()


def test_projections_and_the_feed_forward_hold_bytes_in_a_line_with_the_length() -> None:
    found = cost("softmax")
    for part in ("projections", "feedforward"):
        growth = found.exponent("softmax", part, "forward", "bytes")
        assert growth is not None
        assert growth.exponent == pytest.approx(1, abs=0.01)


def test_only_the_parts_that_are_asked_for_are_measured() -> None:
    found = cost("softmax", lengths=(16,), parts=("mixing", "projections"))
    assert list(dict.fromkeys(one.part for one in found.measured)) == ["projections", "mixing"]


def test_bytes_are_the_same_every_time_and_ratios_are_turn_by_turn() -> None:
    first, again = (cost("softmax", "differential") for _ in range(2))
    assert [one.peak_bytes for one in first.measured] == [one.peak_bytes for one in again.measured]
    for one in first.measured:
        assert one.ratio is not None
        assert one.ratio.low <= one.ratio.median <= one.ratio.high
        if one.label == "softmax":
            assert one.ratio == Ratio(1.0, 1.0, 1.0)


def test_the_plain_evaluation_stores_every_weight_and_a_fused_kernel_does_not() -> None:
    plain, fused = (
        cost("softmax", lengths=(256,), plain=plain).at("softmax", 256, "mixing", "forward") for plain in (True, False)
    )
    assert plain is not None
    assert fused is not None
    weights = cost("softmax", lengths=(256,)).weights_bytes["softmax"][256]
    assert weights == 2 * 256 * 256 * 4
    assert plain.peak_bytes > 3 * weights
    assert (plain.kernel, fused.kernel) == ("plain", "fused (flash, CPU)")


def test_the_reference_layer_needs_half_a_mebibyte_of_weights_at_128_tokens_and_two_gibibytes_at_8192() -> None:
    config = config_of("softmax", vocab_size=1, context=8192, d_model=512, n_heads=8)
    assert stored_once(config, 128) == MIB / 2
    assert stored_once(config, 8192) == 2048 * MIB
    assert stored_once(config_of("lstm", vocab_size=1, context=8192), 128) is None


def test_stored_weights_grow_with_the_square_of_the_length() -> None:
    found = cost("softmax", lengths=(32, 64, 128, 256), plain=True)
    growth = found.exponent("softmax", "mixing", "forward", "bytes")
    assert growth is not None
    assert growth.low < growth.exponent < growth.high
    assert growth.exponent == pytest.approx(2, abs=0.1)
    assert growth.lengths == (32, 64, 128, 256)


def test_too_few_lengths_have_no_exponent() -> None:
    assert cost("softmax", lengths=(16, 32)).growth == ()


def test_what_does_not_fit_is_left_out_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_bytes", lambda device: 400_000)
    found = cost("softmax", "uniform", lengths=(16, 250), plain=True)
    assert found.at("softmax", 250, "block", "training") is None
    assert found.at("softmax", 16, "block", "training") is not None
    assert [said.split(":")[0] for said in found.left_out] == [
        "softmax is left out at 250 tokens",
        "uniform is left out at 250 tokens",
    ]
    monkeypatch.setattr(room, "free_bytes", lambda device: 0)
    with pytest.raises(UserError, match="nothing was measured: softmax is left out at 16 tokens"):
        cost("softmax")


@pytest.mark.parametrize(("variant", "free"), [("softmax", 10**8), ("table", 10**7)])
def test_a_table_of_places_that_does_not_fit_is_foreseen_and_the_rest_measured(
    monkeypatch: pytest.MonkeyPatch, variant: str, free: int
) -> None:
    monkeypatch.setattr(room, "free_bytes", lambda device: free)
    config = config_of(variant, **{**SIZES, "context": 10_000_000})
    found = cost_by_length({variant: config}, (16, 10_000_000), seconds=1e-6)
    assert found.at(variant, 16, "block", "training") is not None
    (said,) = found.left_out
    assert said.startswith(f"{variant} is left out at 10,000,000 tokens: it would take some ")


def test_a_width_that_does_not_fit_is_told_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_bytes", lambda device: 2**30)
    config = config_of("softmax", **{**SIZES, "d_model": 1_000_000})
    with pytest.raises(UserError, match="nothing was measured: softmax is left out at 16 tokens: it would take some"):
        cost_by_length({"softmax": config}, (16, 256), seconds=1e-6)


def test_a_mixer_that_does_all_itself_is_measured_whole_and_that_is_said() -> None:
    found = cost(f"{__name__}:Itself", lengths=(16,))
    assert not found.variants[0].mixing_is_apart
    assert found.weights_bytes == {f"{__name__}:Itself": {16: None}}


class Itself(Mixer):
    """Gives back what it reads."""

    weights_are = "none"

    def forward(self, x_bqm: Any, frame: Any) -> Any:
        return x_bqm * 1

    def weights(self, x_bqm: Any, frame: Any) -> Any:
        raise UserError("none.")

    @classmethod
    def sizes(cls, config: Any) -> Any:
        return super().sizes(config)


def test_dropout_of_weights_is_measured_in_training_alone() -> None:
    found = cost("softmax,dropout_attention=0.1", lengths=(16,))
    kernels = {one.step: one.kernel for one in found.measured if one.part == "mixing"}
    assert kernels == {"forward": "fused (flash, CPU)", "training": "plain"}


def test_the_result_is_json() -> None:
    assert json.loads(json.dumps(cost("softmax", lengths=(16,)).to_dict()))["lengths"] == [16]


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"lengths": ()}, "the lengths are none"),
        ({"lengths": (0, 4)}, "the lengths are 0, 4"),
        ({"lengths": (300,)}, "has a context of 256 tokens"),
        ({"batch": 0}, "the batch is 0"),
        ({"parts": ()}, "no part is measured: name one or more of block, projections"),
        ({"parts": ("mixin",)}, "unknown part 'mixin' of a block: did you mean 'mixing'"),
        ({"seconds": 0}, "seconds is 0"),
        ({"seconds": math.nan}, "seconds is nan"),
    ],
)
def test_what_means_nothing_is_refused(choices: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        cost("softmax", **choices)


def test_nothing_to_measure_is_refused() -> None:
    with pytest.raises(UserError, match="nothing is measured"):
        cost_by_length({}, LENGTHS)
