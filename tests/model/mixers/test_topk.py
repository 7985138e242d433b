"""The k highest scores: which they are, ties among them, and the same choice on every path."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from headstock.errors import UserError
from headstock.model.cache import Cache
from headstock.model.kernels import kernel_that_ran
from headstock.model.mixers.topk import TopK
from headstock.model.transformer import Transformer, build
from tests.model.cases import BATCH, SIZES, Case, close, some_ids

SCORES = st.integers(-2, 2).map(float) | st.floats(-5, 5)  # ties among them


def top(k: int) -> TopK:
    return TopK(Case("topk", f"topk,k={k}").config(), 0)


def weigh(k: int, scores: list[float], seen: list[bool]) -> Tensor:
    row = torch.tensor(scores, dtype=torch.float64)
    return top(k).weigh(row[None, None, None], torch.tensor(seen)[None, None, None])[0, 0, 0]


@given(row=st.lists(st.tuples(SCORES, st.booleans()), min_size=1, max_size=12), k=st.integers(1, 14))
def test_it_is_softmax_over_the_k_highest_the_earliest_of_equals(row: list[tuple[float, bool]], k: int) -> None:
    visible = [place for place, (_, seen) in enumerate(row) if seen]
    taken = sorted(visible, key=lambda place: (-row[place][0], place))[:k]
    total = sum(math.exp(row[place][0]) for place in taken)
    expected = [math.exp(score) / total if place in taken else 0.0 for place, (score, _) in enumerate(row)]
    weights = weigh(k, [score for score, _ in row], [seen for _, seen in row])
    close(weights, torch.tensor(expected, dtype=torch.float64))
    assert weights.count_nonzero() == min(k, len(visible))


@given(row=st.lists(SCORES, min_size=1, max_size=9), k=st.integers(1, 4), hidden=st.integers(0, 9))
def test_hidden_keys_in_front_change_no_choice(row: list[float], k: int, hidden: int) -> None:
    alone = weigh(k, row, [True] * len(row))
    close(weigh(k, [1.0] * hidden + row, [False] * hidden + [True] * len(row))[hidden:], alone, atol=1e-14)


@pytest.mark.parametrize("k", [4, 5, 40])
def test_with_no_fewer_than_all_keys_it_is_softmax(k: int) -> None:
    row = torch.randn(4, dtype=torch.float64)
    close(weigh(k, row.tolist(), [True] * 4), row.softmax(-1))


def test_the_highest_alone_takes_all_and_scores_may_be_extreme() -> None:
    assert weigh(1, [0.0, 3.0, 3.0, -1.0], [True] * 4).tolist() == [0, 1, 0, 0]
    scores = torch.tensor([[[[1e4, -1e4, 1e4, 0.0], [1e4, 1e4, 1e4, 1e4]]]], requires_grad=True)
    weights = top(2).weigh(scores, torch.tensor([[[[True] * 4, [False] * 4]]]))
    assert weights.tolist() == [[[[0.5, 0, 0.5, 0], [0, 0, 0, 0]]]]
    weights.square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_keys_left_out_have_no_gradient_and_those_taken_that_of_finite_differences() -> None:
    scores = torch.tensor([[[[0.3, -0.7, 1.1, 0.6], [2.0, 0.1, 0.4, -0.3]]]], dtype=torch.float64, requires_grad=True)
    visible = torch.tensor([[[[True] * 4, [False, True, True, True]]]])
    assert torch.autograd.gradcheck(lambda scores: top(2).weigh(scores, visible), (scores,))
    (weights := top(2).weigh(scores, visible)).square().sum().backward()
    assert scores.grad is not None
    assert torch.equal(scores.grad != 0, weights != 0)


def all_tied(variant: str) -> Transformer:
    """Give a model of one layer that scores every key 0, so that the rule for ties alone decides."""
    model = Case("topk", f"{variant},n_layers=1").model()
    torch.nn.init.zeros_(model.blocks[0].mixer.query.weight)
    return model


@pytest.mark.parametrize("window", ["none", "5"])
def test_ties_are_settled_alike_whole_cached_padded_packed_and_by_blocks(window: str) -> None:
    model, ids = all_tied(f"topk+none,k=3,window={window}"), some_ids()
    with torch.no_grad():
        whole = model(ids)
        for sizes in ([1] * 9, [2, 3, 4], [8, 1]):
            cache = Cache(1)
            close(torch.cat([model(piece, cache=cache) for piece in ids.split(sizes, 1)], dim=1), whole)
        real = torch.tensor([[False] * 4 + [True] * 9] * BATCH)
        padded = torch.cat([ids[:, :4], ids], dim=1)
        close(model(padded, real=real)[:, 4:], whole)
        close(model(padded, documents=real.int())[:, 4:], whole)
        long = some_ids(batch=1, time=530)
        by_blocks, model.plain = model(long), True
        close(by_blocks, model(long))
        if window == "none":
            weights = model.weights(ids)[0]
            assert (weights[:, :, 3:, :3] > 0).all()
            assert weights[:, :, :, 3:].count_nonzero() == 0


def test_it_stores_its_weights_when_short_and_goes_by_blocks_when_long() -> None:
    model = build("topk+alibi,k=3", **SIZES).eval()
    assert kernel_that_ran(model, some_ids()) == "plain"
    assert kernel_that_ran(model, some_ids(batch=1, time=520)) == "blockwise"


def test_k_is_eight_unless_given_and_no_other_mixer_takes_it() -> None:
    assert build("topk", **SIZES).blocks[0].mixer.k == 8
    assert build("topk,k=3", **SIZES).config.variant == "topk,d_model=16,k=3"
    with pytest.raises(UserError, match="topk needs to know how many keys it averages: give a number, such as k=8"):
        build("topk,k=none", **SIZES)
    with pytest.raises(UserError, match="softmax has no use for k=3"):
        build("softmax,k=3", **SIZES)
