"""Patterns are the weights that the model averages with, under the names of the tokens."""

import pytest
import torch

from headstock.errors import UserError
from headstock.instruments.patterns import Patterns, attention_patterns
from headstock.model.mixers import mixer_class
from headstock.model.transformer import build
from tests.model.cases import ONE_A_MIXER, TIME, VOCAB, Case, averaging, close, some_ids

IDS = torch.tensor([[3, 1, 4, 1]])


def softmax(**choices: object) -> object:
    return build("softmax", vocab_size=VOCAB, context=TIME, d_model=8, n_heads=2, **choices)


@averaging(ONE_A_MIXER)
def test_patterns_are_the_models_own_weights_with_what_they_are(case: Case) -> None:
    model, ids = case.model(), some_ids()
    found = attention_patterns(model, ids)
    for ours, theirs in zip(found.weights, model.weights(ids), strict=True):
        close(ours, theirs.detach())
        assert not ours.requires_grad
    assert found.weights_are == mixer_class(case.config().mixer).weights_are
    assert found.labels == tuple(tuple(str(token) for token in row) for row in ids.tolist())


def test_patterns_of_a_padded_row_are_those_of_the_row_alone() -> None:
    model = Case("differential", "differential+rope").model()
    real = torch.tensor([[False] * 2 + [True] * 7])
    padded = attention_patterns(model, some_ids(1), real=real)
    alone = attention_patterns(model, some_ids(1)[:, 2:])
    for ours, theirs in zip(padded.weights, alone.weights, strict=True):
        close(ours[:, :, 2:, 2:], theirs)
        assert not ours[:, :, :2].any()
        assert not ours[..., :2].any()


def test_each_query_predicts_what_stands_next_in_its_own_text() -> None:
    assert attention_patterns(softmax(), IDS, labels=list("abcd")).predicts == (("b", "c", "d", ""),)
    real = torch.tensor([[True, False, True, True]])
    assert attention_patterns(softmax(), IDS, labels=list("abcd"), real=real).predicts == (("c", "", "d", ""),)
    documents = torch.tensor([[0, 0, 1, 1]])
    found = attention_patterns(softmax(), IDS, labels=[list("abcd")], documents=documents)
    assert found.predicts == (("b", "", "d", ""),)
    assert attention_patterns(softmax(causal=False), IDS).predicts == (("", "", "", ""),)


def test_a_uniform_average_draws_as_one_that_spreads_over_half_of_what_there_is() -> None:
    model = build("uniform", vocab_size=VOCAB, context=TIME, d_model=8, n_heads=2)
    drawn = attention_patterns(model, IDS, labels=list("a b\n")).draw(0, 1)
    assert drawn.title == "Layer 0, head 1: a query's weights spread over 2.5 tokens"  # (1 + 2 + 3 + 4) / 4
    assert drawn.table.head[1:] == ["0 a", "1 ␣", "2 b", "3 ↵"]
    assert [row[-1] for row in drawn.table.rows] == ["0", "0", "0", "0.25"]
    assert "mean of 2 heads" in attention_patterns(model, IDS).draw().title


def test_signed_weights_draw_apart() -> None:
    model = build("differential", vocab_size=VOCAB, context=TIME, d_model=8, n_heads=2, n_layers=1)
    found = attention_patterns(model, IDS)
    assert found.weights_are == "signed"
    assert "below" in found.draw(0, 0).caption


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"labels": "abcd"}, "labels are one string"),
        ({"labels": ["a"]}, "1 rows of 1 labels, but ids are 1 rows of 4"),
        ({"labels": [["a"] * 4] * 2}, "2 rows of 4 labels"),
        ({"labels": []}, "0 rows of no labels"),
    ],
)
def test_labels_that_do_not_fit_are_refused(asked: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        attention_patterns(softmax(), IDS, **asked)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"layer": 2}, "there is no layer 2: choose from 0 to 1"),
        ({"head": 2}, "there is no head 2"),
        ({"row": -2}, "there is no row -2"),
    ],
)
def test_what_is_not_there_cannot_be_drawn(asked: dict, said: str) -> None:
    with pytest.raises(UserError, match=said):
        attention_patterns(softmax(), IDS).draw(**asked)


def test_patterns_say_their_shape() -> None:
    assert repr(Patterns((torch.zeros(1, 2, 4, 4),), (("a",) * 4,), "signed")) == (
        "Patterns(1 layers of [1, 2, 4, 4] [batch, head, query, key], signed)"
    )
