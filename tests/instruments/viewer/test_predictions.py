import math

import pytest
import torch

from headstock.instruments.viewer.predictions import mean_loss, predictions

LOGITS = torch.log(torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.25, 0.5, 0.25]]))


def test_each_token_is_followed_by_the_likeliest_ones_and_by_what_comes():
    found = predictions(LOGITS, [2, 0, 1], "abc".__getitem__, top=2)
    assert [label for label, _ in found[0].top] == ["a", "b"]
    assert [share for _, share in found[0].top] == pytest.approx([0.5, 0.3])
    assert (found[0].rank, found[0].right) == (1, True)  # after c comes a
    assert (found[1].rank, found[1].right) == (2, False)  # after a comes b, of which 0.2 was expected
    assert found[1].probability == pytest.approx(0.2)


def test_after_the_last_token_nothing_is_known_to_come():
    last = predictions(LOGITS, [2, 0, 1], "abc".__getitem__, top=2)[-1]
    assert (last.probability, last.rank, last.right) == (None, None, None)
    assert last.top[0][0] == "b"


def test_no_more_tokens_are_listed_than_there_are():
    assert len(predictions(LOGITS, [2, 0, 1], str, top=9)[0].top) == 3


def test_a_model_without_numbers_is_never_right_and_its_loss_is_no_number():
    found = predictions(torch.full((2, 3), torch.nan), [0, 1], str, top=1)
    assert (found[0].rank, found[0].right) == (None, None)
    assert math.isnan(mean_loss(found))


def test_the_loss_is_the_mean_over_the_tokens_that_come():
    found = predictions(LOGITS, [2, 0, 1], str, top=1)
    assert mean_loss(found) == pytest.approx((-math.log(0.5) - math.log(0.2)) / 2)
    assert mean_loss(found[-1:]) is None


def test_what_a_sure_model_rules_out_has_its_rank_and_its_loss_though_no_probability_is_left_of_it():
    logits = 1000.0 * torch.arange(4.0).repeat(4, 1)
    found = predictions(logits, [3, 0, 1, 2], "abcd".__getitem__, top=1)
    assert [one.probability for one in found[:3]] == [0.0, 0.0, 0.0]
    assert [one.rank for one in found[:3]] == [4, 3, 2]
    assert [one.loss for one in found[:3]] == [3000.0, 2000.0, 1000.0]
    assert mean_loss(found) == pytest.approx(2000.0)
