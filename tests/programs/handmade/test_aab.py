"""Every figure of REFERENCE B1 that is about the model; those about its cost are in test_costs."""

from itertools import product

import pytest
import torch

from headstock.model.accounting import parameters
from headstock.programs.handmade import aab


@pytest.fixture(scope="module")
def model():
    return aab.model()


def _ids(text):
    return torch.tensor([["ab".index(token) for token in text]])


def _text(ids_bq):
    return "".join("ab"[token] for token in ids_bq[0].tolist())


def test_it_has_context_5_two_tokens_width_8_and_one_head_without_norm_and_feedforward(model):
    config = model.config
    assert (config.context, config.vocab_size, config.d_model, config.n_layers, config.n_heads) == (5, 2, 8, 1, 1)
    assert (config.norm, config.feedforward, config.tied, config.scale_scores) == ("none", "none", True, True)


def test_it_has_344_weights_of_which_26_are_not_0(model):
    mixer = model.blocks[0].mixer
    maps = [mixer.query, mixer.key, mixer.value]
    assert tuple(model.embed.weight.shape) == (2, 8)
    assert tuple(model.position.weight.shape) == (5, 8)
    assert sum(one.weight.numel() for one in maps) == 8 * 24
    assert sum(one.bias.numel() for one in maps) == 24
    assert tuple(mixer.output.weight.shape) == (8, 8)
    assert tuple(mixer.output.bias.shape) == (8,)
    assert parameters(model.config).total == sum(x.numel() for x in model.parameters()) == 344
    assert sum(int(x.count_nonzero()) for x in model.parameters()) == 26
    assert (aab.blueprint().size().slots, aab.blueprint().size().nonzero) == (344, 26)


@pytest.mark.parametrize(
    ("prompt", "continued"),
    [
        ("a", "baabaabaab"),
        ("ba", "abaabaabaa"),
        ("abaab", "aabaabaaba"),
        ("ababa", "abaabaabaa"),
        ("bbbbb", "aabaabaaba"),
    ],
)
def test_it_completes_by_ten_tokens_as_published(model, prompt, continued):
    found = model.generate(_ids(prompt), max_new_tokens=10, temperature=0.0, overflow="slide")
    assert _text(found) == prompt + continued


def test_it_foretells_27_of_27_tokens_of_aab_ten_times(model):
    text = "aab" * 10
    right = [
        model(_ids(text[:length][-5:]))[0, -1].argmax() == "ab".index(text[length]) for length in range(2, 29)
    ]  # after fewer than two tokens nobody could know
    assert (sum(right), len(right)) == (27, 27)


def test_the_logits_of_aabaa_are_those_published_in_every_row(model):
    expected = [[1, 1024], [1, 1024], [1024, 1], [1025, 0], [1, 1024]]
    assert model(_ids("aabaa"))[0].tolist() == expected
    assert aab.blueprint().build(torch.float64)(_ids("aabaa"))[0].tolist() == expected


def test_each_row_attends_half_and_half_to_the_last_two_and_the_first_to_itself(model):
    half = 0.5
    assert model.weights(_ids("aabaa"))[0][0, 0].tolist() == [
        [1, 0, 0, 0, 0],
        [half, half, 0, 0, 0],
        [0, half, half, 0, 0],
        [0, 0, half, half, 0],
        [0, 0, 0, half, half],
    ]


def test_the_average_is_1_before_a_b_and_0_before_an_a_in_the_heads_last_number(model):
    name = "blocks.0.attn.hook_z"
    average = model.run_with_cache(_ids("aabaa"), names=name)[1][name][0, :, 0]
    assert average.tolist() == [[*[0] * 7, last] for last in (1, 1, 0, 0, 1)]


def test_one_hot_positions_and_tokens_stay_in_the_residual(model):
    name = "blocks.0.hook_resid_post"
    found = model.run_with_cache(_ids("aabaa"), names=name)[1][name][0]
    assert torch.equal(found[:, :5], torch.eye(5))  # which is why the logits are 1 and 1025 beside 1024 and 0
    tokens = torch.tensor([[1, 0], [1, 0], [0, 1], [1, 0], [1, 0]])
    written = torch.tensor([[0, 1024], [0, 1024], [1024, 0], [1024, 0], [0, 1024]])
    assert torch.equal(found[:, 5:7], (tokens + written).float())


@pytest.mark.parametrize("context", [2, 3, 5])
def test_the_plain_rule_and_the_model_agree_on_every_text_of_its_context(context):
    model = aab.model(context)
    texts = ["".join(text) for length in range(1, context + 1) for text in product("ab", repeat=length)]
    for text in texts:
        assert "ab"[model(_ids(text))[0, -1].argmax()] == aab.rule(text), text


def test_dividing_scores_changes_nothing(model):
    from dataclasses import replace

    undivided = replace(aab.blueprint(), divide_scores=False, d_head=9).build()
    assert torch.equal(undivided(_ids("aabaa")), model(_ids("aabaa")))
