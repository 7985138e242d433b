"""Positions: rotations know distances alone, in float32; slopes follow the paper's rule; what ends says so."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from headstock.errors import UserError
from headstock.model.mixers import mixer_class, mixer_names
from headstock.model.positions import Rotation, SinusoidalPositions, alibi_slopes, refuse_past_xpos, xpos_end
from headstock.model.visibility import Visible
from tests.model.cases import BATCH, CONTEXT, TIME, VOCAB, Case, close, some_ids

LAYOUTS = pytest.mark.parametrize("halves", [True, False], ids=["halves", "interleaved"])
XPOS_ENDS = {torch.float16: 2_266, torch.bfloat16: 18_129, torch.float32: 18_130, torch.float64: 145_042}


def xpos_scores(q: Tensor, k: Tensor, positions: Tensor) -> Tensor:
    rotation = Rotation.at(positions, q.shape[-1], q.dtype, layout="xpos")
    return rotation.of_queries(q) @ rotation.of_keys(k).mT


def turned(x: Tensor, positions: Tensor, halves: bool) -> Tensor:
    return Rotation.at(positions, x.shape[-1], x.dtype, layout="rope" if halves else "rope-interleaved").of_queries(x)


@LAYOUTS
@given(shift=st.integers(0, 5000))
def test_rotated_scores_know_the_distance_alone(halves: bool, shift: int) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 3, TIME, 8, dtype=torch.float64, generator=generator)
    places = torch.arange(TIME)
    scores = turned(q, places, halves) @ turned(k, places, halves).mT
    shifted = turned(q, places + shift, halves) @ turned(k, places + shift, halves).mT
    close(shifted, scores, atol=1e-9)
    assert (scores - q @ k.mT).abs().max() > 0.1  # and they do know it


@given(shift=st.integers(0, XPOS_ENDS[torch.float64] - TIME))
def test_xpos_scores_know_the_distance_alone(shift: int) -> None:
    q, k = torch.randn(2, 1, 3, TIME, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    places = torch.arange(TIME)
    close(xpos_scores(q, k, places + shift), xpos_scores(q, k, places), atol=1e-9)


@given(distance=st.integers(0, 5000), place=st.integers(0, 5000), pair=st.integers(0, 3))
def test_xpos_lets_a_score_fall_with_the_distance_as_the_paper_defines_it(distance: int, place: int, pair: int) -> None:
    ones = torch.zeros(1, 1, 2, 8, dtype=torch.float64)
    ones[..., 2 * pair] = 1
    score = xpos_scores(ones, ones, torch.tensor([place, place + distance]))[0, 0, 1, 0]
    base, frequency = (2 * pair / 8 + 0.4) / 1.4, 10_000 ** (-2 * pair / 8)
    assert score.item() == pytest.approx(base ** (distance / 512) * math.cos(distance * frequency), abs=1e-9)


@pytest.mark.parametrize("dtype", XPOS_ENDS, ids=str)
def test_xpos_stays_within_a_dtype_up_to_its_end_and_is_refused_past_it(dtype: torch.dtype) -> None:
    end = xpos_end(dtype)
    assert end == XPOS_ENDS[dtype]
    q, k = torch.randn(2, 1, 1, TIME, 8)
    far, near = (
        xpos_scores(q.to(dtype), k.to(dtype), torch.arange(start, start + TIME)).tril() for start in (end - TIME, 0)
    )
    assert near.abs().max() > 1
    close(far.double(), near.double(), atol={torch.float64: 1e-9, torch.float32: 2e-2}.get(dtype, 0.2))
    rotation = Rotation.at(torch.tensor([0, end - 1]), 8, dtype, layout="xpos")
    extremes = rotation.of_queries(q[:, :, :2].to(dtype)) @ rotation.of_keys(k[:, :, :2].to(dtype)).mT
    assert extremes.isfinite().all()  # of a key that is still to come too, which is scored before it is hidden
    refuse_past_xpos(Visible(1, end, q.device), dtype)
    with pytest.raises(UserError, match=rf"has {end + 1} tokens but xpos ends at {end}, .* such as rope or alibi\.$"):
        refuse_past_xpos(Visible(1, end + 1, q.device), dtype)


def test_what_ends_for_xpos_is_a_document_and_not_what_it_is_packed_or_padded_with() -> None:
    model, end = Case("xpos", "softmax+xpos,d_model=4,n_layers=1,n_heads=1").model(torch.float16), 2_266
    ids = some_ids(batch=1, time=end + 1)
    with torch.no_grad(), pytest.raises(UserError, match=r"ends at 2266, where its scales would leave float16"):
        model(ids)
    places = torch.arange(end + 1)[None]
    refuse_past_xpos(Visible(end + 1, end + 1, ids.device, real_bk=places > 0), torch.float16)
    refuse_past_xpos(Visible(end + 1, end + 1, ids.device, document_bk=places // 2000), torch.float16)
    refuse_past_xpos(Visible(3, 3, ids.device, before=end - 3), torch.float16)
    with pytest.raises(UserError, match="has 2267 tokens"):
        refuse_past_xpos(Visible(3, 3, ids.device, before=end - 2), torch.float16)  # what a window forgot still counts


@LAYOUTS
def test_a_rotation_acts_along_time_and_keeps_lengths(halves: bool) -> None:
    x = torch.randn(1, 1, 1, 8, dtype=torch.float64).expand(2, 3, TIME, 8)
    out = turned(x, torch.arange(TIME), halves)
    close(out[:, :, 0], x[:, :, 0])
    close(out.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(out[0, 0], out[1, 2])  # the same for every row and head
    assert all(not torch.allclose(out[0, 0, a], out[0, 0, b]) for a in range(TIME) for b in range(a))


def test_a_pair_of_numbers_turns_by_its_frequency_times_the_position() -> None:
    x = torch.zeros(1, 1, 3, 4, dtype=torch.float64)
    x[..., 2] = 1  # in halves: the second number of pair 0; interleaved: the first of pair 1
    angle = torch.arange(3, dtype=torch.float64)
    halves, interleaved = (turned(x, torch.arange(3), layout)[0, 0] for layout in (True, False))
    close(halves[:, [0, 2]], torch.stack([-angle.sin(), angle.cos()], dim=-1))
    close(interleaved[:, [2, 3]], torch.stack([(angle / 100).cos(), (angle / 100).sin()], dim=-1))


@pytest.mark.parametrize("mixer", [m for m in mixer_names() if "rope" not in mixer_class(m).refuses])
def test_the_two_layouts_are_one_model_up_to_a_permutation(mixer: str) -> None:
    halves, interleaved = (Case(p, f"{mixer}+{p}").model() for p in ("rope", "rope-interleaved"))
    numbers, size = halves.state_dict(), halves.config.d_head
    order = torch.arange(size).view(2, -1).T.flatten()  # 0, d/2, 1, d/2 + 1, …
    for name in numbers:
        if name.endswith((".mixer.query.weight", ".mixer.key.weight")):
            numbers[name] = numbers[name].unflatten(0, (-1, size))[:, order].flatten(0, 1)
    assert (interleaved(some_ids()) - halves(some_ids())).abs().max() > 1e-3
    interleaved.load_state_dict(numbers)
    close(interleaved(some_ids()), halves(some_ids()))


@LAYOUTS
def test_tables_of_a_bfloat16_model_are_float32_and_no_two_positions_collide(halves: bool) -> None:
    rotation = Rotation.at(torch.arange(1024), 64, torch.bfloat16, layout="rope" if halves else "rope-interleaved")
    assert rotation.cos.dtype == rotation.sin.dtype == torch.float32
    angle = torch.atan2(rotation.sin[:, 0].double(), rotation.cos[:, 0].double())
    expected = torch.arange(1024, dtype=torch.float64)
    wrong = (angle - expected + math.pi).remainder(2 * math.pi) - math.pi
    assert wrong.abs().max() < 1e-4
    exact = Rotation.at(torch.arange(1024), 64, torch.float64, layout="rope" if halves else "rope-interleaved")
    assert exact.cos.dtype == torch.float64
    assert rotation.of_queries(torch.ones(1, 1, 1024, 64, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_rotated_queries_of_a_bfloat16_model_differ_wherever_bfloat16_can_tell() -> None:
    x = torch.zeros(1, 1, 1024, 64, dtype=torch.bfloat16)
    x[..., 0] = 1
    out = turned(x, torch.arange(1024), True)[0, 0]
    exact = turned(x.double(), torch.arange(1024), True)[0, 0]
    assert torch.equal(out, exact.bfloat16())
    assert (out[256:1023] == out[257:1024]).all(-1).sum() == 0


@pytest.mark.parametrize("width", [16, 7])
def test_sinusoidal_positions_are_the_papers(width: int) -> None:
    embed = torch.zeros(1, dtype=torch.float64)
    table = SinusoidalPositions(width, like=embed)(torch.arange(300))
    for position in (0, 1, 57, 299):
        for column in range(width):
            angle = position / 10_000 ** (2 * (column // 2) / (width + width % 2))
            assert table[position, column].item() == pytest.approx(
                math.cos(angle) if column % 2 else math.sin(angle), abs=1e-12
            )


def test_sinusoidal_tables_of_a_bfloat16_model_are_rounded_last() -> None:
    narrow = SinusoidalPositions(16, like=torch.zeros(1, dtype=torch.bfloat16))(torch.arange(2000))
    wide = SinusoidalPositions(16, like=torch.zeros(1))(torch.arange(2000))
    assert torch.equal(narrow, wide.bfloat16())


def test_sinusoidal_positions_follow_the_model_to_another_dtype() -> None:
    model = Case("sinusoidal", "softmax+sinusoidal").model(torch.float32).double()
    assert model.position(torch.arange(4)).dtype == torch.float64
    assert model(some_ids()).dtype == torch.float64


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (1, [2**-8]),
        (2, [2**-4, 2**-8]),
        (6, [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]),
        (8, [2.0**-i for i in range(1, 9)]),
        (12, [2.0**-i for i in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]),
    ],
)
def test_alibi_slopes_follow_the_papers_rule(heads: int, slopes: list[float]) -> None:
    assert alibi_slopes(heads).tolist() == pytest.approx(slopes, rel=1e-15)


@pytest.mark.parametrize("mixer", ["softmax", "table", "differential"])
def test_alibi_alone_weighs_by_distance_and_a_pair_of_maps_shares_one_slope(mixer: str) -> None:
    model = Case(mixer, f"{mixer}+alibi,n_heads=6,d_head=2,n_layers=1").model()
    own = model.blocks[0].mixer
    with torch.no_grad():
        for parameter in (own.table_hqk,) if mixer == "table" else (own.query.weight,):
            parameter.zero_()
    places = torch.arange(TIME, dtype=torch.float64)
    distance = places[:, None] - places
    slopes = alibi_slopes(3 if mixer == "differential" else 6)
    expected = (-slopes[:, None, None] * distance).masked_fill(distance < 0, -math.inf).softmax(-1)
    if mixer == "differential":
        expected = (1 - own.lambda_now()) * expected  # both maps alike
    close(model.weights(some_ids())[0], expected.expand(BATCH, -1, -1, -1))


@pytest.mark.parametrize("variant", ["softmax+learned", "table+none", "uniform+learned"])
def test_a_sequence_past_a_learned_table_is_refused(variant: str) -> None:
    model = Case(variant, variant).model()
    with pytest.raises(UserError, match=r"the sequence has 13 tokens but .* end at 12: shorten it, or .* context"):
        model(some_ids(time=CONTEXT + 1))
    padding = torch.arange(CONTEXT + 4).expand(BATCH, -1) >= 4
    assert model(some_ids(time=CONTEXT + 4), real=padding).isfinite().all()  # what counts is where a token stands
    packed = (torch.arange(2 * CONTEXT) // CONTEXT).expand(BATCH, -1)
    assert model(some_ids(time=2 * CONTEXT), documents=packed).isfinite().all()


@pytest.mark.parametrize("position", ["none", "sinusoidal", "rope", "rope-interleaved", "alibi", "xpos"])
def test_positions_without_a_table_reach_past_the_context(position: str) -> None:
    model = Case(position, f"softmax+{position}").model()
    assert model(some_ids(time=3 * CONTEXT)).shape == (BATCH, 3 * CONTEXT, VOCAB)
