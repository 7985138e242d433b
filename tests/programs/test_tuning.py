"""A compiled model is trained further, and what is frozen of it stays as it is, bit for bit."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import programs as p
from headstock import tasks
from headstock.errors import UserError
from headstock.model.transformer import Transformer
from headstock.programs.belonging import Masks, frozen
from headstock.programs.compiled import Compiled
from headstock.programs.tuning import copy_of, held_still
from headstock.training.config import TrainingConfig
from headstock.training.evaluation import evaluate
from headstock.training.loop import take_step
from headstock.training.optimiser import adamw

SPEC = "program,name=induction,length=6"
HARD = TrainingConfig(steps=5, lr=0.03, weight_decay=0.5, clip=0.1, batch_size=8, evaluate_every=5)
"""Everything that moves weights: a large rate, decay, clipping."""


@pytest.fixture(scope="module")
def induction() -> Compiled:
    return p.compile(p.zoo.induction, max_length=6, causal=True)


@pytest.fixture(scope="module")
def hist() -> Compiled:
    return p.compile(p.width(p.select(p.tokens, p.tokens, "==")).named("times") + p.indices * 0, vocab="ab",
                     max_length=5, causal=True)  # fmt: skip


def changed(before: Transformer, after: Transformer) -> Masks:
    new = after.state_dict()
    return {name: new[name] != old for name, old in before.state_dict().items()}


def line_of(compiled: Compiled, name: str) -> str:
    return next(one.line for one in compiled.record.anatomy.expressions if one.name == name)


def test_what_is_frozen_stays_bit_for_bit_and_the_rest_is_trained(induction: Compiled) -> None:
    before = {name: weight.clone() for name, weight in induction.model.state_dict().items()}
    tuned = p.fine_tune(induction, tasks.parse(SPEC), HARD, freeze=["previous", "unembedding"])
    found = changed(induction.model, tuned)
    size = induction.model.config.d_head
    for name in ("query", "key", "value"):
        assert not found[f"blocks.0.mixer.{name}.weight"][:size].any()
        assert not found[f"blocks.0.mixer.{name}.bias"][:size].any()
        assert found[f"blocks.1.mixer.{name}.weight"].any()
    assert not found["blocks.0.mixer.output.weight"][:, :size].any()
    assert found["blocks.1.mixer.output.weight"].any()
    assert not found["unembed.weight"].any()
    assert found["embed.weight"].any()
    assert all(torch.equal(before[name], weight) for name, weight in induction.model.state_dict().items())


def test_all_but_a_line_trains_that_line_alone(induction: Compiled) -> None:
    tuned = p.fine_tune(induction, tasks.parse(SPEC), HARD, freeze="all but " + line_of(induction, "previous"))
    found = {name for name, moved in changed(induction.model, tuned).items() if moved.any()}
    assert found <= {f"blocks.0.mixer.{name}" for name in ("query.weight", "query.bias", "key.weight", "key.bias",
                                                           "value.weight", "value.bias", "output.weight")}  # fmt: skip
    assert found


def test_units_and_columns_of_the_embedding_belong_to_a_line_too(hist: Compiled) -> None:
    config, masks = hist.model.config, frozen(hist.record.anatomy, hist.model, ["output"])
    used = sum(part.count for part in hist.record.anatomy.units)
    assert used
    for name, mask in (("into.weight", masks["blocks.0.feedforward.into.weight"].all(1)),
                       ("out.weight", masks["blocks.0.feedforward.out.weight"].all(0))):  # fmt: skip
        assert mask.tolist() == [unit < used for unit in range(config.d_ff)], name
    column = next(part.number for part in hist.record.anatomy.columns if part.name == "tokens")
    of_tokens = frozen(hist.record.anatomy, hist.model, ["tokens"])
    assert of_tokens["embed.weight"].any(0).nonzero().flatten().tolist() == [column]
    assert not of_tokens["blocks.0.mixer.query.weight"].any()
    everything = frozen(hist.record.anatomy, hist.model, "embedding")
    assert everything["embed.weight"].all()


@given(st.integers(0, 2**20), st.booleans())
@settings(max_examples=10, deadline=None)
def test_any_entries_can_be_held_still(induction: Compiled, seed: int, clipped: bool) -> None:
    model = copy_of(induction.model)
    draws = torch.Generator().manual_seed(seed)
    held = {name: torch.rand(weight.shape, generator=draws) < 0.5 for name, weight in model.state_dict().items()}
    training = TrainingConfig(**{**HARD.model_dump(), "clip": 0.1 if clipped else None, "seed": seed})
    optimiser = adamw(model, training)
    with held_still(model, optimiser, held):
        for step in range(2):
            take_step(model, tasks.parse(SPEC), training, optimiser, step)
    found = changed(induction.model, model)
    assert not any((found[name] & mask).any() for name, mask in held.items())
    assert any((found[name] & ~mask).any() for name, mask in held.items())
    take_step(model, tasks.parse(SPEC), training, optimiser, 2)  # afterwards nothing is held any more
    found = changed(induction.model, model)
    assert any((found[name] & mask).any() for name, mask in held.items())


def test_clipping_does_not_count_what_is_frozen(induction: Compiled) -> None:
    """With all but one line frozen the step is the same whatever the frozen part's gradient would have been."""
    model, training = copy_of(induction.model), TrainingConfig(steps=1, lr=1e-3, batch_size=4, evaluate_every=1)
    held = frozen(induction.record.anatomy, model, "all but previous")
    batch = tasks.parse(SPEC).batch(seed=0, index=0, size=4)
    optimiser = adamw(model, training)
    with held_still(model, optimiser, held):
        torch.nn.functional.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten()).backward()
        for name, weight in model.named_parameters():
            assert weight.grad is not None
            assert not weight.grad[held[name]].any()


