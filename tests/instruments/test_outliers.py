"""Outliers are found where they were planted, and the measures beside them are those of statistics."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.outliers import Extremes, activation_outliers
from headstock.model.transformer import Transformer, build
from tests.model.cases import ONE_A_MIXER, TIME, VOCAB, Case, every_mixer, some_ids

SIZES = {"vocab_size": VOCAB, "context": TIME, "d_model": 8, "n_heads": 2}


def planted(model: Transformer, name: str, place: tuple[int, ...], value: float) -> object:
    def plant(x: Tensor, _: object) -> None:
        x[place] = value

    return model.hooks([(name, plant)])


def agrees(found: Extremes, values: Tensor) -> None:
    """Hold the measures to numpy's and scipy's."""
    x = values.double().numpy()
    size = np.sort(np.abs(x))[::-1]
    assert found.top.tolist()[:4] == pytest.approx([size[0], size[1], size[2], size[9]])
    assert found.median == pytest.approx(np.median(size))
    assert found.rms == pytest.approx(np.sqrt(np.mean(x**2)))
    assert found.kurtosis == pytest.approx(stats.kurtosis(x, fisher=False))


@every_mixer
def test_measures_are_those_of_statistics(case: Case) -> None:
    model, ids = case.model(), some_ids()
    found = activation_outliers(model, ids)
    logits, cache = model.run_with_cache(ids)
    names = ["blocks.0.hook_resid_pre", "blocks.1.hook_resid_pre", "blocks.1.hook_resid_post"]
    assert [one.name for one in found.residual] == names
    for one in found.residual:
        agrees(one, cache[one.name].flatten())
        assert abs(cache[one.name][tuple(one.where.values())]).item() == pytest.approx(one.top[0].item())
    agrees(found.logits, logits.detach().flatten())
    for one in found.scores:
        if case.config().mixer != "uniform":  # whose scores are all 0
            agrees(one, cache[one.name][cache[one.name] > -math.inf])
            assert abs(cache[one.name][tuple(one.where.values())]).item() == pytest.approx(one.top[0].item())
    scored = [name for name in model.hook_names() if "hook_attn_scores" in name]
    assert sorted(one.name for one in found.scores) == sorted(scored)


@every_mixer
def test_the_table_of_all_layers_is_of_all_their_values(case: Case) -> None:
    model, ids = case.model(), some_ids()
    found = {one.name: one for one in activation_outliers(model, ids).over_all}
    _, cache = model.run_with_cache(ids)
    hidden = torch.cat([cache[f"blocks.{layer}.hook_resid_post"].flatten() for layer in (0, 1)])
    agrees(found["hidden states"], hidden)
    assert found["hidden states"].top[4].item() == pytest.approx(hidden.abs().sort(descending=True).values[99].item())
    names = [name for name in model.hook_names() if "hook_attn_scores" in name]
    assert ("attention logits" in found) == bool(names)
    if names and case.variant != "uniform":
        scores = torch.cat([cache[name][cache[name] > -math.inf] for name in names])
        agrees(found["attention logits"], scores)
        assert found["attention logits"].top[4].item() == pytest.approx(
            scores.abs().sort(descending=True).values[99].item()
        )


def test_the_table_says_in_which_layer_the_largest_stands() -> None:
    model = build("differential", **SIZES)
    with planted(model, "blocks.1.attn.hook_attn_scores_2", (2, 0, 5, 3), -99.0):
        scores, hidden = activation_outliers(model, some_ids()).over_all
    assert (scores.name, hidden.name) == ("attention logits", "hidden states")
    assert scores.where == {"layer": 1, "batch": 2, "head": 0, "query": 5, "key": 3}
    assert scores.top[0] == 99
    with planted(model, "blocks.0.hook_resid_post", (1, 4, 3), 1e4):
        hidden = activation_outliers(model, some_ids()).over_all[1]
    assert hidden.where["layer"] in (0, 1)  # the residual carries it on
    assert (hidden.where["position"], hidden.where["dimension"]) == (4, 3)


def test_an_outlier_is_found_where_it_was_planted() -> None:
    model = build("softmax", **SIZES)
    with planted(model, "blocks.1.hook_resid_pre", (1, 4, 3), -1e4):
        found = activation_outliers(model, some_ids())
    assert found.residual[1].where == {"batch": 1, "position": 4, "dimension": 3}
    assert found.residual[1].top[0] == 1e4
    assert found.residual[1].kurtosis > 100
    assert found.residual[1].over_median > 1e4
    assert found.residual[1].over_rms == pytest.approx(math.sqrt(3 * TIME * 8), rel=1e-3)
    assert found.residual[0].over_median < 100


def test_a_score_is_found_by_head_query_and_key_where_it_is_visible_alone() -> None:
    model = build("softmax", **SIZES)
    with planted(model, "blocks.0.attn.hook_attn_scores", (2, 1, 5, 3), 99.0):
        found = activation_outliers(model, some_ids())
    assert found.scores[0].where == {"batch": 2, "head": 1, "query": 5, "key": 3}
    with planted(model, "blocks.0.attn.hook_attn_scores", (2, 1, 3, 5), 99.0):
        assert activation_outliers(model, some_ids()).scores[0].top[0] < 99


@pytest.mark.parametrize("case", ONE_A_MIXER, ids=str)
def test_padding_counts_for_nothing(case: Case) -> None:
    model, ids = case.model(), some_ids(1)
    real = torch.tensor([[False] * 2 + [True] * 7])
    with planted(model, "blocks.1.hook_resid_pre", (0, 1, 0), 1e4):
        padded = activation_outliers(model, ids, real=real)
    alone = activation_outliers(model, ids[:, 2:])
    some = (*padded.everything, *padded.over_all), (*alone.everything, *alone.over_all)
    for ours, theirs in zip(*some, strict=True):
        torch.testing.assert_close(ours.top, theirs.top, rtol=0, atol=1e-9, equal_nan=True)
        assert ours.median == pytest.approx(theirs.median)
        assert ours.kurtosis == pytest.approx(theirs.kurtosis, nan_ok=True)


def test_fewer_values_than_a_rank_give_no_number_there() -> None:
    found = activation_outliers(build("softmax", **SIZES), some_ids(1, 3))
    assert found.residual[0].top.isnan().tolist() == [False] * 4 + [True]


def test_a_differential_mixer_has_scores_of_both_maps_and_a_state_has_none() -> None:
    names = [one.name for one in activation_outliers(build("differential", **SIZES), some_ids()).scores]
    assert names == [f"blocks.{layer}.attn.hook_attn_scores_{n}" for n in (1, 2) for layer in (0, 1)]
    assert activation_outliers(build("lstm", **SIZES), some_ids()).scores == ()


@pytest.mark.parametrize("mixer", ["softmax", "uniform", "differential", "lstm"])
def test_outliers_draw_and_write_themselves(mixer: str) -> None:
    found = activation_outliers(build(mixer, **SIZES), some_ids())
    worst = max(one.over_median for one in found.everything if math.isfinite(one.over_median))
    assert found.draw().title.startswith(f"The largest |x| is {worst:.3g} times the median: ")
    labels = {"softmax": {"residual", "scores"}, "differential": {"residual", "first scores", "second scores"}}
    assert {row[0] for row in found.draw().table.rows} == labels.get(mixer, {"residual"})
    assert "<svg" in found._repr_html_()
    assert repr(found).splitlines()[0].split()[:3] == ["name", "top-1", "top-2"]
    assert len(repr(found).splitlines()) == 1 + len(found.everything) + len(found.over_all)
    kurtosis = found.draw("kurtosis")
    assert kurtosis.title.startswith(
        f"Kurtosis up to {max(one.kurtosis for one in found.everything if one.kurtosis > 0):.3g}"
    )
    assert "a Gaussian 3" in kurtosis.caption
    with pytest.raises(UserError, match="kurtosis"):
        found.draw("curtosis")


def test_ratios_to_nothing_are_infinite_or_no_number() -> None:
    one = Extremes("", torch.tensor([2.0]), 0.0, 0.0, math.nan, {})
    assert one.over_median == math.inf
    assert math.isnan(Extremes("", torch.tensor([0.0]), 0.0, 0.0, math.nan, {}).over_rms)


def test_ids_of_nothing_real_are_refused() -> None:
    with pytest.raises(UserError, match="no real token"):
        activation_outliers(build("softmax", **SIZES), some_ids(1), real=torch.zeros(1, TIME, dtype=torch.bool))
