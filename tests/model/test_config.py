"""A config is a value that prints as the variant that makes it; what cannot be is refused, with advice that works."""

import re
from typing import Any, ClassVar

import pydantic
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headstock.errors import UserError
from headstock.model.config import POSITIONS, TOPK_KEYS, ModelConfig, config_of, parse_variant
from headstock.model.frame import Frame
from headstock.model.mixers import mixer_class, mixer_names
from headstock.model.mixers.base import CROSS, KEYS_OF_SOME
from headstock.model.mixers.softmax import Softmax
from headstock.model.transformer import build
from tests.model.any_config import FIELDS, TWO, configs
from tests.model.cases import CASES, Case, every_case


def refusal(make: Any, *args: Any, **values: Any) -> str:
    """Give the sentence with which something is refused."""
    with pytest.raises(UserError) as caught:
        make(*args, **values)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith((".", "?")), sentence
    return sentence


def test_any_config_draws_every_field() -> None:
    assert set(FIELDS) == set(ModelConfig.model_fields)


@settings(max_examples=200)
@given(config=configs())
@example(config=ModelConfig(**TWO, d_model=10, n_heads=4, d_head=2))
def test_a_config_prints_as_the_variant_that_makes_it(config: ModelConfig) -> None:
    again = config_of(config.variant, vocab_size=config.vocab_size, context=config.context)
    assert again == config
    assert hash(again) == hash(config)
    assert again.variant == config.variant
    assert ModelConfig(**config.model_dump()) == config
    assert ModelConfig.model_validate_json(config.model_dump_json()) == config


@every_case
def test_a_case_survives_the_way_to_its_variant_and_back(case: Case) -> None:
    config = case.config()
    assert config_of(config.variant, vocab_size=config.vocab_size, context=config.context) == config


def test_a_variant_says_only_what_is_no_default() -> None:
    assert ModelConfig(**TWO).variant == "softmax"
    assert (
        config_of("differential + alibi".replace(" ", ""), **TWO, n_heads=8).variant == "differential+alibi,n_heads=8"
    )
    assert config_of("softmax,norm_placement=post,feedforward=swiglu", **TWO).variant == (
        "softmax,norm_placement=post,feedforward=swiglu"
    )
    assert config_of("softmax,output_map=false,dropout_residual=0.1", **TWO).variant == (
        "softmax,output_map=false,dropout_residual=0.1"
    )


NEW_KEYS = {
    "causal": [True, False],
    "window": [None, 1, 7],
    "scale_scores": [False, True],
    "soft_cap": [None, 0.5, 50.0],
    "qk_norm": ["none", "layernorm", "rmsnorm"],
    "k": [None, 1, TOPK_KEYS],
    "head_norm": ["own", "none", "rmsnorm"],
    "lambda_init": [None, 0.0, 0.8],
    "lambda_scale": [True, False],
    "lambdas": ["layer", "head", "fixed"],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in NEW_KEYS.items() for value in values])
def test_a_key_is_chosen_and_written_where_it_is_no_default(key: str, value: object) -> None:
    config = ModelConfig(**TWO, mixer="topk", **{key: value})
    default = TOPK_KEYS if key == "k" else ModelConfig.model_fields[key].default
    assert value == default or config.chosen[key] == value
    assert list(config.chosen) == ["vocab_size", "context", "mixer", *([key] if value != default else [])]
    written = str(value).lower() if value is None or isinstance(value, bool) else value
    assert config.variant == ("topk" if value == default else f"topk,{key}={written}")
    assert config_of(f"topk,{key}={written}", **{**TWO, key: NEW_KEYS[key][-1]}) == config


VALUES = {
    "query_key": "shared", "value_map": "identity", "qkv_bias": True, "n_kv_heads": 2, "dropout_attention": 0.1,
    "causal": False, "window": 3, "soft_cap": 2.5, "qk_norm": "rmsnorm", "scale_scores": False,
    "head_norm": "rmsnorm",
}  # fmt: skip
REFUSALS = [(mixer, what) for mixer in mixer_names() for what in mixer_class(mixer).refuses]


