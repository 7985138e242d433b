"""What an average can and cannot know: orders, contents, places."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstock.model.attention import masked_softmax, shared_by_groups
from headstock.model.mixers.uniform import Uniform
from headstock.model.visibility import Visible
from tests.model.cases import TIME, VOCAB, Case, close, some_ids

CPU = torch.device("cpu")
BLIND = {"n_layers": 1}


@given(order=st.permutations(range(TIME)))
def test_a_uniform_average_cannot_tell_a_shuffled_prefix(order: list[int]) -> None:
    model = Case("uniform", "uniform+none,residual=replacing").model(**BLIND)
    ids = some_ids(batch=1)
    with torch.no_grad():
        close(model(ids[:, order])[:, -1], model(ids)[:, -1])


@given(order=st.permutations(range(TIME - 1)))
def test_one_causal_layer_without_positions_sees_its_prefix_as_a_bag(order: list[int]) -> None:
    ids = some_ids(batch=1)
    for mixer in ("uniform", "softmax", "softmax1", "differential"):
        model = Case(mixer, f"{mixer}+none").model(**BLIND)
        with torch.no_grad():
            close(model(ids[:, [*order, TIME - 1]])[:, -1], model(ids)[:, -1])


@pytest.mark.parametrize("variant", ["softmax+none", "table+none", "softmax+rope", "softmax+alibi", "uniform+learned"])
def test_depth_a_table_or_positions_tell_a_shuffled_prefix(variant: str) -> None:
    model = Case(variant, variant).model(n_layers=2 if variant == "softmax+none" else 1)
    ids = some_ids(batch=1)
    shuffled = ids[:, [3, 1, 0, 2, *range(4, TIME)]]
    assert (model(shuffled)[:, -1] - model(ids)[:, -1]).abs().max() > 1e-3


def test_a_loop_a_triangle_and_a_masked_softmax_of_zeros_are_one_average() -> None:
    values = torch.randn(2, 3, TIME, 5, dtype=torch.float64)
    loop = torch.stack([values[:, :, : now + 1].mean(2) for now in range(TIME)], dim=2)
    triangle = torch.ones(TIME, TIME, dtype=torch.float64).tril()
    matmul = triangle / triangle.sum(-1, keepdim=True) @ values
    visible = Visible(TIME, TIME, CPU)
    softmax = masked_softmax(torch.zeros(2, 3, TIME, TIME, dtype=torch.float64), visible.dense) @ values
    mixer = Uniform(Case("uniform", "uniform,n_heads=3,d_head=5").config(), 0)
    running = mixer.mix_fast(values[..., :0], values[..., :0], values, visible)
    assert running is not None
    for average in (matmul, softmax, running):
        close(average, loop, atol=1e-14)


def test_a_table_cannot_depend_on_content() -> None:
    model = Case("table", "table+learned").model()
    for weights, other in zip(model.weights(some_ids()), model.weights((some_ids() + 3) % VOCAB), strict=True):
        assert torch.equal(weights, other)
        assert torch.equal(weights, weights[:1].expand_as(weights))
    assert not torch.equal(*Case("softmax", "softmax").model(n_layers=1).weights(some_ids())[0][:2])


def test_one_map_for_queries_and_keys_makes_a_symmetric_relation() -> None:
    for variant, symmetric in (("query_key=identity", True), ("query_key=shared", True), ("query_key=learned", False)):
        model = Case(variant, f"softmax,n_layers=1,{variant}").model()
        scores: list[torch.Tensor] = []
        mixer = model.blocks[0].mixer
        score = mixer.score
        mixer.score = lambda *args, score=score, scores=scores: scores.append(score(*args)) or scores[0]
        model.weights(some_ids())
        assert torch.allclose(scores[0], scores[0].transpose(-1, -2)) is symmetric


@given(
    groups=st.integers(1, 4), per_group=st.integers(1, 4), together=st.integers(1, 2), batch=st.integers(0, 3),
    width=st.integers(0, 3),
)  # fmt: skip
def test_groups_are_expanded_head_by_head(groups: int, per_group: int, together: int, batch: int, width: int) -> None:
    heads = groups * together
    x = torch.randn(batch, heads, 5, width)
    expanded = shared_by_groups(x, heads * per_group, together)
    assert expanded.shape == (batch, heads * per_group, 5, width)
    for head in range(heads * per_group):
        unit, place = divmod(head, together)
        assert torch.equal(expanded[:, head], x[:, unit // per_group * together + place])


@pytest.mark.parametrize(
    "variant", ["softmax+rope", "softmax1+alibi", "uniform+learned", "table+learned", "differential"]
)
def test_grouped_heads_equal_as_many_heads_with_equal_maps(variant: str) -> None:
    grouped = Case("grouped", f"{variant},n_heads=8,n_kv_heads=4").model()
    whole = Case("whole", f"{variant},n_heads=8").model()
    numbers = grouped.state_dict()
    reads = torch.tensor([0, 1, 0, 1, 2, 3, 2, 3] if variant == "differential" else [0, 0, 1, 1, 2, 2, 3, 3])
    for name in numbers:
        if name.endswith((".mixer.key.weight", ".mixer.value.weight")):
            numbers[name] = numbers[name].unflatten(0, (4, -1))[reads].flatten(0, 1)
    whole.load_state_dict(numbers)
    close(whole(some_ids()), grouped(some_ids()))
