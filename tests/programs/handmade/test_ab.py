from itertools import product

import pytest
import torch

from headstock.programs.handmade import ab


def _ids(text):
    return torch.tensor([["ab".index(token) for token in text]])


@pytest.mark.parametrize(("prompt", "continued"), [("a", "bababa"), ("b", "ababab"), ("bbb", "ababab")])
@pytest.mark.parametrize("context", [1, 4])
def test_it_goes_on_alternating_whatever_its_context(prompt, continued, context):
    found = ab.model(context).generate(_ids(prompt), max_new_tokens=6, temperature=0.0, overflow="slide")
    assert "".join("ab"[token] for token in found[0].tolist()) == prompt + continued


def test_it_needs_neither_position_nor_attention():
    config = ab.model().config
    assert (config.position, config.n_layers, config.context) == ("none", 0, 1)
    assert (ab.blueprint().size().slots, ab.blueprint().size().nonzero) == (8, 4)


def test_what_stands_before_the_last_token_makes_no_difference():
    model = ab.model(3)
    for before in map("".join, product("ab", repeat=2)):
        assert torch.equal(model(_ids(before + "a"))[0, -1], model(_ids("a"))[0, -1]), before


def test_the_plain_rule_and_the_model_agree_on_every_text():
    model = ab.model(4)
    for text in ("".join(text) for length in range(1, 5) for text in product("ab", repeat=length)):
        assert "ab"[model(_ids(text))[0, -1].argmax()] == ab.rule(text), text
