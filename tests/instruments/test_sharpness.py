"""Sharpness by hand where it can be worked out, by definition where not, and alike for padded and packed rows."""

import math
from dataclasses import fields

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.sharpness import MapStatistics, ScoreStatistics, score_statistics
from headstock.model.transformer import Transformer, build
from tests.model.cases import ONE_A_MIXER, TIME, VOCAB, Case, averaging, close, some_ids

SIZES = {"vocab_size": VOCAB, "context": TIME, "d_model": 8, "n_heads": 2, "n_layers": 1}
NAMES = [field.name for field in fields(MapStatistics)]


def small(variant: str, **choices: object) -> Transformer:
    return build(variant, **{**SIZES, **choices}).double()


def with_scores(model: Transformer, scores_hqk: Tensor, ids: Tensor) -> ScoreStatistics:
    with model.hooks([("blocks.0.attn.hook_attn_scores", lambda scores, _: scores_hqk.expand_as(scores).clone())]):
        return score_statistics(model, ids)


def alike(ours: MapStatistics, theirs: MapStatistics) -> None:
    for name in NAMES:
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name), rtol=0, atol=1e-9, equal_nan=True)


def test_a_uniform_average_is_as_flat_as_can_be() -> None:
    found = score_statistics(small("uniform"), some_ids(2, 4))
    assert found.rows == 6  # of eight queries two see themselves alone
    assert found.visible_keys == 3
    a_head = torch.ones(1, 2, dtype=torch.float64)
    close(found.effective_tokens, 3 * a_head)
    close(found.entropy, a_head * math.log(2 * 3 * 4) / 3)
    close(found.trace, a_head * (1 / 2 + 2 / 3 + 3 / 4) / 3)
    close(found.sink, a_head * (1 / 2 + 1 / 3 + 1 / 4) / 3)
    assert found.uniform_sink == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
    close(found.row_sum, a_head)
    for none in (found.score_std, found.saturated, found.frozen, found.negative, found.far_below_uniform, found.empty):
        close(none, 0 * a_head)


def test_scores_of_a_thousand_saturate_and_freeze_every_row_that_has_a_choice() -> None:
    scores = torch.stack([1e3 * torch.eye(5), torch.zeros(5, 5)]).double()
    found = with_scores(small("softmax"), scores, some_ids(3, 5))
    assert found.saturated.tolist() == found.frozen.tolist() == [[1.0, 0.0]]
    assert found.effective_tokens[0, 0] == 1
    assert found.sink[0, 0] == 0
    assert found.far_below_uniform.tolist() == [[pytest.approx((1 + 2 + 3 + 4) / (2 + 3 + 4 + 5)), 0.0]]


def test_a_row_is_saturated_above_99_parts_in_100_and_frozen_by_its_trace() -> None:
    weights = torch.tensor([0.992, 0.008]).double()  # Σ w(1 − w) = 0.0159: saturated, and not frozen
    scores = torch.stack([torch.zeros(2), weights.log()]).expand(2, 2, 2)
    found = with_scores(small("softmax"), scores.double(), some_ids(1, 2))
    assert (found.saturated[0, 0], found.frozen[0, 0]) == (1, 0)
    assert found.trace[0, 0] == pytest.approx(2 * 0.992 * 0.008)


@pytest.mark.parametrize(("weight", "part"), [(0.0051, 0.0), (0.0049, 0.5)])
def test_a_weight_is_near_zero_below_a_hundredth_of_what_a_uniform_average_gives(weight: float, part: float) -> None:
    scores = torch.stack([torch.zeros(2), torch.tensor([weight, 1 - weight]).log()]).double().expand(2, 2, 2)
    assert with_scores(small("softmax"), scores, some_ids(1, 2)).far_below_uniform.tolist() == [[part, part]]


