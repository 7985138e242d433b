"""Averages stay within their values; what is subtracted may leave them."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.convex_hull import Hull, hull
from headstock.model.mixers import mixer_class
from headstock.model.transformer import Transformer
from tests.model.cases import ONE_A_MIXER, TIME, Case, close, some_ids

AVERAGING = [case for case in ONE_A_MIXER if mixer_class(case.variant).weights_are != "none"]
NORMALISED = [case for case in AVERAGING if mixer_class(case.variant).weights_are == "normalised"]


def averages(model: Transformer, ids: Tensor, layer: int) -> tuple[Tensor, Tensor, Tensor]:
    """Give weights, values for each head, and what they come to."""
    _, cache = model.run_with_cache(ids, [f"blocks.{layer}.attn.hook_v", f"blocks.{layer}.attn.hook_pattern"])
    w, v = cache["pattern", layer].detach(), cache["v", layer].detach().transpose(1, 2)
    v = v.repeat_interleave(w.shape[1] // v.shape[1], 1)
    return w, v, w @ v


@pytest.mark.parametrize("case", NORMALISED, ids=str)
def test_an_average_never_leaves_the_hull(case: Case) -> None:
    found = hull(case.model(), some_ids())
    for what in ("certain", "outside", "distance", "beyond_scaling"):
        assert (getattr(found, what) == 0).all(), what


@pytest.mark.parametrize("case", AVERAGING, ids=str)
def test_who_is_outside_is_what_linear_programming_says(case: Case) -> None:
    model, ids = case.model(), some_ids(2)
    found = hull(model, ids, tolerance=1e-6)  # linprog's own is 1e-7
    assert (found.queries, found.tested) == (2 * (TIME - 1), 2 * (TIME - 1))
    w, v, z = averages(model, ids, 1)
    for head in (0, w.shape[1] - 1):
        outside = certain = beyond = 0
        for row in range(2):
            for query in range(1, TIME):
                values, point = v[row, head, : query + 1].numpy(), z[row, head, query].numpy()
                seen = query + 1
                one = linprog(
                    np.zeros(seen), A_eq=np.vstack([values.T, np.ones(seen)]), b_eq=np.append(point, 1), method="highs"
                )
                any_sum = linprog(np.zeros(seen), A_eq=values.T, b_eq=point, method="highs")
                outside += one.status != 0
                beyond += any_sum.status != 0
                radius = np.linalg.norm(values - values.mean(0), axis=1).max()
                allowed = 1e-6 * radius
                past = (point < values.min(0) - allowed) | (point > values.max(0) + allowed)
                certain += bool(past.any())
        assert found.outside[1, head].item() == pytest.approx(outside / found.tested)
        assert found.certain[1, head].item() == pytest.approx(certain / found.queries)
        assert found.beyond_scaling[1, head].item() == pytest.approx(beyond / found.tested)
    assert (found.certain <= found.outside + 1e-12).all()
    assert (found.beyond_scaling <= found.outside + 1e-12).all()
    assert ((found.distance > 0) == (found.outside > 0)).all()


def with_weights(model: Transformer, weights_of: list[float]) -> object:
    def put(w: Tensor, _: object) -> None:
        w[:] = 0
        w[:, :, -1, : len(weights_of)] = torch.tensor(weights_of, dtype=w.dtype)

    def values(v: Tensor, _: object) -> None:
        v[:] = 0
        v[:, 1, :, 0] = 2  # a triangle (0, 0), (2, 0), (0, 2) in two of the coordinates
        v[:, 2, :, 1] = 2

    return model.hooks([("blocks.0.attn.hook_pattern", put), ("blocks.0.attn.hook_v", values)])


@pytest.mark.parametrize(
    ("weights", "outside", "distance", "certain", "beyond"),
    [
        ([0.5, 0.25, 0.25], False, 0.0, False, False),
        ([0.0, 1.0, 1.0], True, 2**0.5, False, False),  # (2, 2): twice an average
        ([0.0, 1.0, -0.5], True, 1.0, True, True),  # (2, −1): below all
        ([3.0, 0.2, 0.2], False, 0.0, False, False),  # the sum is past 1, but the first value is nothing
    ],
)
def test_outputs_in_and_out_of_a_triangle_by_hand(
    weights: list[float], outside: bool, distance: float, certain: bool, beyond: bool
) -> None:
    model, ids = Case("", "softmax,n_layers=1").model(), some_ids(1, 3)
    with with_weights(model, weights):
        found = hull(model, ids)
    # Of the two queries that count, the first has no weights: its output is the first value, nothing.
    centre = np.array([2 / 3, 2 / 3])
    radius = max(np.linalg.norm(point - centre) for point in np.array([[0, 0], [2, 0], [0, 2]]))
    close(found.outside, torch.full_like(found.outside, outside / 2))
    close(found.distance, torch.full_like(found.distance, distance / radius / 2), 1e-6)
    close(found.certain, torch.full_like(found.certain, certain / 2))
    close(found.beyond_scaling, torch.full_like(found.beyond_scaling, beyond / 2))


def test_hidden_keys_are_no_part_of_the_hull_and_padding_changes_nothing() -> None:
    model, ids = Case("", "differential,window=4").model(), some_ids(2, 6)
    padding = torch.zeros(2, 2, dtype=ids.dtype)
    real = torch.cat([padding, torch.ones_like(ids)], 1).bool()
    alone, beside = hull(model, ids), hull(model, torch.cat([padding, ids], 1), real=real)
    for what in ("certain", "outside", "distance", "beyond_scaling"):
        close(getattr(beside, what), getattr(alone, what), 1e-7)
    assert hull(Case("", "differential").model(), ids).distance.ne(alone.distance).any()


def test_fewer_queries_are_chosen_evenly() -> None:
    model, ids = Case("", "differential").model(), some_ids()
    every, some = hull(model, ids), hull(model, ids, most=5)
    assert (every.tested, some.tested, some.queries) == (24, 5, 24)
    close(some.certain, every.certain)
    assert every.few_keys == 1.0  # a pair's values have 8 coordinates, and no query sees more than 9 keys
    assert hull(Case("", "differential2").model(), ids).few_keys == pytest.approx(4 / 8)  # 4 coordinates: 2 to 5 keys


def test_where_few_keys_are_seen_any_negative_weight_leads_outside() -> None:
    model, ids = Case("", "differential").model(), some_ids()
    found = hull(model, ids)
    w, _, _ = averages(model, ids, 0)
    negative = (w[:, :, 1:] < 0).any(-1) | ((w[:, :, 1:].sum(-1) - 1).abs() > 1e-4)
    close(found.outside[0], negative.double().mean((0, 2)))


def test_it_draws_itself_and_refuses_what_is_not_there() -> None:
    found = hull(Case("", "differential").model(), some_ids())
    assert found.draw().title.startswith("Part of outputs outside their values' convex hull: ")
    assert "All 24 queries" in found.draw("certain").caption
    assert "<svg" in found._repr_html_()
    with pytest.raises(UserError, match="distance"):
        found.draw("distanse")
    single: Hull = hull(Case("", "differential").model(), some_ids(3, 1))
    assert single._repr_html_() is None
    assert single.outside.isnan().all()
    with pytest.raises(UserError, match="longer text"):
        single.draw()
    with pytest.raises(UserError, match="tests nothing"):
        hull(Case("", "differential").model(), some_ids(), most=0)
    with pytest.raises(UserError, match="no weights"):
        hull(Case("", "lstm").model(), some_ids())


@pytest.mark.parametrize("case", AVERAGING, ids=str)
def test_a_token_that_comes_twice_first_makes_no_hull_of_rounding(case: Case) -> None:
    ids = some_ids()
    ids[:, 1] = ids[:, 0]
    found = hull(case.model(), ids)
    if mixer_class(case.variant).weights_are == "normalised":
        assert (found.certain == 0).all()
        assert (found.outside == 0).all()
    assert (found.certain <= found.outside + 1e-12).all()
    assert found.distance.max() < 100  # radii of rounding would be 1e5 and more


def test_distance_from_values_that_are_the_same_is_in_their_length() -> None:
    model = Case("", "differential2").model()
    found = hull(model, torch.full((1, 4), 3))
    first = found.distance[0]  # in the second layer values differ, by what the first subtracts
    assert ((first > 0) & (first <= 1 + 1e-6)).all()
