"""Heads that do the same are alike, heads that look elsewhere are not."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import pearsonr
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.redundancy import _overlap, head_redundancy
from headstock.model.mixers import mixer_class
from tests.model.cases import ONE_A_MIXER, Case, close, every_mixer, some_ids


def test_a_head_copied_is_wholly_redundant_and_heads_apart_are_not() -> None:
    model, ids = Case("", "softmax").model(), some_ids()
    mixer = model.blocks[0].mixer
    with torch.no_grad():
        for linear in (mixer.query, mixer.key, mixer.value):
            linear.weight[4:8] = linear.weight[:4]
    found = head_redundancy(model, ids)
    for what in ("cosine", "overlap", "outputs"):
        assert found.of(what)[0, 0, 1].item() == pytest.approx(1.0)
        assert found.of(what)[0, 0, 2] < 0.95
        close(found.of(what), found.of(what).mT)
        close(found.of(what).diagonal(dim1=1, dim2=2), torch.ones(2, 4, dtype=torch.float64), 1e-7)


def test_tables_that_look_at_different_keys_do_not_overlap() -> None:
    model = Case("", "table").model()
    with torch.no_grad():
        table = model.blocks[0].mixer.table_hqk
        table.zero_()
        for query in range(1, 12):
            table[0, query, query] = table[1, query, query - 1] = 1000.0
    found = head_redundancy(model, some_ids())
    assert found.of("overlap")[0, 0, 1] == pytest.approx(0.0)
    assert found.of("cosine")[0, 0, 1] == pytest.approx(0.0)


@every_mixer
def test_likeness_is_as_defined_row_by_row(case: Case) -> None:
    model, ids = case.model(), some_ids()
    found = head_redundancy(model, ids)
    kind = mixer_class(case.variant).weights_are
    assert (found.overlap is not None) == (kind == "normalised")
    assert (found.map_cosine is not None) == case.variant.startswith("differential")
    if kind == "none":
        assert found.cosine is None
        return
    weights = model.weights(ids)[1].detach()[:, :, 1:]
    one, other = weights[:, 0].flatten(0, 1), weights[:, 1].flatten(0, 1)
    assert found.cosine is not None
    close(found.cosine[1, 0, 1], torch.nn.functional.cosine_similarity(one, other, dim=-1).mean())
    if found.overlap is not None:
        apart = [jensenshannon(p, q, base=2) for p, q in zip(one.numpy(), other.numpy(), strict=True)]
        assert found.overlap[1, 0, 1].item() == pytest.approx(1 - sum(apart) / len(apart))


@every_mixer
def test_outputs_are_compared_by_their_gram_matrices(case: Case) -> None:
    model, ids = case.model(), some_ids()
    _, cache = model.run_with_cache(ids, "blocks.1.attn.hook_z")
    z = cache["z", 1].flatten(0, 1)
    n = len(z)
    centre = torch.eye(n).double() - 1 / n

    def gram(head: int) -> Tensor:
        return centre @ z[:, head] @ z[:, head].T @ centre

    expected = (gram(0) * gram(1)).sum() / gram(0).norm() / gram(1).norm()
    found = head_redundancy(model, ids)
    close(found.outputs[1, 0, 1], expected)
    assert found.tokens == n


def test_the_two_maps_of_a_pair_are_compared() -> None:
    for variant in ("differential", "differential2"):
        model, ids = Case("", variant).model(), some_ids()
        found = head_redundancy(model, ids)
        names = ["blocks.0.attn.hook_pattern_1", "blocks.0.attn.hook_pattern_2"]
        _, cache = model.run_with_cache(ids, names)
        one, other = (cache[name].detach()[:, 1, 1:].flatten(0, 1) for name in names)
        assert found.map_cosine is not None
        assert found.map_overlap is not None
        close(found.map_cosine[0, 1], torch.nn.functional.cosine_similarity(one, other, dim=-1).mean())
        apart = [jensenshannon(p, q, base=2) for p, q in zip(one.numpy(), other.numpy(), strict=True)]
        assert found.map_overlap[0, 1].item() == pytest.approx(1 - sum(apart) / len(apart))


@pytest.mark.parametrize("variant", ["differential", "differential2", "differential,window=4"])
def test_the_correlation_of_the_two_maps_is_over_the_keys_that_a_query_sees(variant: str) -> None:
    model, ids = Case("", variant).model(), some_ids()
    found = head_redundancy(model, ids)
    names = ["blocks.0.attn.hook_pattern_1", "blocks.0.attn.hook_pattern_2"]
    _, cache = model.run_with_cache(ids, names)
    one, other = (cache[name].detach()[:, 1] for name in names)
    seen = one > 0
    each = [
        pearsonr(one[row, query][seen[row, query]].numpy(), other[row, query][seen[row, query]].numpy()).statistic
        for row in range(len(one))
        for query in range(2, one.shape[1])  # with two keys any two maps correlate wholly
    ]
    assert found.map_correlation is not None
    assert found.map_correlation[0, 1].item() == pytest.approx(sum(each) / len(each))


def test_maps_that_are_uniform_correlate_with_nothing() -> None:
    model = Case("", "differential").model(torch.float32)
    with torch.no_grad():
        for mixer in (model.blocks[0].mixer, model.blocks[1].mixer):
            mixer.query.weight[4:8] = 0.0  # the first pair's second map
            mixer.query.weight[12:16] = -mixer.query.weight[8:12]
            mixer.key.weight[12:16] = mixer.key.weight[8:12]  # the second pair's looks where the first does not
    found = head_redundancy(model, some_ids())
    assert found.map_correlation is not None
    assert found.map_cosine is not None
    assert found.map_correlation[:, 0].isnan().all()
    assert (found.map_correlation[:, 1] < 0).all()
    assert (found.map_cosine > 0).all()


def test_a_pair_whose_maps_are_the_same_is_said_to_be() -> None:
    model = Case("", "differential").model()
    with torch.no_grad():
        for linear in (model.blocks[0].mixer.query, model.blocks[0].mixer.key):
            linear.weight[4:8] = linear.weight[:4]
    found = head_redundancy(model, some_ids())
    assert found.map_overlap is not None
    assert found.map_overlap[0, 0].item() == pytest.approx(1.0)
    assert found.map_overlap[0, 1] < 0.99


@pytest.mark.parametrize("case", ONE_A_MIXER, ids=str)
@pytest.mark.parametrize("left", [False, True])
def test_padding_changes_nothing(case: Case, left: bool) -> None:
    model, ids = case.model(), some_ids(2, 6)
    padding = torch.zeros(2, 2, dtype=ids.dtype)
    padded = torch.cat([padding, ids] if left else [ids, padding], dim=1)
    ones = torch.ones_like(ids)
    real = torch.cat([padding, ones] if left else [ones, padding], dim=1).bool()
    alone, beside = head_redundancy(model, ids), head_redundancy(model, padded, real=real)
    for what in ("cosine", "overlap", "outputs", "map_cosine", "map_overlap", "map_correlation"):
        one, other = getattr(alone, what), getattr(beside, what)
        assert (one is None) == (other is None)
        if one is not None:
            close(other, one)


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda p: sum(p) > 0.1), min_size=2, max_size=2)
)
def test_the_distance_is_scipys(pair: list[list[float]]) -> None:
    one, other = (torch.tensor(p, dtype=torch.float64) / sum(p) for p in pair)
    expected = jensenshannon(one.numpy(), other.numpy(), base=2)
    assert 1 - _overlap(one[None], other[None, None]).item() == pytest.approx(expected, abs=1e-6)


def test_means_are_over_different_heads() -> None:
    found = head_redundancy(Case("", "softmax").model(), some_ids())
    pairs = [found.outputs[0, a, b].item() for a in range(4) for b in range(4) if a != b]
    assert found.by_layer()[0].item() == pytest.approx(sum(pairs) / 12)
    assert head_redundancy(Case("", "softmax,n_heads=1").model(), some_ids()).by_layer().isnan().all()


def test_it_draws_itself_and_refuses_what_is_not_there() -> None:
    found = head_redundancy(Case("", "differential").model(), some_ids())
    assert "<svg" in found._repr_html_()
    assert found.draw(-1).title == "How alike the heads of layer 1 are"
    for refused in (lambda: found.draw(2), lambda: found.of("overlap"), lambda: found.of("looks")):
        with pytest.raises(UserError, match=r"choose"):
            refused()
    alone = head_redundancy(Case("", "softmax,n_heads=1").model(), some_ids())
    with pytest.raises(UserError, match="nothing to draw"):
        alone.draw()
    assert alone._repr_html_() is None  # so that a notebook shows the values, and no traceback


def test_one_likeness_is_drawn_by_depth_and_what_there_is_not_is_refused() -> None:
    found = head_redundancy(Case("", "softmax").model(), some_ids())
    assert {row[0] for row in found.draw(what="outputs").table.rows} <= {"outputs", ""}
    with pytest.raises(UserError, match="heads are not compared by 'nonsense'"):
        found.draw(what="nonsense")


def test_heads_that_give_every_token_the_same_are_not_compared_by_what_rounding_leaves() -> None:
    model = Case("", "softmax+rope").model()
    for ids in (torch.full((1, 12), 3), torch.tensor([[3]])):
        found = head_redundancy(model, ids)
        assert found.outputs[0].isnan().all()
        found._repr_html_()