def test_the_spread_of_scores_is_that_of_the_visible_ones_of_rows_with_a_choice() -> None:
    scores = torch.randn(2, 5, 5, dtype=torch.float64) + 100 * torch.arange(5)[:, None]
    found = with_scores(small("softmax"), scores, some_ids(1, 5))
    rows = [[scores[head, query, : query + 1] for query in range(1, 5)] for head in range(2)]
    together = torch.stack([torch.cat(a_head).std(correction=0) for a_head in rows])
    within = torch.stack([torch.stack([row.std(correction=0) for row in a_head]).mean() for a_head in rows])
    close(found.score_std[0], together)
    close(found.row_score_std[0], within)
    assert (found.score_std > 20 * found.row_score_std).all()


def test_scores_that_are_not_divided_spread_by_the_root_of_the_width_more() -> None:
    divided, undivided = (
        score_statistics(small("softmax", d_head=16, scale_scores=scale), some_ids()).score_std
        for scale in (True, False)
    )
    close(undivided, 4 * divided)


@pytest.mark.parametrize(
    "variant", ["softmax", "softmax1", "sink", "sigmoid", "topk,k=3", "uniform", "table", "forgetting"]
)
def test_the_trace_is_that_of_the_jacobian_of_weights_by_scores(variant: str) -> None:
    model, scores = small(variant), 2 * torch.randn(1, 2, 5, 5, dtype=torch.float64)
    visible = torch.ones(1, 1, 5, 5, dtype=torch.bool).tril()
    found = with_scores(model, scores[0], some_ids(1, 5))
    jacobian = torch.autograd.functional.jacobian(lambda x: model.blocks[0].mixer.weigh(x, visible), scores)
    by_row = jacobian.view(50, 50).diagonal().view(2, 5, 5).sum(-1)[:, 1:]
    close(found.trace[0], by_row.mean(-1))
    close(found.frozen[0], (by_row < 0.01).double().mean(-1))


@averaging(ONE_A_MIXER)
def test_statistics_follow_from_the_weights_of_the_model(case: Case) -> None:
    model, ids = case.model(), some_ids()
    found = score_statistics(model, ids)
    for layer, w_bhqk in enumerate(weights[:, :, 1:] for weights in model.weights(ids)):
        share = w_bhqk.abs() / w_bhqk.abs().sum(-1, keepdim=True)
        entropy = -(share * share.clamp(min=1e-300).log()).sum(-1)
        close(found.entropy[layer], entropy.mean((0, 2)))
        close(found.effective_tokens[layer], entropy.exp().mean((0, 2)))
        close(found.sink[layer], w_bhqk[..., 0].mean((0, 2)))
        close(found.row_sum[layer], w_bhqk.sum(-1).mean((0, 2)))
        close(found.positive[layer] + found.negative[layer], w_bhqk.abs().sum(-1).mean((0, 2)))
    assert found.effective_tokens.max() <= found.visible_keys
    has_scores = "blocks.0.attn.hook_attn_scores" in model.hook_names()
    assert bool(found.score_std.isfinite().all()) == bool(found.trace.isfinite().all()) == has_scores


@averaging(ONE_A_MIXER)
@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
def test_a_padded_row_is_measured_as_the_row_alone(case: Case, left: bool) -> None:
    model, ids = case.model(), some_ids(1)
    kept = slice(3, None) if left else slice(0, TIME - 3)
    real = torch.zeros(1, TIME, dtype=torch.bool)
    real[:, kept] = True
    padded, alone = score_statistics(model, ids, real=real), score_statistics(model, ids[:, kept])
    alike(padded, alone)
    for name in ("rows", "visible_keys", "uniform_sink"):
        assert getattr(padded, name) == getattr(alone, name)


@averaging(ONE_A_MIXER)
def test_packed_documents_are_measured_as_rows_of_their_own(case: Case) -> None:
    model, ids = case.model(), some_ids(2, 4)
    packed = score_statistics(model, ids.reshape(1, 8), documents=torch.tensor([[0] * 4 + [1] * 4]))
    alike(packed, score_statistics(model, ids))


