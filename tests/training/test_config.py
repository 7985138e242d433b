import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstock.errors import UserError
from headstock.model.config import ModelConfig
from headstock.model.transformer import build
from headstock.training.config import TrainingConfig
from headstock.training.optimiser import adamw


def test_a_warm_up_rises_in_a_line_and_a_cosine_falls_to_its_share():
    config = TrainingConfig(steps=101, lr=1.0, warmup_steps=10, schedule="cosine", final_lr_fraction=0.1)
    rates = [config.lr_at(step) for step in range(101)]
    assert rates[0] == pytest.approx(1 / 11)
    assert rates[9] == pytest.approx(10 / 11)
    assert rates[10] == 1.0
    assert rates[100] == pytest.approx(0.1)
    assert rates[10:] == sorted(rates[10:], reverse=True)


@given(steps=st.integers(1, 500), every=st.integers(1, 500))
def test_the_last_step_is_always_evaluated_and_never_twice(steps, every):
    config = TrainingConfig(steps=steps, evaluate_every=every)
    evaluated = [step for step in range(steps + 1) if config.evaluates_after(step)]
    assert evaluated[-1] == steps
    assert len(evaluated) == math.ceil(steps / every)


@pytest.mark.parametrize(
    ("key", "value"),
    [("steps", 0), ("steps", -1), ("lr", 0), ("lr", -1.0), ("lr", math.nan), ("batch_size", 0), ("clip", 0),
     ("seed", -1), ("threads", 0), ("weight_decay", -0.1), ("beta1", 1.0), ("evaluate_every", 0),
     ("schedule", "linear")],
)  # fmt: skip
def test_a_value_outside_its_range_is_refused_in_a_sentence_that_names_it(key, value):
    with pytest.raises(UserError, match=f"^{key}={value!r} cannot be used: it should be .*[.]$"):
        TrainingConfig(**{"steps": 5, key: value})


def test_an_unknown_key_is_refused_with_the_near_one():
    with pytest.raises(UserError, match="did you mean 'weight_decay'"):
        TrainingConfig(steps=5, wieght_decay=0.1)


def test_a_warm_up_as_long_as_the_run_is_refused():
    with pytest.raises(UserError, match="leaves none of the 5 steps"):
        TrainingConfig(steps=5, warmup_steps=5)


def test_no_key_belongs_to_both_configs_so_that_set_is_never_ambiguous():
    assert not set(ModelConfig.model_fields) & set(TrainingConfig.model_fields)


def test_only_matrices_decay_and_every_parameter_is_trained_once():
    model = build("differential,norm=rmsnorm", vocab_size=5, context=4)
    groups = adamw(model, TrainingConfig(steps=1, weight_decay=0.3)).param_groups
    decays = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    assert len(decays) == sum(len(group["params"]) for group in groups) == len(list(model.parameters()))
    for name, parameter in model.named_parameters():
        is_vector = parameter.ndim == 1
        assert decays[id(parameter)] == (0.0 if is_vector else 0.3), name
    assert decays[id(model.blocks[0].mixer.lambda_q1)] == 0.0
    of_heads = build("differential,lambdas=head", vocab_size=5, context=4)
    undecayed = {id(p) for p in adamw(of_heads, TrainingConfig(steps=1)).param_groups[1]["params"]}
    assert id(of_heads.blocks[0].mixer.lambda_q1) in undecayed
