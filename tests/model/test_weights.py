"""What each mixer declares its weights to be is what they are; hidden keys weigh exactly 0, and no row is ever NaN."""

import math

import pytest
import torch
from torch import Tensor

from headstock.model.attention import masked_logsumexp, masked_softmax
from headstock.model.mixers import mixer_class
from headstock.model.transformer import Transformer
from tests.model.cases import (
    BATCH,
    CASES,
    MIXERS_WITH_POSITIONS,
    ONE_A_MIXER,
    TIME,
    Case,
    averaging,
    both_paths,
    cells,
    close,
    every_mixer,
    every_position,
    some_ids,
)

CAUSAL = torch.ones(TIME, TIME, dtype=torch.bool).tril()
NOTHING_FOR_ROW_1 = torch.tensor([[True] * TIME, [False] * TIME, [False] * 3 + [True] * 4 + [False] * 2])


def hidden_queries_outputs(model: Transformer, ids: Tensor, real: Tensor) -> list[Tensor]:
    """Give what each mixer puts out where the query is padding."""
    outputs: list[Tensor] = []
    handles = [
        block.mixer.register_forward_hook(lambda _, __, output: outputs.append(output[~real])) for block in model.blocks
    ]
    model(ids, real=real)
    for handle in handles:
        handle.remove()
    return outputs


def declared(case: Case) -> str:
    return mixer_class(case.config().mixer).weights_under(case.config())


def sharpened(case: Case, factor: float) -> Transformer:
    """Give a model of float32 whose scores are extreme: all but what λ is made of is multiplied."""
    model = case.model(torch.float32)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter *= 1 if "lambda" in name else factor
    return model


@pytest.mark.parametrize("case", cells([c for c in CASES if declared(c) == "normalised"]))
def test_normalised_weights_are_none_below_zero_and_sum_to_one(case: Case) -> None:
    for weights in case.model().weights(some_ids()):
        close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
        assert (weights >= 0).all()


@pytest.mark.parametrize("case", cells([c for c in CASES if declared(c) == "unnormalised"]))
def test_unnormalised_weights_are_none_below_zero_and_do_not_sum_to_one(case: Case) -> None:
    for weights in case.model().weights(some_ids()):
        assert (weights >= 0).all()
        assert not torch.allclose(weights.sum(-1), torch.ones_like(weights.sum(-1)))


@pytest.mark.parametrize("case", cells([c for c in CASES if c.config().mixer in ("softmax1", "sink")]))
def test_rows_that_lack_what_attends_to_nothing_sum_to_less_than_one(case: Case) -> None:
    for weights in case.model().weights(some_ids()):
        assert ((weights.sum(-1) > 0) & (weights.sum(-1) < 1)).all()


# Differential's λ may itself be below zero where its vectors are stirred; the next test sets it.
@pytest.mark.parametrize(
    "case", cells([c for c in CASES if declared(c) == "signed" and c.config().mixer != "differential"])
)
def test_signed_weights_go_below_zero(case: Case) -> None:
    for weights in sharpened(case, 2).weights(some_ids()):
        assert (weights < 0).any()


@pytest.mark.parametrize("case", cells([c for c in CASES if c.config().mixer == "differential"]))
def test_weights_of_a_difference_sum_to_one_less_lambda(case: Case) -> None:
    model = sharpened(case, 2)
    for weights, block in zip(model.weights(some_ids()), model.blocks, strict=True):
        left = 1 - block.mixer.lambda_now().view(-1, 1)  # a pair, or one for all of them
        close(weights.sum(-1), left.to(weights.dtype).expand(weights.shape[:-1]), atol=1e-6)
        if case.config().lambdas != "fixed":
            block.mixer.lambda_q1.data.zero_()
            block.mixer.lambda_q2.data.zero_()
        assert block.mixer.lambda_now().unique().tolist() == [pytest.approx(block.mixer.lambda_init)]
    for weights in model.weights(some_ids()):
        assert bool((weights < 0).any()) is (declared(case) == "signed")


def test_every_mixer_is_checked_by_what_it_declares() -> None:
    assert {declared(case) for case in CASES} == {"normalised", "unnormalised", "signed", "none"}