@pytest.mark.parametrize("variant", ["differential", "differential2"])
def test_both_maps_of_a_pair_are_measured_as_the_softmax_maps_that_they_are(variant: str) -> None:
    model, ids = Case(variant, variant).model(), some_ids()
    found = score_statistics(model, ids)
    assert found.first is not None
    assert found.second is not None
    _, cache = model.run_with_cache(ids)
    for n, of_map in ((1, found.first), (2, found.second)):
        maps = cache.stack(f"pattern_{n}")[:, :, :, 1:]
        close(of_map.row_sum, torch.ones_like(of_map.row_sum))
        close(of_map.trace, (maps * (1 - maps)).sum(-1).mean((1, 3)))
        scores = cache[f"attn_scores_{n}", 1][:, :, 1:]
        spread = torch.stack([a_head[a_head > -math.inf].std(correction=0) for a_head in scores.unbind(1)])
        close(of_map.score_std[1], spread)
    assert found.negative.min() > 0
    if variant == "differential":
        share = torch.stack([block.mixer.lambda_now() for block in model.blocks])[:, None].detach()
        close(found.row_sum, (1 - share).expand_as(found.row_sum))


def test_other_mixers_have_no_pair() -> None:
    found = score_statistics(small("softmax"), some_ids())
    assert (found.first, found.second) == (None, None)


def test_a_mixer_that_shows_nothing_on_the_way_is_measured_by_its_weights() -> None:
    found = score_statistics(small("tests.instruments.test_passes:OwnForward"), some_ids())
    usual = score_statistics(small("softmax"), some_ids())
    close(found.effective_tokens, usual.effective_tokens)
    assert found.score_std.isnan().all()


def test_rows_without_weight_have_no_entropy_and_are_said_to_be_empty() -> None:
    scores = torch.zeros(2, 3, 3, dtype=torch.float64)
    scores[:, 2] = -1e4
    found = with_scores(small("sigmoid"), scores, some_ids(1, 3))
    close(found.empty, torch.full_like(found.empty, 0.5))
    close(found.effective_tokens, torch.full_like(found.empty, 2.0))
    close(found.entropy, torch.full_like(found.empty, math.log(2)))
    close(found.negative, torch.zeros_like(found.empty))


def test_a_single_token_gives_no_row_to_measure_and_nothing_to_draw() -> None:
    found = score_statistics(small("softmax"), some_ids(1, 1))
    assert found.rows == 0
    assert found.entropy.isnan().all()
    with pytest.raises(UserError, match="no query sees two keys or more, so there is nothing to draw"):
        found.draw()
    assert found._repr_html_() is None  # a notebook shows the values as text


def test_a_statistic_that_a_mixer_does_not_have_says_where_another_is() -> None:
    with pytest.raises(UserError, match=r"no score_std: its two maps have theirs in \.first, \.second"):
        score_statistics(small("differential"), some_ids()).draw("score_std")
    with pytest.raises(UserError, match="no score_std: draw another statistic"):
        score_statistics(small("linear"), some_ids()).draw("score_std")


def test_statistics_draw_themselves_with_the_finding_as_title() -> None:
    found = score_statistics(small("uniform", n_layers=2), some_ids(1, 4))
    assert found.draw().title == "Effective tokens: 3 to 3 of 3 that a query sees"
    assert [row[0] for row in found.draw("sink").table.rows] == ["layer 0", "layer 1"]
    assert "<svg" in (found._repr_html_() or "")
    assert repr(found) == "ScoreStatistics(2 layers × 2 heads, 3 rows)"
    with pytest.raises(UserError, match="did you mean 'entropy'"):
        found.draw("entropie")
    for name in NAMES:
        found.draw(name)


def test_a_mixer_without_weights_is_refused() -> None:
    with pytest.raises(UserError, match="lstm has no weights to measure"):
        score_statistics(small("lstm"), some_ids())


def test_a_sum_stays_one_in_a_title() -> None:
    found = score_statistics(Case("", "softmax").model(), some_ids())
    assert found.draw("frozen").title.startswith("Part of rows with Σ w(1 − w) below 0.01: ")
