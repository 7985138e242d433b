"""Keys that do not compete: the formula, the count in its bias, and what one key cannot do to another."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from headstock.model.config import config_of
from headstock.model.kernels import kernel_that_ran
from headstock.model.mixers import mixer_class
from headstock.model.mixers.sigmoid import Sigmoid
from tests.model.cases import SIZES, Case, close, some_ids

MIXER = Sigmoid(Case("sigmoid", "sigmoid").config(), 0)


def weigh(scores: list[float] | Tensor, seen: list[bool]) -> Tensor:
    scores = torch.as_tensor(scores, dtype=torch.float64)
    return MIXER.weigh(scores[None, None, None], torch.tensor(seen)[None, None, None])[0, 0, 0]


@given(row=st.lists(st.tuples(st.floats(-50, 50), st.booleans()), min_size=1, max_size=12))
def test_a_weight_is_a_logistic_function_of_its_own_score_less_the_log_of_the_count(
    row: list[tuple[float, bool]],
) -> None:
    scores, seen = [score for score, _ in row], [seen for _, seen in row]
    n = sum(seen)
    expected = [1 / (1 + n * math.exp(-score)) if sees else 0.0 for score, sees in row]  # σ(s − log n), written out
    close(weigh(scores, seen), torch.tensor(expected, dtype=torch.float64))


def test_a_single_visible_key_weighs_the_logistic_function_of_its_score() -> None:
    close(weigh([1.3, -2.0, 9.0], [False, True, False]), torch.tensor([0, 1 / (1 + math.exp(2)), 0]).double(), 1e-7)


@given(n=st.integers(1, 40), hidden=st.integers(0, 40))
def test_scores_of_zero_share_nearly_one_between_them_however_many_are_hidden(n: int, hidden: int) -> None:
    close(weigh([0.0] * (n + hidden), [False] * hidden + [True] * n).sum(), torch.tensor(n / (n + 1)).double(), 1e-7)


def test_the_score_of_one_key_moves_no_other_weight_and_rows_may_sum_to_more_than_one() -> None:
    before, after = weigh([1.0, 2.0, 3.0], [True] * 3), weigh([1.0, 9.0, 3.0], [True] * 3)
    assert torch.equal(before[[0, 2]], after[[0, 2]])
    assert after[1] > before[1]
    assert after.sum() > 1


@pytest.mark.parametrize("seen", [[True, True, False], [False, False, True], [False] * 3])
def test_extreme_scores_give_finite_weights_and_gradients(seen: list[bool]) -> None:
    scores = torch.tensor([1e4, -1e4, 1e4], requires_grad=True)
    weights = MIXER.weigh(scores[None, None, None], torch.tensor(seen)[None, None, None])
    close(weights.flatten(), torch.tensor([1.0, 0.0, 1.0]) * torch.tensor(seen))
    weights.square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_gradients_are_those_of_finite_differences_and_hidden_keys_have_none() -> None:
    scores = torch.randn(1, 2, 2, 4, dtype=torch.float64, requires_grad=True)
    visible = torch.tensor([[[[True, False, True, True], [False] * 4]]])
    assert torch.autograd.gradcheck(lambda scores: MIXER.weigh(scores, visible), (scores,))
    MIXER.weigh(scores, visible).square().sum().backward()
    assert scores.grad is not None
    assert torch.equal(scores.grad != 0, visible.expand(1, 2, 2, 4))


def test_it_stores_its_weights_when_short_and_goes_by_blocks_when_long() -> None:
    model = Case("sigmoid", "sigmoid+alibi").model(torch.float32)
    assert kernel_that_ran(model, some_ids()) == "plain"
    ids = some_ids(batch=1, time=600)
    assert kernel_that_ran(model, ids) == "blockwise"
    with torch.no_grad():
        fast, model.plain = model(ids), True
        close(fast, model(ids), atol=1e-5)


def test_its_memory_is_linear_with_alibi_too_for_no_kernel_wants_all_penalties() -> None:
    def linear(variant: str) -> bool:
        config = config_of(variant, **SIZES)
        return mixer_class(config.mixer).memory_is_linear(config)

    for mixer in ("sigmoid", "entmax15", "topk", "forgetting"):
        assert linear(f"{mixer}+alibi")
        assert not linear(f"{mixer},dropout_attention=0.1")
    assert linear("sink")
    assert not linear("sink+alibi")
    assert linear("sink+alibi,soft_cap=5")
