from dataclasses import replace
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
import torch

from headstock.errors import UserError
from headstock.programs.blueprint import Blueprint, Head, Layer, Reading, Unit

HEAD = Head("copies", (Reading({"x": 1}),), (Reading({"y": 1}),), (Reading({"x": 1}),), ({"y": 1},))
UNIT = Unit(Reading({"x": 1}), {"y": 1}, "doubles")
WHOLE = Blueprint(
    columns=("x", "y"),
    vocabulary=("a", "b"),
    context=2,
    tokens=({"x": 1}, {"y": 1}),
    places=({}, {"x": 1}),
    layers=(Layer(), Layer((HEAD,), (UNIT,))),
    logits=(Reading({"x": 1}), Reading({"y": 1})),
    causal=True,
)


def _second(**changes):
    return {"layers": (Layer(), replace(WHOLE.layers[1], **changes))}


def _head(**changes):
    return _second(heads=(replace(HEAD, **changes),))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"columns": ()}, "the model has no columns"),
        ({"columns": ("x", "y", "x")}, "column 'x' is named twice"),
        ({"vocabulary": (), "tokens": (), "logits": ()}, "the model has no tokens"),
        ({"context": 0}, "the context is 0"),
        ({"tokens": ({},)}, "2 tokens are named and 1 embeddings given"),
        ({"places": ({},)}, "the context is 2 and 1 positions are given"),
        ({"logits": (Reading({}),)}, "2 tokens are named and 1 logits given"),
        ({"logits": ()}, "2 tokens are named and 0 logits given"),
        ({"tied": True, "logits": (Reading({"x": 1}), Reading({"x": 1}))}, "the logit of 'b' reads something else"),
        ({"tied": True, "logits": (Reading({"x": 1}, 1.0), Reading({"y": 1}))}, "the logit of 'a' reads something"),
        ({"biases": "never"}, "biases is 'never': choose 'always'"),
        ({"d_head": 0}, "d_head is 0: give a whole number, at least 1"),
        ({"tokens": ({"x": 1}, {"z": 1})}, "token 'b' holds column 'z', which is not there: choose one of x, y"),
        ({"places": ({"xx": 1}, {})}, "position 0 holds column 'xx', .* did you mean 'x'"),
        ({"logits": (Reading({"x": 1}), Reading({"z": 1}))}, "the logit of 'b' reads column 'z'"),
        ({"logits": (Reading({}, nan), Reading({}))}, "the logit of 'a' reads the constant nan"),
        (_second(adds={"z": 1}), "the feed-forward of layer 1 adds column 'z'"),
        (_second(attention_adds={"z": 1}), "the attention of layer 1 adds column 'z'"),
        (_second(units=(UNIT, replace(UNIT, reads=Reading({"z": 1})))), r"unit 1 \(doubles\) of layer 1 reads column"),
        (_second(units=(replace(UNIT, writes={"z": 1}, name=""),)), "unit 0 of layer 1 writes column 'z'"),
        (_head(looks_for=()), "head 'copies' of layer 1 looks for 0 numbers and offers 1"),
        (_head(writes=()), "head 'copies' of layer 1 carries 1 number and writes 0"),
        (_head(looks_for=(Reading({"z": 1}),)), "head 'copies' of layer 1 looks for column 'z'"),
        (_head(offers=(Reading({"z": 1}),)), "head 'copies' of layer 1 offers column 'z'"),
        (_head(carries=(Reading({"z": 1}),)), "head 'copies' of layer 1 carries column 'z'"),
        (_head(writes=({"z": 1},)), "head 'copies' of layer 1 writes column 'z'"),
        (_head(writes=({"y": inf},)), "head 'copies' of layer 1 writes column 'y' times inf, which no weight can be"),
        (_head(writes=({"y": 10**400},)), "which no weight can be"),
        (_head(writes=({"y": "1"},)), "writes column 'y' times '1', which is no number"),
        ({"d_head": 1, **_head(carries=HEAD.carries * 2, writes=HEAD.writes * 2)}, "needs 2 numbers but d_head is 1"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_one_sentence_that_says_where(changes, said):
    with pytest.raises(UserError, match=said) as refused:
        replace(WHOLE, **changes)
    assert "\n" not in str(refused.value)


def test_a_refusal_does_not_list_hundreds_of_columns():
    with pytest.raises(UserError, match="name one of the model's 200 columns, or add it to them"):
        replace(WHOLE, columns=("x", "y", *(f"c{index}" for index in range(198))), tokens=({}, {"zzzzz": 1}))


def test_every_kind_of_real_number_can_be_a_weight():
    for weight in (Fraction(1, 2), np.float32(0.5), 0.5):
        model = replace(WHOLE, tokens=({"x": weight}, {"y": True})).build()
        assert model.embed.weight.tolist() == [[0.5, 0], [0, 1]]


def test_a_tied_model_reads_for_its_logits_what_its_embeddings_hold():
    tied = replace(WHOLE, tied=True, logits=())
    assert tied == replace(tied, logits=()) != WHOLE
    assert tied.readings_of_logits == WHOLE.logits
    assert tied.build().unembed is None
    ids = torch.tensor([[0, 1]])
    assert (tied.build()(ids) == WHOLE.build()(ids)).all()


def test_the_same_weights_spelt_with_zeros_may_be_tied():
    assert replace(WHOLE, tied=True, logits=(Reading({"x": 1, "y": 0}), Reading({"y": 1}))).config().tied


def test_columns_layers_heads_and_units_are_added_to_what_is_there():
    wider = WHOLE.with_columns("twice").with_layer()
    wider = wider.with_head(2, Head("itself", (), (), (Reading({"x": 1}),), ({"twice": 2},)))
    wider = wider.with_unit(2, Unit(Reading({"twice": 1}), {"twice": 1}))
    wider = replace(wider, places=None, context=1, logits=(Reading({"twice": 1}), Reading({"y": 1})))
    assert [len(layer.heads) for layer in wider.layers] == [0, 1, 1]
    assert wider.layers[:2] == WHOLE.layers
    assert wider.build()(torch.tensor([[0]]))[0, 0, 0] == 4


def test_what_is_added_to_a_layer_stands_behind_what_was_there():
    more = WHOLE.with_head(1, replace(HEAD, name="later")).with_unit(1, replace(UNIT, name="later"))
    assert [head.name for head in more.layers[1].heads] == ["copies", "later"]
    assert [unit.name for unit in more.layers[1].units] == ["doubles", "later"]


def test_the_old_blueprint_stays_as_it_was():
    before = replace(WHOLE)
    WHOLE.with_head(1, HEAD).with_unit(1, UNIT)
    assert before == WHOLE


@pytest.mark.parametrize("index", [-1, 2])
def test_a_head_cannot_go_into_a_layer_that_is_not_there(index):
    with pytest.raises(UserError, match=rf"there is no layer {index}: the model has layers 0 to 1; add one"):
        WHOLE.with_head(index, HEAD)


def test_a_model_of_no_layers_says_so():
    with pytest.raises(UserError, match="the model has no layers; add one"):
        replace(WHOLE, layers=()).with_unit(0, UNIT)