def test_noise_is_relative_to_each_matrix_decided_by_the_seed_and_spares_what_is_frozen(induction: Compiled) -> None:
    training = TrainingConfig(steps=1, lr=1e-30, weight_decay=0, batch_size=4, evaluate_every=1)
    source = tasks.parse(SPEC)
    noisy = p.fine_tune(induction, source, training, noise=0.5, freeze="unembedding")
    again = p.fine_tune(induction, source, training, noise=0.5, freeze="unembedding")
    other = p.fine_tune(induction, source, TrainingConfig(**{**training.model_dump(), "seed": 1}), noise=0.5)
    before, after = induction.model.state_dict(), noisy.state_dict()
    assert torch.equal(before["unembed.weight"], after["unembed.weight"])
    name = "blocks.0.mixer.query.weight"
    share = (after[name] - before[name]).square().mean().sqrt() / before[name].square().mean().sqrt()
    assert 0.3 < share < 0.7
    assert torch.equal(after[name], again.state_dict()[name])
    assert not torch.equal(after[name], other.state_dict()[name])


def test_training_mends_what_noise_broke(induction: Compiled) -> None:
    source = tasks.parse(SPEC)
    broken = p.fine_tune(induction, source, TrainingConfig(steps=1, lr=1e-30, evaluate_every=1), noise=0.2)
    training = TrainingConfig(steps=60, lr=0.003, evaluate_every=60)
    mended = p.fine_tune(induction, source, training, noise=0.2)
    assert evaluate(induction.model, source)["accuracy"] == 1
    assert evaluate(mended, source)["accuracy"] > evaluate(broken, source)["accuracy"] + 0.1


def test_what_moved_is_told_by_line_as_explain_tells_it(induction: Compiled) -> None:
    tuned = p.fine_tune(induction, tasks.parse(SPEC), HARD, freeze=["output"])
    told = p.moved(induction, tuned)
    lines = {part.line for part in told if part.line}
    assert line_of(induction, "previous") in lines
    assert line_of(induction, "output") not in lines
    assert [part.largest for part in told] == sorted((part.largest for part in told), reverse=True)
    assert p.moved(induction, induction.model) == ()
    explained = Compiled(induction.program, induction.built, tuned, induction.readout)
    explained.certificate = induction.certificate
    assert explained.explain("abcab").moved == told


@pytest.mark.parametrize(
    ("freeze", "said"),
    [
        (["previos"], "no expression and no line 'previos': did you mean 'previous'"),
        ("all but previos, output", "no expression and no line 'previos'"),
        (["moving.py:1"], "no expression and no line 'moving.py:1': did you mean 'moving.py"),
        ([""], "no expression and no line ''"),
        (["all but output", "tokens"], "'all but output' says all that is frozen: leave the other names out"),
    ],
)
def test_what_is_no_part_of_the_program_is_refused(induction: Compiled, freeze: str | list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        p.fine_tune(induction, tasks.parse(SPEC), HARD, freeze=freeze)


def test_what_no_weight_belongs_to_is_refused() -> None:
    is_a = (p.tokens == "a").named("is_a")
    answer = p.where(is_a, "x", "y")  # a table of what each token means: is_a has no column of its own
    compiled = p.compile(answer, vocab="ab", max_length=4, causal=True)
    with pytest.raises(UserError, match="no weight belongs to 'is_a': it is folded into what reads it"):
        frozen(compiled.record.anatomy, compiled.model, ["is_a"])


def test_a_source_of_other_tokens_or_longer_rows_is_refused(induction: Compiled) -> None:
    for spec in ("program,name=induction,length=7", "program,name=induction,length=6,vocab=ab"):
        with pytest.raises(UserError, match="make the task program of the same program, vocabulary and length"):
            p.fine_tune(induction, tasks.parse(spec), HARD)
    for noise in (-0.1, math.inf, math.nan):
        with pytest.raises(UserError, match=rf"noise is {noise}: give 0 or more"):
            p.fine_tune(induction, tasks.parse(SPEC), HARD, noise=noise)
    with pytest.raises(UserError, match="the two models have another shape"):
        p.moved(induction, p.compile(p.zoo.hist, max_length=6, causal=True).model)
