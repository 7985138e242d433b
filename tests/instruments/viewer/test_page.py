import json
import re

import pytest
import torch

import headstock as hs
from headstock.instruments.viewer import as_fragment, as_page, inspected, page
from tests.instruments.viewer.unpacking import Tags, meta_of, unpacked, weights_of
from tests.model.cases import TIME, Case, some_ids

IDS = some_ids(batch=1)
WICKED = ["</script>", "<b>", "&amp;", '"', "'", "\u2028", "\x00", "`${x}`", "-->"]


@pytest.fixture(scope="module")
def view():
    return inspected(Case("", "differential+rope").model(), IDS, label=lambda token: WICKED[token % len(WICKED)])


def test_a_page_asks_for_nothing_from_anywhere(view):
    whole = as_page(view)
    assert not re.findall(r"https?:|url\(|\bsrc=|\bhref=|@import|\bimport\b|fetch\(|XMLHttp|WebSocket|//[a-z]", whole)
    policy = next(attributes for tag, attributes in Tags(whole).found if "http-equiv" in attributes)
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def test_nothing_has_an_id_and_a_fragment_is_one_element_with_its_own_style(view):
    fragment = as_fragment([view, view])
    tags = Tags(fragment).found
    assert not [tag for tag, attributes in tags if "id" in attributes]
    assert fragment.startswith('<div class="hs hs-of-maps">')
    assert fragment.rstrip().endswith("</div>")
    assert not {tag for tag, _ in tags} & {"html", "head", "body", "meta", "link"}
    for rule in re.findall(r"(?:^|})\s*([^{}@]+){", "".join(re.findall(r"<style>(.*?)</style>", fragment, re.DOTALL))):
        assert all(selector.strip().startswith((".hs", "from", "to")) for selector in rule.split(",")), rule


def test_no_label_ends_the_script_that_holds_it(view):
    whole = as_page(view)
    assert meta_of(whole)["labels"] == list(view.labels)
    opened, closed = len(re.findall("<script", whole)), len(re.findall("</script>", whole))
    assert opened == closed == 2 + 3 * 4  # what is told, what draws, and three maps of two heads in two layers
    assert "<b>" not in [f"<{tag}>" for tag, _ in Tags(whole).found]


def test_the_page_holds_every_map_once(view):
    whole = as_page(view)
    told = meta_of(whole)
    for layer, of in enumerate(view.layers):
        for head, one in enumerate(of.maps):
            packed = re.search(rf'data-map="0\.{layer}\.{head}">([^<]*)<', whole)[1]
            shown = unpacked(packed, *told["maps"][0][layer][head], told["width"], TIME)
            assert abs(shown - weights_of(one, view.width, TIME)).max() < 1e-6


def test_predictions_are_told_with_what_comes(view):
    told = meta_of(as_page(view))
    top, share, rank = told["predictions"][0]
    assert top == [[label, pytest.approx(p, rel=1e-3)] for label, p in view.predictions[0].top]
    assert share == pytest.approx(view.predictions[0].probability, rel=1e-3)
    assert rank == view.predictions[0].rank
    assert told["predictions"][-1][1:] == [None, None]


def test_the_text_can_be_read_where_no_script_runs(view):
    plain = inspected(Case("", "softmax").model(), IDS, label=lambda token: f"word{token}")
    text = Tags(as_fragment([plain])).text
    assert "A script draws the maps" in text
    assert " ".join(plain.labels) in text


def test_numbers_that_are_none_are_told_as_none():
    model = Case("", "softmax").model(torch.float32)
    with model.hooks([("blocks.1.attn.hook_q", lambda value, _: value * torch.nan)]):
        told = meta_of(as_page(inspected(model, IDS)))
    assert told["predictions"][0][0][0][1] is None
    assert told["heads"][1][0][1] is None
    assert told["predictions"][0][1:] == [None, None]  # nothing is right where nothing is known
    json.dumps(told, allow_nan=False)


def test_a_notebook_is_spared_more_weights_than_it_should_hold(view, monkeypatch):
    monkeypatch.setattr(page, "MOST_IN_A_NOTEBOOK", view.n_weights)
    assert "data-map" in as_fragment([view])
    monkeypatch.setattr(page, "MOST_IN_A_NOTEBOOK", view.n_weights - 1)
    spared = as_fragment([view])
    assert 'script type="text/plain"' not in spared
    assert not meta_of(spared)["whole"]
    assert "more than a notebook should hold" in Tags(spared).text
    assert 'data-map="0.0.0"' in as_page(view)


def test_patterns_draw_themselves(view):
    patterns = hs.instruments.attention_patterns(Case("", "softmax").model(), IDS)
    told = meta_of(patterns._repr_html_())
    assert told["labels"] == [str(token) for token in IDS[0].tolist()]
    assert told["predictions"] == []
    assert len(told["maps"][0]) == 2
    assert view._repr_html_() == as_fragment([view])
