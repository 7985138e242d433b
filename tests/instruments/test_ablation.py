"""Exactly the heads that are named are taken away, and leaving gives every bit back."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.ablation import HeadAblations, ablate_heads, ablated
from headstock.instruments.losses import loss_by_position
from headstock.instruments.replacing import head_count, other_rows
from headstock.model.transformer import Transformer
from headstock.training.batch import Batch
from tests.model.cases import ONE_A_MIXER, Case, close, every_mixer, some_ids

HOWS = ("zero", "mean", "resample")
every_how = pytest.mark.parametrize("how", HOWS)


def some_batches(rows: int = 3) -> list[Batch]:
    ids = [some_ids(rows, 8, seed) for seed in (0, 1)]
    return [Batch(x[:, :-1], x[:, 1:], torch.rand(rows, 7) < 0.8) for x in ids]


@every_mixer
@every_how
def test_exactly_the_named_head_is_replaced_and_leaving_restores_every_bit(case: Case, how: str) -> None:
    model, ids = case.model(), some_ids()
    before = model(ids)
    _, whole = model.run_with_cache(ids, "blocks.0.attn.hook_z")
    z = whole["z", 0]
    with ablated(model, [(0, 1)], how, reference=None if how == "zero" else ids):
        logits, cache = model.run_with_cache(ids, "blocks.0.attn.hook_z")
        assert not torch.equal(logits, before)
    others = [head for head in range(z.shape[2]) if head != 1]
    assert torch.equal(cache["z", 0][:, :, others], z[:, :, others])
    expected = {
        "zero": torch.zeros_like(z[:, :, 1]),
        "mean": z[:, :, 1].mean((0, 1)).expand_as(z[:, :, 1]),
        "resample": z[other_rows(len(ids), len(ids), 0)][:, :, 1],
    }[how]
    close(cache["z", 0][:, :, 1], expected)
    assert torch.equal(model(ids), before)


@every_mixer
def test_a_head_that_gives_zero_is_a_head_whose_columns_of_the_output_map_are_zero(case: Case) -> None:
    model, ids = case.model(), some_ids()
    with ablated(model, [(1, 0)]):
        logits = model(ids)
    width = model.config.d_model // head_count(model)
    with torch.no_grad():
        model.blocks[1].mixer.output.weight[:, :width] = 0
    close(logits, model(ids))


def test_functions_that_wait_see_only_passes_over_the_callers_own_tokens() -> None:
    model, ids = Case("", "softmax").model(), some_ids()
    lengths: set[int] = set()

    def sees(value: Tensor, hook: object) -> None:
        lengths.add(value.shape[1])

    with model.hooks([("blocks.0.hook_resid_pre", sees)]), ablated(model, [(0, 1)], "mean", reference=ids):
        model(ids)
        ablate_heads(model, [Batch(ids, ids.roll(-1, 1), torch.ones_like(ids, dtype=torch.bool))])
    assert lengths == {ids.shape[1]}
    with (
        ablated(model, [(0, 1)], "mean", reference=ids, by_position=True),
        ablated(model, [(0, 1)], "resample", reference=ids),
    ):
        model(ids)


def test_an_exception_inside_leaves_nothing_behind() -> None:
    model, ids = Case("", "softmax").model(), some_ids()
    before = model(ids)
    with pytest.raises(RuntimeError), ablated(model, [(0, 0)]):
        raise RuntimeError
    assert torch.equal(model(ids), before)


def test_heads_of_several_layers_and_none() -> None:
    model, ids = Case("", "softmax").model(), some_ids()
    with ablated(model, [(0, 1), (1, 2), (1, 3)]):
        _, cache = model.run_with_cache(ids, lambda name: name.endswith("hook_z"))
    zeros = [[bool((cache["z", layer][:, :, head] == 0).all()) for head in range(4)] for layer in range(2)]
    assert zeros == [[False, True, False, False], [False, False, True, True]]
    with ablated(model, [], "mean"):
        assert torch.equal(model(ids), model(ids))


def test_a_mean_by_position_leaves_padding_out_and_asks_for_the_references_length() -> None:
    model, ids = Case("", "softmax").model(), some_ids()
    real = torch.ones_like(ids, dtype=torch.bool)
    real[0, 6:] = False
    _, cache = model.run_with_cache(ids, "blocks.0.attn.hook_z", real=real)
    z = cache["z", 0][:, :, 2]
    by_position = [z[:, position][real[:, position]].mean(0) for position in range(9)]
    for choice, expected in ((True, torch.stack(by_position)), (False, z[real].mean(0).expand(9, -1))):
        with ablated(model, [(0, 2)], "mean", reference=ids, real=real, by_position=choice):
            _, cache = model.run_with_cache(ids, "blocks.0.attn.hook_z")
            close(cache["z", 0][0, :, 2], expected)
    with ablated(model, [(0, 2)], "mean", reference=ids, by_position=True), pytest.raises(UserError, match="by_pos"):
        model(ids[:, :5])


@every_how
def test_generating_ablated_is_choosing_from_ablated_logits(how: str) -> None:
    model, ids = Case("", "softmax").model(), some_ids(2, 4)
    if how == "resample":
        with ablated(model, [(0, 0)], how, reference=ids), pytest.raises(UserError, match="position by position"):
            model.generate(ids, 3)
        return
    with ablated(model, [(0, 0), (1, 2)], how, reference=None if how == "zero" else ids):
        continued, whole = model.generate(ids, 3), ids
        for _ in range(3):
            whole = torch.cat([whole, model(whole)[:, -1:].argmax(-1)], dim=1)
    assert torch.equal(continued, whole)


@given(st.integers(2, 12), st.integers(0, 1000))
def test_no_row_is_resampled_by_itself_and_each_is_drawn_once(rows: int, seed: int) -> None:
    drawn = other_rows(rows, rows, seed).tolist()
    assert sorted(drawn) == list(range(rows))
    assert all(row != other for row, other in enumerate(drawn))
    assert drawn == other_rows(rows, rows, seed).tolist()


def test_rows_of_another_reference_are_drawn_from_all_of_it() -> None:
    assert set(other_rows(200, 3, 0).tolist()) == {0, 1, 2}
    assert other_rows(1, 2, 0).shape == (1,)


@pytest.mark.parametrize(
    ("case", "how"), [*((case, "zero") for case in ONE_A_MIXER), *((Case("", "softmax"), how) for how in HOWS[1:])]
)
def test_changes_of_the_loss_are_those_of_each_head_alone(case: Case, how: str) -> None:
    model, batches = case.model(), some_batches()
    reference = None if how == "zero" else some_ids(4, 7, seed=5)
    found = ablate_heads(model, iter(batches), how=how, reference=reference)
    assert found.whole == pytest.approx(loss_by_position(model, batches).overall)
    for layer, head in ((0, 0), (1, 1)):
        with ablated(model, [(layer, head)], how, reference=reference):
            loss = loss_by_position(model, batches).overall
        assert found.change[layer, head].item() == pytest.approx(loss - found.whole)
    assert found.standard_error.isfinite().all()
    assert found.change.shape == (2, head_count(model))


def right_now(logits: Tensor, batch: Batch) -> Tensor:
    return (logits.argmax(-1) == batch.targets).double().mean(1)


def test_a_metric_of_ones_own_is_a_mean_over_rows_in_one_number_or_many() -> None:
    model, batches = Case("", "softmax").model(), [some_batches(3)[0], some_batches(2)[1]]
    by_row = ablate_heads(model, batches, metric=right_now)
    by_batch = ablate_heads(model, batches, metric=lambda logits, batch: right_now(logits, batch).mean())
    assert by_row.metric == "right now"
    close(by_row.change, by_batch.change, 1e-12)
    assert by_row.whole == pytest.approx(by_batch.whole)
    rows = torch.cat([right_now(model(batch.inputs), batch) for batch in batches])
    assert by_row.whole == pytest.approx(rows.mean().item())
    with pytest.raises(UserError, match=r"one a row, \(3,\)"):
        ablate_heads(model, batches, metric=lambda logits, batch: logits)
    with pytest.raises(UserError, match="no metric 'los'"):
        ablate_heads(model, batches, metric="los")


def test_a_head_that_does_nothing_changes_nothing_and_the_needed_one_comes_first() -> None:
    model = Case("", "softmax").model()
    with torch.no_grad():
        model.blocks[0].mixer.output.weight[:, :4] = 0
        model.blocks[0].mixer.output.weight[:, 4:8] *= 100
    found = ablate_heads(model, some_batches(), metric=lambda logits, batch: -logits.std((1, 2)))
    assert found.change[0, 0] == 0
    assert found.most_needed()[0] == divmod(int(found.change.argmax()), 4)


@pytest.mark.parametrize(
    ("heads", "how", "choices", "said"),
    [
        ([(2, 0)], "zero", {}, "no head 0 in layer 2"),
        ([(0, 4)], "zero", {}, "2 layers of 4 heads"),
        ([(0, -1)], "zero", {}, "no head -1"),
        ([3], "zero", {}, "names no head"),
        ([(0, 0)], "maen", {}, "did you mean 'mean'"),
        ([(0, 0)], "mean", {}, "give reference"),
        ([(0, 0)], "resample", {}, "give reference"),
        ([(0, 0)], "zero", {"by_position": True}, "leave it out"),
        ([(0, 0)], "resample", {"reference": some_ids(), "real": some_ids() > 3}, "without padding"),
    ],
)
def test_what_cannot_be_ablated_is_refused(heads: list, how: str, choices: dict, said: str) -> None:
    with pytest.raises(UserError, match=said), ablated(Case("", "softmax").model(), heads, how, **choices):
        pass


def test_a_single_row_has_no_other_and_another_length_no_positions() -> None:
    model, ids = Case("", "softmax").model(), some_ids(1)
    with ablated(model, [(0, 0)], "resample", reference=ids):
        with pytest.raises(UserError, match="no other"):
            model(ids)
        with pytest.raises(UserError, match="as long"):
            model(ids[:, :3])


def test_pairs_of_differential_are_one_head_each() -> None:
    model = Case("", "differential").model()
    assert ablate_heads(model, some_batches()).change.shape == (2, 2)
    with pytest.raises(UserError, match="2 layers of 2 heads"), ablated(model, [(0, 2)]):
        pass


def test_the_model_is_left_as_it_was() -> None:
    model: Transformer = Case("", "softmax,dropout_residual=0.5").model().train()
    batches = some_batches()
    state = torch.random.get_rng_state()
    found = ablate_heads(model, batches, how="resample")
    assert model.training
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(ablate_heads(model.eval(), batches, how="resample").change, found.change)


def test_it_draws_itself() -> None:
    picture = HeadAblations(
        torch.tensor([[0.1, -0.2], [math.nan, 0.3]]).double(), torch.zeros(2, 2), 1.5, "loss", "mean"
    )
    assert picture.draw().title == "Without layer 1, head 1, the loss changes most"
    assert "<svg" in picture._repr_html_()


def test_what_has_no_effect_is_refused() -> None:
    model, ids = Case("", "softmax").model(), some_ids()
    with pytest.raises(UserError, match="zero takes no values of other text"), ablated(model, [(0, 1)], reference=ids):
        pass
    with pytest.raises(UserError, match="seed draws rows for resample, and mean draws none"):
        ablate_heads(model, [Batch(ids, ids, torch.ones_like(ids, dtype=torch.bool))], how="mean", seed=7)
    for pair in ((0, 0.5), ("0", "1")):
        with pytest.raises(UserError, match="names no head: give two whole numbers"), ablated(model, [pair]):  # type: ignore[list-item]
            pass
