"""In tests the shapes that signatures speak of are checked at run time: a wrong axis is refused where it enters."""

import jaxtyping
import pytest
import torch

from headstock.model.attention import dot_products, fused_attention, masked_softmax
from headstock.model.generation import generate
from headstock.model.visibility import Visible
from tests.model.cases import Case

VISIBLE = Visible(9, 9, torch.device("cpu"))


def test_a_mask_of_other_keys_than_the_scores_is_refused() -> None:
    with pytest.raises(jaxtyping.TypeCheckError, match="visible_bhqk"):
        masked_softmax(torch.zeros(2, 4, 9, 9), torch.ones(2, 1, 9, 8, dtype=torch.bool))


def test_a_mask_that_is_not_boolean_is_refused() -> None:
    with pytest.raises(jaxtyping.TypeCheckError, match="visible_bhqk"):
        masked_softmax(torch.zeros(2, 4, 9, 9), torch.ones(2, 1, 9, 9))


def test_time_in_the_place_of_heads_is_refused() -> None:
    q, k = torch.zeros(2, 4, 9, 8), torch.zeros(2, 9, 4, 8)
    with pytest.raises(jaxtyping.TypeCheckError, match="v_bhkd"):
        fused_attention(q, torch.zeros(2, 4, 9, 8), k, VISIBLE)


def test_keys_of_another_size_than_the_queries_are_refused() -> None:
    with pytest.raises(jaxtyping.TypeCheckError, match="k_bhkd"):
        dot_products(torch.zeros(2, 4, 9, 8), torch.zeros(2, 4, 9, 6), VISIBLE)


def test_a_feedforward_that_forgets_the_batch_is_caught_on_its_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Case("softmax", "softmax").model().blocks[0].feedforward
    monkeypatch.setattr(layer, "act", lambda x: x[0])
    with pytest.raises(jaxtyping.TypeCheckError, match="return value"):
        layer(torch.zeros(2, 4, 16, dtype=torch.float64))


def test_ids_that_are_no_integers_are_refused() -> None:
    model = Case("softmax", "softmax").model()
    for read in (model, model.hidden, model.weights, lambda ids: generate(model, ids, 1)):
        with pytest.raises(jaxtyping.TypeCheckError, match="ids_bq"):
            read(torch.zeros(2, 4))
