"""1.5-entmax against its definition: τ by bisection, its Jacobian in closed form, and what makes it sparse."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from headstock.model.kernels import kernel_that_ran
from headstock.model.mixers.entmax15 import Entmax15
from tests.model.cases import Case, close, some_ids

MIXER = Entmax15(Case("entmax15", "entmax15").config(), 0)
SCORES = st.one_of(st.integers(-3, 3).map(float), st.floats(-8, 8))  # ties among them


def weigh(scores: Tensor, visible: Tensor | None = None) -> Tensor:
    """Weigh one row, (key)."""
    seen = torch.ones(len(scores), dtype=torch.bool) if visible is None else visible
    return MIXER.weigh(scores[None, None, None], seen[None, None, None])[0, 0, 0]


def by_bisection(scores: list[float]) -> list[float]:
    """Find τ between where the row sums to more than one and where it sums to less."""
    low, high = max(scores) / 2 - 1, max(scores) / 2
    for _ in range(200):
        tau = (low + high) / 2
        low, high = (tau, high) if sum(max(0.0, s / 2 - tau) ** 2 for s in scores) > 1 else (low, tau)
    return [max(0.0, s / 2 - low) ** 2 for s in scores]


@given(row=st.lists(st.tuples(SCORES, st.booleans()), min_size=1, max_size=12))
def test_weights_are_those_of_the_threshold_that_bisection_finds(row: list[tuple[float, bool]]) -> None:
    scores = torch.tensor([score for score, _ in row], dtype=torch.float64)
    seen = torch.tensor([seen for _, seen in row])
    expected = torch.zeros_like(scores)
    if seen.any():
        expected[seen] = torch.tensor(by_bisection(scores[seen].tolist()), dtype=torch.float64)
    close(weigh(scores, seen), expected)
    assert weigh(scores, seen)[~seen].count_nonzero() == 0


@given(scores=st.lists(SCORES, min_size=2, max_size=12), shift=st.floats(-100, 100))
def test_higher_scores_weigh_no_less_equal_ones_the_same_and_a_shift_of_all_changes_nothing(
    scores: list[float], shift: float
) -> None:
    row = torch.tensor(scores, dtype=torch.float64)
    weights = weigh(row)
    order = row.argsort()
    assert (weights[order].diff() >= 0).all()
    assert torch.equal(weights[row == row[0]], weights[:1].expand(int((row == row[0]).sum())))
    close(weigh(row + shift), weights)


def test_one_of_two_keys_weighs_nothing_from_a_difference_of_two_on() -> None:
    for difference, weight in ((0.0, 0.5), (2.0, 0.0), (2.1, 0.0), (40.0, 0.0)):
        weights = weigh(torch.tensor([difference, 0.0]))
        close(weights, torch.tensor([1 - weight, weight]), atol=1e-7)
        assert (weights[1] == 0) == (difference >= 2)
    assert 0 < weigh(torch.tensor([1.9, 0.0]))[1] < 0.01


def test_low_scores_weigh_exactly_nothing_where_softmax_gives_them_something() -> None:
    row = torch.randn(200, dtype=torch.float64)
    weights = weigh(row)
    assert 1 < weights.count_nonzero() < 100
    assert set(row.argsort(descending=True)[: weights.count_nonzero()].tolist()) == set(
        weights.nonzero()[:, 0].tolist()
    )


@pytest.mark.parametrize("high", [1e4, -1e4])
def test_extreme_scores_give_finite_weights_that_sum_to_one_and_finite_gradients(high: float) -> None:
    for row in ([high, 0.0, -high, high], [high] * 4, [high, high + 1, high - 1, high + 0.5]):
        scores = torch.tensor(row, requires_grad=True)
        weights = weigh(scores)
        close(weights.sum(), torch.tensor(1.0), atol=1e-6)
        weights.square().sum().backward()
        assert scores.grad is not None
        assert scores.grad.isfinite().all()
    close(weigh(torch.tensor([1e4, 9e3, 1e4])), torch.tensor([0.5, 0.0, 0.5]), atol=1e-7)


@pytest.mark.parametrize("spread", [0.0, 1e-3, 0.05, 1.0])
def test_rows_of_thousands_sum_to_one_in_float32_and_stay_close_to_float64(spread: float) -> None:
    row = spread * torch.randn(4096)
    row[0] = 1.9  # one key takes most, thousands of near ties share the rest
    weights, exact = weigh(row), weigh(row.double())
    close(weights.sum(), torch.tensor(1.0), atol=1e-5)
    close(weights.double(), exact, atol=1e-6)
    assert (weights.count_nonzero() - exact.count_nonzero()).abs() <= 2


@pytest.mark.parametrize(
    ("row", "seen"),
    [
        ([0.3, -0.2, 0.5, -4.0], [True, True, True, True]),
        ([0.3, -0.2, 0.5, 0.4], [True, False, True, True]),
        ([0.7, 0.7, 0.7, -0.1], [True] * 4),
        ([0.3, 9.0, 0.5, 0.1], [False, False, True, False]),
        ([0.3, 9.0, 0.5, 0.1], [False] * 4),
        ([30.0, 0.0, 0.1, 0.2], [True] * 4),
    ],
    ids=["one-left-out", "one-hidden", "ties", "one-visible", "nothing-visible", "one-takes-all"],
)
def test_its_gradient_is_the_closed_form_and_that_of_finite_differences(row: list[float], seen: list[bool]) -> None:
    scores, visible = torch.tensor(row, dtype=torch.float64, requires_grad=True), torch.tensor(seen)
    assert torch.autograd.gradcheck(lambda scores: weigh(scores, visible), (scores,))
    jacobian = torch.autograd.functional.jacobian(lambda scores: weigh(scores, visible), scores)
    root = weigh(scores.detach(), visible).sqrt()
    expected = root.diag() - torch.outer(root, root) / root.sum().clamp(min=1)
    close(jacobian, expected)  # diag(√w) − √w √wᵀ / Σ √w, of Peters et al.


def test_its_second_derivative_is_that_of_finite_differences() -> None:
    scores = torch.tensor([0.3, -0.2, 0.9, -4.0, 0.1], dtype=torch.float64, requires_grad=True)
    assert (weigh(scores) > 0).tolist() == [True, True, True, False, True]
    assert torch.autograd.gradgradcheck(weigh, (scores,))


def test_it_stores_its_weights_when_short_and_goes_by_blocks_when_long() -> None:
    model = Case("entmax15", "entmax15+rope").model(torch.float32)
    assert kernel_that_ran(model, some_ids()) == "plain"
    ids = some_ids(batch=1, time=600)
    assert kernel_that_ran(model, ids) == "blockwise"
    with torch.no_grad():
        fast, model.plain = model(ids), True
        close(fast, model(ids), atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 1000, 20_000])
def test_the_threshold_is_found_however_many_keys_tie_or_nearly_do(n: int) -> None:
    rows = torch.rand(8, n, dtype=torch.float64)
    gaps = torch.tensor([0.0, 1e-9, 1e-3, 0.1, 1.0])[:, None]
    ties, near_the_highest = torch.zeros(5, n), -gaps * rows[:5]
    a_few_above = torch.where(rows[:5] < 1 / n, 0.0, -1.999 + gaps * rows[3:])
    for row in torch.cat([ties[:1], near_the_highest, a_few_above, -(rows**8), -2 * rows ** (1 / 8)]).double():
        weights = weigh(row)
        close(weights.sum(), torch.tensor(1.0).double())
        places = row.topk(min(n, 40)).indices
        tau = row / 2 - weights.sqrt()
        close(tau[places][weights[places] > 0], tau[places[0]].expand(int((weights[places] > 0).sum())), atol=1e-9)
        assert (weights[row / 2 < tau[places[0]] - 1e-9] == 0).all()


def test_a_reading_of_no_tokens_gives_none() -> None:
    assert Case("entmax15", "entmax15").model()(some_ids(time=0)).shape[1] == 0


def test_its_weights_are_a_distribution_in_a_bfloat16_model() -> None:
    for weights in Case("entmax15", "entmax15").model(torch.bfloat16).weights(some_ids()):
        assert weights.dtype == torch.float32
        close(weights.sum(-1), torch.ones_like(weights.sum(-1)), atol=1e-6)
