"""Any valid config, for hypothesis: a few fields are chosen and the rest follow."""

from collections.abc import Collection
from typing import Any, get_args

from hypothesis import assume
from hypothesis import strategies as st

from headstock.errors import UserError
from headstock.model.config import POSITIONS, ModelConfig
from headstock.model.mixers import mixer_class, mixer_names
from headstock.model.mixers.base import KEYS_OF_SOME

TWO = {"vocab_size": 17, "context": 12}
MIXERS = mixer_names()
ALLOWED = {mixer: [p for p in POSITIONS if p not in mixer_class(mixer).refuses] for mixer in MIXERS}
PROBABILITY = st.floats(0, 1, exclude_max=True)


def choices(field: str) -> Any:
    return st.sampled_from(get_args(ModelConfig.model_fields[field].annotation))


FIELDS = {
    "vocab_size": st.integers(1, 99),
    "context": st.integers(1, 99),
    "mixer": st.sampled_from([*MIXERS, "./my+folder/my_mixer.py:MyMixer", "package.module:Mixer"]),
    "position": st.sampled_from(POSITIONS),
    "d_model": st.integers(1, 40),
    "n_layers": st.integers(0, 4),
    "n_heads": st.integers(1, 8),
    "n_kv_heads": st.integers(1, 8),
    "d_head": st.integers(1, 8),
    "query_key": choices("query_key"),
    "value_map": choices("value_map"),
    "output_map": st.booleans(),
    "qkv_bias": st.booleans(),
    "output_bias": st.booleans(),
    "causal": st.booleans(),
    "window": st.none() | st.integers(1, 14),
    "scale_scores": st.booleans(),
    "soft_cap": st.none() | st.floats(0.1, 50),
    "qk_norm": choices("qk_norm"),
    "k": st.none() | st.integers(1, 14),
    "head_norm": choices("head_norm"),
    "lambda_init": st.none() | st.just(0.0) | st.floats(0.0, 0.99),
    "lambda_scale": st.booleans(),
    "lambdas": choices("lambdas"),
    "norm": choices("norm"),
    "norm_placement": choices("norm_placement"),
    "final_norm": st.booleans(),
    "norm_eps": st.floats(1e-12, 1),
    "feedforward": choices("feedforward"),
    "d_ff": st.integers(1, 200),
    "feedforward_bias": st.booleans(),
    "residual": choices("residual"),
    "tied": st.booleans(),
    "unembed_bias": st.booleans(),
    "dropout_attention": PROBABILITY,
    "dropout_residual": PROBABILITY,
    "dropout_embedding": PROBABILITY,
    "init": choices("init"),
}  # fmt: skip


@st.composite
def configs(draw: st.DrawFn, *, without: Collection[str] = (), **fixed: Any) -> ModelConfig:
    """Any valid config with some fields fixed, and others left as they are without."""
    free = sorted(set(FIELDS) - {"vocab_size", "context", *without, *fixed})
    chosen = draw(st.sets(st.sampled_from(free), max_size=7)) | {"vocab_size", "context"}
    try:
        return ModelConfig(**{field: draw(FIELDS[field]) for field in sorted(chosen - set(fixed))}, **fixed)
    except UserError:
        assume(False)
        raise


@st.composite
def buildable_configs(draw: st.DrawFn) -> ModelConfig:
    """Any small config of a mixer of ours that accepts it."""
    mixer = draw(st.sampled_from(MIXERS))
    position = draw(st.sampled_from(ALLOWED[mixer]))
    width = draw(st.sampled_from([8, 12, 16]))
    kind = mixer_class(mixer)
    without = {*kind.refuses, *(KEYS_OF_SOME.keys() - kind.reads)}
    fixed = {**TWO, "mixer": mixer, "position": position, "d_model": width, "norm_eps": 1e-5, "causal": True}
    config = draw(configs(without=without, **fixed))
    try:
        kind.check(config)
    except UserError:
        assume(False)
    return config
