import numpy as np
import pytest
import torch

import headstock as hs
from headstock.errors import UserError
from headstock.instruments.viewer import inspected, inspecting
from headstock.instruments.viewer.encoding import largest_error
from tests.instruments.viewer.unpacking import weights_of
from tests.model.cases import CASES, TIME, Case, averaging, every_mixer, some_ids

IDS = some_ids(batch=1)


@averaging(CASES)
def test_every_map_is_the_models_own(case: Case) -> None:
    model = case.model()
    view = inspected(model, IDS)
    expected = model.weights(IDS)
    assert len(view.layers) == len(expected)
    for layer, weights_bhqk in zip(view.layers, expected, strict=True):
        assert len(layer.maps) == weights_bhqk.shape[1]
        for one, map_qk in zip(layer.maps, weights_bhqk[0].detach().numpy(), strict=True):
            shown = weights_of(one, view.width, TIME)
            allowed = largest_error(one.scale, one.scale, view.width, one.signed) + 1e-6 * one.scale
            assert np.abs(shown - map_qk).max() <= allowed


@every_mixer
def test_predictions_are_the_models_logits_and_the_model_is_left_as_it_was(case: Case) -> None:
    model = case.model().train()
    view = inspected(model, IDS[0], label=lambda token: f"<{token}>", top=3)
    assert model.training
    with torch.no_grad():
        shares = model.eval()(IDS)[0].softmax(-1)
    assert view.labels == tuple(f"<{token}>" for token in IDS[0].tolist())
    for place, found in enumerate(view.predictions):
        assert found.top[0][0] == f"<{int(shares[place].argmax())}>"
        if place + 1 < TIME:
            assert found.probability == pytest.approx(float(shares[place, IDS[0, place + 1]]), abs=1e-6)
    assert not model.hook_stack._handles


@pytest.mark.parametrize("variant", ["differential+rope", "differential2+rope"])
def test_a_difference_is_kept_with_its_two_maps_and_the_share_of_the_second(variant: str) -> None:
    view = inspected(Case("", variant).model(), IDS)
    for layer in view.layers:
        assert len(layer.pairs) == len(layer.shares) == len(layer.maps)
        for whole, pair, share in zip(layer.maps, layer.pairs, layer.shares, strict=True):
            difference, first, second = (weights_of(one, view.width, TIME) for one in (whole, *pair))
            by = np.array(share)[:, None]
            assert np.abs(difference - (first - by * second)).max() < 1e-3 * whole.scale
            assert np.abs(second).max() > 0.1


def test_the_maps_of_a_difference_are_left_out_where_they_would_be_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspecting, "MOST_WITH_PAIRS", 10)
    view = inspected(Case("", "differential").model(), IDS)
    assert not view.layers[0].pairs
    assert "left out" in view.notes[0]


def test_a_mixer_without_weights_has_no_maps_and_says_why() -> None:
    view = inspected(Case("", "lstm").model(), IDS)
    assert (view.layers, view.heads) == ((), ())
    assert len(view.predictions) == TIME
    assert "no average of earlier tokens" in view.notes[0]


def test_a_model_without_blocks_has_no_maps_and_says_why() -> None:
    view = inspected(Case("", "softmax,n_layers=0").model(), IDS)
    assert view.layers == ()
    assert "no blocks" in view.notes[0]


def test_a_model_that_reads_both_ways_predicts_nothing_and_says_why() -> None:
    view = inspected(Case("", "softmax,causal=false").model(), IDS)
    assert view.predictions == ()
    assert not view.layers[0].maps[0].triangle
    assert "causal=false" in view.notes[0]


@pytest.mark.parametrize("variant", ["softmax", "lstm+none"])
def test_nothing_is_dropped_from_a_model_in_training(variant: str) -> None:
    model = Case("", f"{variant},dropout_residual=0.5,dropout_embedding=0.5").model().train()
    assert inspected(model, IDS).predictions == inspected(model.eval(), IDS).predictions


def test_without_maps_the_heads_are_summed_up_all_the_same() -> None:
    model = Case("", "softmax").model()
    whole, without = inspected(model, IDS), inspected(model, IDS, maps=False)
    assert without.layers == ()
    assert without.heads == whole.heads
    assert len(whole.heads) == 8


@pytest.mark.parametrize("ids", [torch.zeros(2, 3, dtype=torch.int64), torch.zeros(1, 0, dtype=torch.int64), []])
def test_one_text_is_read_at_a_time(ids: object) -> None:
    with pytest.raises(UserError, match="one text"):
        inspected(Case("", "softmax").model(), ids)  # type: ignore[arg-type]


def test_a_view_says_how_large_it_is_and_how_well_it_was_predicted() -> None:
    model = Case("", "softmax").model(torch.float32)
    ids = model.generate(IDS[:, :1], 8)
    assert "8 of 8 next tokens predicted" in inspected(model, ids).summary
    assert "2 layers × 4 heads · 9 tokens · loss" in inspected(model, ids).summary


def test_a_page_is_saved_over_the_one_before_and_under_no_other_ending(tmp_path) -> None:
    view = inspected(Case("", "softmax").model(), IDS)
    (tmp_path / "a.html").write_text("before")
    assert view.save(tmp_path / "a.html").read_text().startswith("<!doctype html>")
    with pytest.raises(UserError, match=r"give it the ending \.html"):
        view.save(tmp_path / "a.png")
    (tmp_path / "b.html").mkdir()
    with pytest.raises(UserError, match="is a folder"):
        view.save(tmp_path / "b.html")


def test_patterns_of_many_texts_draw_the_first_and_say_so() -> None:
    model = Case("", "softmax").model()
    patterns = hs.instruments.attention_patterns(model, some_ids(batch=6))
    views = inspecting.views_of(patterns)
    assert len(views) == inspecting.MOST_TEXTS
    assert views[-1].notes == ("Of 6 texts the first 4 texts are drawn.",)
    assert "text 2 of 6" in views[1].title
    assert inspecting.views_of(hs.instruments.attention_patterns(model, IDS))[0].notes == ()
