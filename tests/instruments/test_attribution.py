"""A logit is the sum of what each part gives, with each row's own norms."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstock.errors import UserError
from headstock.instruments.ablation import ablated
from headstock.instruments.attribution import LogitAttribution, logit_attribution
from tests.model.cases import CHOICES, ONE_A_MIXER, VOCAB, Case, close, some_ids

PLACEMENTS = [
    Case("post-final", "softmax,norm_placement=post,final_norm=true"),
    Case("post-rmsnorm", "softmax,norm_placement=post,norm=rmsnorm,output_bias=true"),
    Case("post-replacing", "softmax,norm_placement=post,residual=replacing"),
    Case("replacing-bare", "softmax,residual=replacing,feedforward=none"),
    Case("three-blocks", "differential+rope,n_layers=3,output_bias=true,unembed_bias=true"),
]


@pytest.mark.parametrize("case", [*ONE_A_MIXER, *CHOICES, *PLACEMENTS], ids=str)
def test_the_parts_sum_to_the_logit_in_every_model(case: Case) -> None:
    model, ids = case.model(), some_ids()
    logits = model(ids)[torch.arange(3), torch.tensor([8, 2, 5])]
    found = logit_attribution(model, ids, torch.tensor([0, 7, 16]), position=[-1, 2, 5])
    close(found.total, logits[torch.arange(3), torch.tensor([0, 7, 16])], 1e-9)
    close(found.values.sum(0), found.total, 1e-9)
    pair = logit_attribution(model, ids, 3, position=[-1, 2, 5], against=[1, 2, 4])
    close(pair.values.sum(0), logits[:, 3] - logits[torch.arange(3), torch.tensor([1, 2, 4])], 1e-9)


def test_each_row_has_its_own_norms() -> None:
    model, ids = Case("", "softmax+rope").model(), some_ids()
    together = logit_attribution(model, ids, [1, 2, 3])
    for row in range(3):
        alone = logit_attribution(model, ids[row : row + 1], row + 1)
        close(alone.values[:, 0], together.values[:, row])


@given(st.integers(0, VOCAB - 1), st.integers(0, VOCAB - 1), st.integers(-9, 8))
def test_a_difference_is_the_difference_of_two_attributions(one: int, other: int, position: int) -> None:
    model, ids = Case("", "differential,unembed_bias=true").model(), some_ids()
    apart = [logit_attribution(model, ids, token, position=position) for token in (one, other)]
    both = logit_attribution(model, ids, one, position=position, against=other)
    close(both.values, apart[0].values - apart[1].values)
    close(both.total, apart[0].total - apart[1].total)


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
def test_a_part_is_worth_what_the_logit_loses_where_norms_are_held(norm: str) -> None:
    model, ids = Case("", f"softmax,norm={norm},n_layers=1,feedforward=none").model(), some_ids()
    found = logit_attribution(model, ids, 4)
    _, cache = model.run_with_cache(ids, ["blocks.0.hook_resid_post", "blocks.0.attn.hook_result"])
    x, head = cache["resid_post", 0][:, -1], cache["result", 0][:, -1, 2]
    centred, part = (
        (x - x.mean(-1, keepdim=True), head - head.mean(-1, keepdim=True)) if norm == "layernorm" else (x, head)
    )
    size = (centred.square().mean(-1, keepdim=True) + model.config.norm_eps).sqrt()
    expected = (part / size * model.final_norm.weight) @ model.unembed.weight[4]
    close(found.of("block 0 head 2"), expected)


def test_without_norms_a_last_head_is_worth_what_ablating_it_costs() -> None:
    model, ids = Case("", "softmax,norm=none,n_layers=1,feedforward=none").model(), some_ids()
    found = logit_attribution(model, ids, 4)
    with ablated(model, [(0, 1)]):
        without = model(ids)[:, -1, 4]
    close(found.by_head()[0, 1], found.total - without)


def test_parts_are_named_in_the_order_of_the_pass() -> None:
    model = Case("", "softmax,n_heads=2,n_layers=1,output_bias=true,unembed_bias=true").model()
    assert logit_attribution(model, some_ids(), 0).parts == (
        "embedding",
        "position",
        "block 0 head 0",
        "block 0 head 1",
        "block 0 attention bias",
        "block 0 feed-forward",
        "final norm bias",
        "unembedding bias",
    )


def test_where_sub_layers_replace_their_input_only_the_last_are_direct() -> None:
    replacing = logit_attribution(Case("", "softmax,residual=replacing,norm=none").model(), some_ids(), 0)
    assert replacing.parts == ("block 1 feed-forward",)
    with pytest.raises(UserError, match="no part is a head"):
        replacing.by_head()
    bare = logit_attribution(Case("", "softmax,residual=replacing,norm=none,feedforward=none").model(), some_ids(), 0)
    assert bare.by_head().isnan().all(dim=2).all(dim=1).tolist() == [True, False]


def test_heads_are_those_of_the_output_map() -> None:
    assert logit_attribution(Case("", "differential").model(), some_ids(), 0).by_head().shape == (2, 2, 3)
    assert logit_attribution(Case("", "lstm").model(), some_ids(), 0).by_head().shape == (2, 4, 3)


def test_padding_is_nothing_to_a_rows_own_last_token() -> None:
    model, ids = Case("", "softmax").model(), some_ids(2)
    real = torch.ones_like(ids, dtype=torch.bool)
    real[1, 5:] = False
    padded = logit_attribution(model, ids, 3, position=[8, 4], real=real)
    close(padded.values[:, 1], logit_attribution(model, ids[1:, :5], 3).values[:, 0])


def test_what_a_hook_of_the_users_changes_shows_as_a_remainder() -> None:
    model, ids = Case("", "softmax").model(), some_ids()
    assert logit_attribution(model, ids, 0).remainder.abs().max() < 1e-9
    with model.hooks([("blocks.1.hook_resid_post", lambda value, hook: value + 1 + value.square())]):
        assert logit_attribution(model, ids, 0).remainder.abs().max() > 1e-3


def test_a_float32_model_leaves_rounding_alone() -> None:
    model, ids = Case("", "softmax").model(torch.float32), some_ids()
    assert logit_attribution(model, ids, 0).remainder.abs().max() < 1e-4


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"targets": VOCAB}, "no token 17: choose from 0 to 16"),
        ({"targets": -1}, "no token -1"),
        ({"targets": [1, 2]}, "each of the 3 rows"),
        ({"targets": 1.5}, "an integer"),
        ({"targets": 1, "position": 9}, "no position 9: choose from -9 to 8"),
        ({"targets": 1, "against": [1, 2, 17]}, "no token"),
    ],
)
def test_what_is_not_there_is_refused(choices: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        logit_attribution(Case("", "softmax").model(), some_ids(), **choices)


@pytest.mark.parametrize("shape", [(0, 5), (2, 0)])
def test_nothing_to_read_has_no_logit(shape: tuple[int, int]) -> None:
    with pytest.raises(UserError, match="no token to read"):
        logit_attribution(Case("", "softmax").model(), torch.zeros(shape, dtype=torch.int64), 0)


def test_it_draws_itself_and_gathers_what_is_small() -> None:
    found = logit_attribution(Case("", "softmax,n_layers=4").model(), some_ids(), 0)
    picture = found.draw()
    assert [row[0] for row in picture.table.rows][-1] == f"{len(found.parts) - 16} other parts"
    shown = sum(found.values.mean(1).tolist())
    assert shown == pytest.approx(found.total.mean().item())
    assert "<svg" in found._repr_html_()
    assert "<svg" in found.draw_heads()._repr_html_()
    one = LogitAttribution(("embedding",), torch.ones(1, 1).double(), torch.ones(1).double(), ())
    assert one.draw().title.endswith("embedding")
    with pytest.raises(UserError, match="no part 'embeding'"):
        one.of("embeding")
