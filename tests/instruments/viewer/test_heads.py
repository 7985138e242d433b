import math

import pytest
import torch

from headstock.instruments.viewer.heads import summaries


def test_a_uniform_average_spreads_over_all_that_it_sees():
    counts = torch.arange(1, 6.0)
    (one,) = summaries(torch.tril(torch.ones(1, 5, 5)) / counts[:, None], layer=3)
    assert (one.layer, one.head) == (3, 0)
    assert one.effective_tokens == pytest.approx((2 + 3 + 4 + 5) / 4)
    assert one.sink == pytest.approx((1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4)
    assert one.previous == pytest.approx(one.sink)
    assert (one.largest, one.largest_query) == (0.5, 1)
    assert one.negative == 0


def test_a_head_that_looks_one_back_is_seen_to_do_so():
    weights = torch.eye(4).roll(1, dims=0).tril()
    weights[0, 0] = 1
    (one,) = summaries(weights[None], layer=0)
    assert one.previous == 1
    assert one.effective_tokens == pytest.approx(1)
    assert one.sink == pytest.approx(1 / 3)


def test_signed_weights_spread_by_their_sizes_and_the_largest_keeps_its_sign():
    weights = torch.tensor([[1.0, 0, 0], [0.2, -0.2, 0], [0.1, -0.6, 0.1]])
    (one,) = summaries(weights[None], layer=0)
    assert one.negative == pytest.approx(0.4)
    assert (one.largest, one.largest_query, one.largest_key) == (pytest.approx(-0.6), 2, 1)
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.125))
    assert one.effective_tokens == pytest.approx((2 + math.exp(entropy)) / 2)


def test_a_single_token_has_nothing_to_choose_from():
    (one,) = summaries(torch.ones(1, 1, 1), layer=0)
    assert math.isnan(one.effective_tokens)
    assert one.largest_query == -1


def test_a_head_that_weighs_nothing_spreads_over_no_number_of_keys():
    (found,) = summaries(torch.zeros(1, 4, 4), layer=0)
    assert math.isnan(found.effective_tokens)
    assert found.sink == 0.0