def test_a_head_of_softmax1_may_attend_to_nothing_and_its_rows_lack_what_the_one_takes() -> None:
    scores = torch.tensor([[[[-50.0, -60.0, -50.0], [0.0, 0.0, 7.0]]]])
    visible = torch.tensor([[[[True, True, True], [True, True, False]]]])
    model = Case("softmax1", "softmax1").model(torch.float32)
    weights = model.blocks[0].mixer.weigh(scores, visible)
    assert weights[0, 0, 0].sum() < 1e-20
    close(weights[0, 0, 1], torch.tensor([1 / 3, 1 / 3, 0.0]), atol=1e-7)


@averaging([c for c in CASES if c.config().n_layers])
def test_plain_output_is_the_average_that_the_weights_say(case: Case) -> None:
    model, ids, seen = case.model(), some_ids(), []
    model.plain = True
    for block in model.blocks:
        block.mixer.register_forward_hook(lambda mixer, inputs, output: seen.append((mixer, *inputs, output)))
    model(ids)
    for (mixer, x, frame, output), weights in zip(list(seen), model.weights(ids), strict=True):
        close(weights, mixer.weights(x, frame))
        heads = mixer.heads
        values = (x if mixer.value is None else mixer.value(x)).view(BATCH, TIME, heads.value_heads, heads.value_size)
        reads = torch.arange(heads.output_heads) // (heads.output_heads // heads.value_heads)  # the value head of each
        averages = torch.einsum("bhqk,bkhd->bhqd", weights, values[:, :, reads])
        close(mixer.out(averages, mixer.read(x, frame)), output)


@averaging(MIXERS_WITH_POSITIONS)
def test_hidden_keys_weigh_exactly_nothing_under_extreme_scores(case: Case) -> None:
    model, real = sharpened(case, 1e3), NOTHING_FOR_ROW_1
    for reading, visible in (
        ({}, CAUSAL.expand(BATCH, 1, TIME, TIME)),
        ({"real": real}, CAUSAL & real[:, None, None] & real[:, None, :, None]),
    ):
        for weights in model.weights(some_ids(), **reading):
            assert weights.isfinite().all()
            assert weights.masked_select(~visible.expand_as(weights)).count_nonzero() == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@both_paths
@every_position
def test_a_row_with_nothing_to_attend_to_gives_zeros_and_finite_gradients(
    case: Case, plain: bool, dtype: torch.dtype
) -> None:
    model, ids = case.model(dtype), some_ids()
    model.plain = plain
    for output in hidden_queries_outputs(model, ids, NOTHING_FOR_ROW_1):
        assert output.count_nonzero() == 0
    model(ids, real=NOTHING_FOR_ROW_1).float().square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@both_paths
@every_mixer
def test_padding_takes_no_part_in_any_gradient(case: Case, plain: bool) -> None:
    model, real = case.model(), NOTHING_FOR_ROW_1
    model.plain = plain
    embedded = []
    with model.embed.register_forward_hook(lambda _, __, output: embedded.append(output) or output.retain_grad()):
        model(some_ids(), real=real)[real].square().sum().backward()
    assert embedded[0].grad[~real].count_nonzero() == 0
    assert (embedded[0].grad[real].abs().sum(-1) > 0).all()


def test_a_softmax_over_nothing_is_zeros_with_finite_gradients() -> None:
    scores = torch.tensor([[[[1.0, 2.0], [3.0, -math.inf]]]], requires_grad=True)
    visible = torch.tensor([[[[False, False], [True, False]]]])
    weights = masked_softmax(scores, visible)
    assert weights.tolist() == [[[[0, 0], [1, 0]]]]
    total = masked_logsumexp(scores, visible)
    assert total.tolist() == [[[[-math.inf], [3.0]]]]
    (weights.square().sum() + torch.sigmoid(total).sum()).backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert scores.grad[0, 0, 0].count_nonzero() == 0


@averaging(ONE_A_MIXER)
def test_looking_at_the_weights_changes_no_logit(case: Case) -> None:
    model, ids = case.model(), some_ids()
    before = model(ids)
    model.weights(ids)
    assert torch.equal(model(ids), before)