@pytest.mark.parametrize(("mixer", "what"), REFUSALS)
def test_what_a_mixer_refuses_is_refused_in_a_sentence_that_names_it(mixer: str, what: str) -> None:
    reason = mixer_class(mixer).refuses[what]
    if what == CROSS:
        model = build(mixer, **TWO, d_model=16)
        x_bqm, frame = torch.zeros(1, 3, 16), Frame.across(torch.zeros(1, 5, 16), 3)
        sentence, said = refusal(model.blocks[0].mixer, x_bqm, frame), "cannot read another sequence"
    elif what in POSITIONS:
        sentence, said = refusal(build, f"{mixer}+{what}", **TWO), f"{mixer} cannot use {what}: {reason}; choose"
        advice = sentence.rpartition("such as ")[2].removesuffix(".")
        build(advice, **TWO)
    else:
        written = str(VALUES[what]).lower() if isinstance(VALUES[what], bool) else VALUES[what]
        said = f"{mixer} cannot use {what}={written}: {reason}; leave {what} out."
        sentence = refusal(build, mixer, **TWO, **{what: VALUES[what]})
        build(mixer, **TWO)
    assert said in sentence
    assert reason in sentence
    assert reason == reason.strip(" .;\n")
    assert "; " not in reason  # the sentence goes on after one
    assert sentence.count(". ") == 0, sentence


@pytest.mark.parametrize("mixer", mixer_names())
def test_k_is_for_the_mixers_that_choose_keys(mixer: str) -> None:
    if "k" in mixer_class(mixer).reads:
        assert build(mixer, **TWO, k=3).blocks[0].mixer.k == 3
        assert build(mixer, **TWO).blocks[0].mixer.k == TOPK_KEYS
    else:
        assert refusal(build, mixer, **TWO, k=3) == f"{mixer} has no use for k=3: it chooses no keys; leave k out."


@pytest.mark.parametrize("mixer", mixer_names())
@pytest.mark.parametrize(("key", "value"), [("lambda_init", 0.5), ("lambda_scale", False), ("lambdas", "head")])
def test_what_is_about_lambda_is_for_the_mixer_that_has_it(mixer: str, key: str, value: object) -> None:
    if key in mixer_class(mixer).reads:
        assert build(mixer, **TWO, **{key: value}).config.chosen[key] == value
    else:
        written = str(value).lower()
        said = f"{mixer} has no use for {key}={written}: {KEYS_OF_SOME[key]}; leave {key} out."
        assert refusal(build, mixer, **TWO, **{key: value}) == said


def test_a_mixer_of_ones_own_may_refuse_every_usual_position() -> None:
    class Turned(Softmax):
        refuses: ClassVar = {"learned": "it turns what it reads", "none": "it turns what it reads"}

    with pytest.raises(UserError, match=r"choose another position, such as .*Turned\+sinusoidal\.$"):
        Turned.check(ModelConfig(**TWO, mixer="own.py:Turned"))


def test_defaults_follow_from_what_is_given() -> None:
    config = ModelConfig(**TWO)
    assert (config.d_model, config.n_layers, config.n_heads, config.n_kv_heads, config.d_head) == (64, 2, 4, 4, 16)
    assert (config.d_ff, config.final_norm, config.norm, config.position) == (256, True, "layernorm", "learned")
    assert config_of("softmax,norm_placement=post", **TWO).final_norm is False
    assert config_of("softmax,feedforward=swiglu,d_model=48", **TWO).d_ff == 128
    assert config_of("softmax,n_heads=8", **TWO).n_kv_heads == 8


def test_a_variants_own_key_holds_over_what_applies_to_all_arms() -> None:
    config = config_of("softmax+rope,n_heads=8", **TWO, n_heads=2, d_model=32, position="alibi")
    assert (config.n_heads, config.d_model, config.position) == (8, 32, "rope")


