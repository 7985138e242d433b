"""Weights near zero are counted against their row's sum, hidden ones not at all."""

import numpy as np
import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.near_zero import near_zero_weights
from headstock.model.mixers import mixer_class
from tests.model.cases import BATCH, ONE_A_MIXER, TIME, Case, close, some_ids

AVERAGING = [case for case in ONE_A_MIXER if mixer_class(case.variant).weights_are != "none"]
EPSILONS = (0.3, 0.1, 0.01)


def by_hand(w_bqk: Tensor) -> tuple[list[float], float, float, float]:
    """Count weight by weight, causally: near zero for each ε, zero, below zero; and the negative mass."""
    near, zero, below, keys, mass, rows = [0] * len(EPSILONS), 0, 0, 0, 0.0, 0
    for row in range(len(w_bqk)):
        for query in range(1, w_bqk.shape[1]):
            weights = w_bqk[row, query, : query + 1].tolist()
            total = sum(map(abs, weights))
            if total == 0:
                continue
            rows += 1
            keys += len(weights)
            near = [
                n + sum(abs(w) < epsilon * total for w in weights) for n, epsilon in zip(near, EPSILONS, strict=True)
            ]
            zero += sum(w == 0 for w in weights)
            below += sum(w < 0 for w in weights)
            mass += sum(-w for w in weights if w < 0) / total
    return [n / keys for n in near], zero / keys, below / keys, mass / rows


@pytest.mark.parametrize("case", AVERAGING, ids=str)
def test_parts_are_those_counted_one_by_one(case: Case) -> None:
    model, ids = case.model(), some_ids()
    found = near_zero_weights(model, ids, EPSILONS)
    maps = {"": found, "_1": found.first, "_2": found.second}
    for which, one in maps.items():
        assert (one is not None) == (not which or case.variant.startswith("differential"))
        if one is None:
            continue
        w = model.weights(ids)[1]
        if which:
            _, cache = model.run_with_cache(ids, f"blocks.1.attn.hook_pattern{which}")
            w = cache[f"blocks.1.attn.hook_pattern{which}"]
        for head in range(w.shape[1]):
            near, zero, below, mass = by_hand(w[:, head])
            assert one.near_zero[:, 1, head].tolist() == pytest.approx(near)
            assert one.zero[1, head].item() == pytest.approx(zero)
            assert one.below_zero[1, head].item() == pytest.approx(below)
            assert one.negative_mass[1, head].item() == pytest.approx(mass)
    assert found.rows == BATCH * (TIME - 1)


def test_a_uniform_average_is_what_it_is_held_against() -> None:
    found = near_zero_weights(Case("", "uniform").model(), some_ids(), (0.3, 0.13, 0.01))
    # Of 2 to 9 keys, 44 in all: 1/n < 0.3 for 4 to 9 keys, 39; 1/n < 0.13 for 8 and 9, 17.
    assert found.uniform.tolist() == pytest.approx([39 / 44, 17 / 44, 0.0])
    for place in range(3):
        close(found.near_zero[place], found.uniform[place].expand(2, 4))


def test_keys_that_are_not_chosen_weigh_exactly_nothing() -> None:
    found = near_zero_weights(Case("", "topk,k=2").model(), some_ids())
    expected = sum(n - 2 for n in range(2, TIME + 1)) / sum(range(2, TIME + 1))
    close(found.zero, torch.full((2, 4), expected, dtype=torch.float64))
    assert (near_zero_weights(Case("", "softmax").model(), some_ids()).zero == 0).all()


@pytest.mark.parametrize("variant", ["differential", "softmax,window=4"])
def test_padding_counts_for_nothing(variant: str) -> None:
    model, ids = Case("", variant).model(), some_ids(1)
    real = torch.tensor([[False] * 2 + [True] * 7])
    padded, alone = near_zero_weights(model, ids, real=real), near_zero_weights(model, ids[:, 2:])
    for what in ("near_zero", "zero", "below_zero", "negative_mass", "uniform"):
        close(getattr(padded, what), getattr(alone, what))
    assert padded.rows == alone.rows == 6


def test_rows_without_weight_are_left_out() -> None:
    model, ids = Case("", "softmax").model(), some_ids(1, 4)

    def put(w: Tensor, _: object) -> None:
        w[:] = 0
        w[0, :, 3, :3] = torch.tensor([0.5, -0.25, 1e-4], dtype=w.dtype)

    with model.hooks([("blocks.0.attn.hook_pattern", put)]):
        found = near_zero_weights(model, ids, (1e-3,))
    assert found.near_zero[0, 0].tolist() == [0.5] * 4  # 1e-4 and the last key's nothing
    assert found.zero[0].tolist() == found.below_zero[0].tolist() == [0.25] * 4
    assert found.negative_mass[0].tolist() == pytest.approx([0.25 / 0.7501] * 4)


def test_it_draws_itself_and_refuses_what_is_not_there() -> None:
    found = near_zero_weights(Case("", "differential").model(), some_ids())
    assert {row[0] for row in found.draw().table.rows} == {"weights", "first maps", "second maps", "a uniform average"}
    part = found.near_zero[2].mean().item()
    assert found.draw().title == f"{part:.3g} of weights are below 0.001 of their row's sum"
    assert "in a uniform average" in found.draw(0.1).title
    assert "<svg" in found._repr_html_()
    assert "ε 0.1, 0.01" in repr(found)
    assert near_zero_weights(Case("", "softmax").model(), some_ids(2, 1))._repr_html_() is None
    with pytest.raises(UserError, match="was not measured"):
        found.draw(0.5)
    for epsilons in ((), (0.0,), (0.1, 1.0)):
        with pytest.raises(UserError, match="between 0 and 1"):
            near_zero_weights(Case("", "softmax").model(), some_ids(), epsilons)
    with pytest.raises(UserError, match="no weights"):
        near_zero_weights(Case("", "lstm").model(), some_ids())


@pytest.mark.parametrize(
    "epsilons", [0.1, (0.1,), np.array([0.1]), np.float32(0.1)], ids=["one", "tuple", "array", "float32"]
)
def test_epsilons_may_be_one_number_or_numbers_of_any_kind(epsilons) -> None:
    assert near_zero_weights(Case("", "softmax").model(), some_ids(), epsilons).near_zero.shape[0] == 1