def test_a_config_is_frozen_hashable_and_compared_by_value() -> None:
    config = ModelConfig(**TWO)
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        config.n_heads = 8
    assert config == ModelConfig(**TWO, n_heads=4)  # a default, given
    assert len({config, ModelConfig(**TWO, n_heads=4), ModelConfig(**TWO, n_heads=8)}) == 2
    assert len({case.config() for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("variant", "sentence"),
    [
        ("softmax,n_head=8", "unknown key 'n_head' in 'softmax,n_head=8': did you mean 'n_heads'?"),
        ("softmax,zzz=8", "unknown key 'zzz' in 'softmax,zzz=8': choose one of causal, context, d_ff"),
        ("softmax+rop", "unknown position 'rop' in 'softmax+rop': did you mean 'rope'?"),
        ("softmax+", "unknown position '' in 'softmax+'"),
        ("softmax,n_heads", "'n_heads' in 'softmax,n_heads' is not key=value"),
        ("softmax,n_heads=", "'n_heads=' in 'softmax,n_heads=' is not key=value"),
        ("softmax,,n_heads=8", "'' in 'softmax,,n_heads=8' is not key=value"),
        ("softmax,n_heads=8,n_heads=4", "'n_heads' is given twice"),
        ("softmax+rope,position=alibi", "'position' is given twice"),
        ("softmax,mixer=uniform", "'mixer' is given twice"),
        ("", "'' names no mixer"),
        ("+rope", "'+rope' names no mixer"),
        (",n_heads=8", "names no mixer"),
    ],
)
def test_a_variant_that_cannot_be_read_is_refused_with_the_near_name(variant: str, sentence: str) -> None:
    assert sentence in refusal(parse_variant, variant)


def test_unknown_names_are_refused_with_the_near_one() -> None:
    assert refusal(ModelConfig, **TWO, n_head=8) == "ModelConfig has no key 'n_head': did you mean 'n_heads'?"
    assert refusal(build, "sofmax", **TWO) == "unknown mixer 'sofmax': did you mean 'softmax'?"
    assert "unknown mixer 'nosuch'" in refusal(build, "nosuch,n_layers=0", **TWO)
    assert f"choose one of {', '.join(sorted(mixer_names()))}." in refusal(build, "zzzzzzzz", **TWO)
    assert "norm='layer' cannot be used: it should be 'none', 'layernorm' or 'rmsnorm'" in refusal(
        config_of, "softmax,norm=layer", **TWO
    )
    assert refusal(ModelConfig, vocab_size=3) == "ModelConfig needs 'context': give it a value."


COUNTS = ["vocab_size", "context", "d_model", "n_heads", "n_kv_heads", "d_head", "d_ff"]


@pytest.mark.parametrize("value", [0, -1, "-3", "many", 2.5])
@pytest.mark.parametrize("key", [*COUNTS, "n_layers"])
def test_a_count_that_is_no_positive_number_is_refused_by_its_name(key: str, value: object) -> None:
    if key == "n_layers" and value == 0:
        assert ModelConfig(**TWO, n_layers=0).n_layers == 0
    else:
        assert refusal(ModelConfig, **{**TWO, key: value}).startswith(f"{key}={value!r} cannot be used: it should be ")


@pytest.mark.parametrize("value", [-0.1, 1.0, 2, float("nan"), "often"])
@pytest.mark.parametrize("place", ["attention", "residual", "embedding"])
def test_a_dropout_that_is_no_probability_below_one_is_refused(place: str, value: object) -> None:
    sentence = refusal(ModelConfig, **TWO, **{f"dropout_{place}": value})
    assert sentence.startswith(f"dropout_{place}={value!r} cannot be used")


@pytest.mark.parametrize("value", [0, -1e-5, float("inf"), float("nan")])
def test_a_norm_needs_an_epsilon_above_zero(value: float) -> None:
    assert refusal(ModelConfig, **TWO, norm_eps=value).startswith(f"norm_eps={value!r} cannot be used")


@given(d_model=st.integers(1, 200), n_heads=st.integers(1, 250), mixer=st.sampled_from(["softmax", "differential"]))
def test_advice_on_the_number_of_heads_can_be_followed(d_model: int, n_heads: int, mixer: str) -> None:
    def refused(heads: int) -> str:
        try:
            build(mixer, **TWO, d_model=d_model, n_heads=heads, n_layers=0)
        except UserError as error:
            return str(error)
        return ""

    sentence = refused(n_heads)
    advice = [int(number) for number in re.findall(r"\d+", sentence.partition("such as")[2])]
    assert bool(advice) is bool(sentence)
    if mixer == "softmax" or d_model % 2 == 0:  # no even number of heads divides an odd width
        assert not advice or not all(refused(heads) for heads in advice)


@pytest.mark.parametrize(
    ("variant", "sentence"),
    [
        ("softmax,n_heads=6", "6 heads but the width is 64: choose a number of heads that divides 64, such as 4 or 8"),
        ("softmax,n_heads=128", "softmax has 128 heads but the width is 64"),
        ("differential,n_heads=1", "maps of head pairs, but n_heads is 1: choose an even number, such as 2."),
        ("differential,n_heads=3,d_head=4", "but n_heads is 3: choose an even number, such as 2."),
        ("differential,n_heads=6,d_head=4,n_kv_heads=3", "but n_kv_heads is 3: choose an even number, such as 2."),
        ("softmax,n_kv_heads=3", "4 query heads cannot share 3 key heads evenly"),
        ("softmax,n_kv_heads=8", "4 query heads cannot share 8 key heads evenly"),
        ("softmax,query_key=identity,d_head=8", "its query and key, so n_heads × d_head must be d_model=64, not 32."),
        ("softmax,value_map=identity,d_head=8", "value_map=identity uses the token as its value"),
        ("softmax,output_map=false,d_head=8", "output_map=false gives the heads' outputs to the residual"),
        ("softmax,n_kv_heads=2,query_key=shared", "n_kv_heads below n_heads needs learned query, key and value maps"),
        ("softmax,n_kv_heads=2,value_map=identity", "n_kv_heads below n_heads needs learned query, key and value maps"),
        ("softmax+rope,d_head=5", "rope turns pairs of numbers, but d_head is 5"),
        ("softmax+rope-interleaved,d_head=5", "rope-interleaved turns pairs of numbers, but d_head is 5"),
        ("softmax,qkv_bias=true,query_key=identity,value_map=identity", "qkv_bias=true has nothing to act on"),
        ("softmax,output_bias=true,output_map=false", "output_bias=true has nothing to act on"),
        ("softmax,tied=true,unembed_bias=true", "a tied unembedding has no bias"),
        ("softmax,window=3,causal=false", "a window looks back, so it needs causal=true: leave window or causal=false"),
        ("softmax+xpos,causal=false", "xpos lets a score fall with the distance back, so ahead it would grow"),
        ("softmax+xpos,d_head=5", "xpos turns pairs of numbers, but d_head is 5"),
        ("softmax,soft_cap=0", "soft_cap='0' cannot be used: it should be greater than 0."),
        ("softmax,soft_cap=inf", "soft_cap='inf' cannot be used: it should be a finite number."),
        ("softmax,soft_cap=1e300", "soft_cap=1e+300 comes near what float32 cannot hold: choose one from 1e-30 to"),
        ("softmax,soft_cap=1e-300", "soft_cap=1e-300 comes near what float32 cannot hold"),
        ("softmax,norm_eps=1e-50", "norm_eps=1e-50 comes near what float32 cannot hold"),
        ("softmax,window=0", "window='0' cannot be used: it should be greater than 0."),
        ("softmax,window=many", "window='many' cannot be used: it should be a valid integer"),
        ("topk,k=0", "k='0' cannot be used: it should be greater than 0."),
        ("softmax,head_norm=layer", "head_norm='layer' cannot be used: it should be 'own', 'none' or 'rmsnorm'."),
        ("differential,lambda_init=1", "lambda_init='1' cannot be used: it should be less than 1."),
        ("differential,lambda_init=-1", "lambda_init='-1' cannot be used: it should be greater than or equal to 0."),
        ("differential,lambdas=pair", "lambdas='pair' cannot be used: it should be 'layer', 'head' or 'fixed'."),
        ("differential,lambda_init=0,lambda_scale=false", "no factor to leave out, for 1 − 0 is 1: leave lambda_scale"),
        ("differential,lambdas=fixed,lambda_init=0,query_key=identity", "choose another query_key than identity."),
        ("softmax,qk_norm=layer", "it should be 'none', 'layernorm' or 'rmsnorm'"),
        ("uniform+rope", "it has no queries and keys to rotate; choose another position, such as uniform+learned."),
        ("uniform+alibi", "uniform cannot use alibi: a penalty on distance would make it another average"),
        ("table+rope-interleaved", "table cannot use rope-interleaved"),
        ("uniform+rope,n_layers=0", "uniform cannot use rope"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_refused_in_a_sentence(variant: str, sentence: str) -> None:
    assert sentence in refusal(build, variant, **TWO)
