"""Singular values and effective ranks: of maps, signed ones too, and of the residual by depth."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstock.errors import UserError
from headstock.instruments.spectrum import effective_rank, map_spectrum, residual_spectrum
from headstock.model.transformer import build
from tests.model.cases import BATCH, ONE_A_MIXER, TIME, VOCAB, Case, averaging, close, every_mixer, some_ids

SIZES = {"vocab_size": VOCAB, "context": TIME, "d_model": 8, "n_heads": 2}
NUMBERS = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9)


@given(NUMBERS, st.floats(1e-2, 1e2))
def test_an_effective_rank_lies_between_one_and_the_number_of_values_whatever_their_scale(
    values: list[float], scale: float
) -> None:
    singular = torch.tensor(values, dtype=torch.float64)
    rank = effective_rank(singular)
    assert 1 - 1e-9 <= rank <= len(values) + 1e-9
    close(effective_rank(scale * singular), rank, atol=1e-9)
    close(effective_rank(torch.cat([singular, singular.new_zeros(2)])), rank, atol=1e-9)


@given(st.integers(1, 9))
def test_it_is_the_number_of_values_where_all_are_equal_and_zero_where_all_are_zero(n: int) -> None:
    close(effective_rank(torch.full((n,), 3.0, dtype=torch.float64)), torch.tensor(float(n), dtype=torch.float64))
    assert effective_rank(torch.zeros(n)) == 0


@averaging(ONE_A_MIXER)
def test_singular_values_are_those_of_every_map(case: Case) -> None:
    model, ids = case.model(), some_ids()
    found = map_spectrum(model, ids)
    maps = np.stack([weights.detach().numpy() for weights in model.weights(ids)])
    expected = np.linalg.svd(maps, compute_uv=False)
    np.testing.assert_allclose(found.singular_values.numpy(), expected, atol=1e-10)
    share = expected / expected.sum(-1, keepdims=True)
    ranks = np.exp(-(share * np.log(share.clip(1e-300))).sum(-1))
    np.testing.assert_allclose(found.effective_rank.numpy(), ranks.mean(1), atol=1e-9)
    gap = (expected[..., 0] - expected[..., 1]) / expected[..., 0]
    np.testing.assert_allclose(found.gap.numpy(), gap.mean(1), atol=1e-9)


def test_who_looks_at_itself_alone_has_full_rank_and_who_looks_at_all_alike_has_rank_one() -> None:
    itself = map_spectrum(build("softmax,window=1", **SIZES), some_ids())
    close(itself.effective_rank, torch.full((2, 2), float(TIME)), atol=1e-4)
    close(itself.gap, torch.zeros(2, 2), atol=1e-6)
    alike = map_spectrum(build("uniform,causal=false", **SIZES), some_ids())
    close(alike.effective_rank, torch.ones(2, 2), atol=1e-4)
    close(alike.gap, torch.ones(2, 2), atol=1e-4)
    assert alike.uniform_rank == pytest.approx(1, abs=1e-4)


def test_the_uniform_averages_rank_stands_beside_for_the_same_keys() -> None:
    ids, real = some_ids(2), torch.tensor([[True] * TIME, [True] * 5 + [False] * 4])
    found = map_spectrum(build("uniform,window=3", **SIZES), ids, real=real)
    close(found.effective_rank, torch.full((2, 2), found.uniform_rank), atol=1e-4)


@averaging(ONE_A_MIXER)
def test_padding_adds_nothing_to_a_spectrum_of_maps(case: Case) -> None:
    model, ids = case.model(), some_ids(1)
    real = torch.tensor([[False] * 2 + [True] * 7])
    padded, alone = map_spectrum(model, ids, real=real), map_spectrum(model, ids[:, 2:])
    close(padded.singular_values[..., :7], alone.singular_values)
    close(padded.singular_values[..., 7:], torch.zeros_like(padded.singular_values[..., 7:]))
    close(padded.effective_rank, alone.effective_rank)
    assert padded.uniform_rank == pytest.approx(alone.uniform_rank)


@every_mixer
def test_the_residuals_spectrum_is_that_of_each_row_by_depth(case: Case) -> None:
    model, ids = case.model(), some_ids()
    found = residual_spectrum(model, ids)
    _, cache = model.run_with_cache(ids)
    names = ["blocks.0.hook_resid_pre", "blocks.0.hook_resid_post", "blocks.1.hook_resid_post"]
    for depth, name in enumerate(names):
        x = cache[name].numpy()
        centred = x - x.mean(1, keepdims=True)
        expected = np.linalg.svd(centred, compute_uv=False)
        np.testing.assert_allclose(found.singular_values[depth].numpy(), expected, atol=1e-9)
        apart = [np.linalg.norm(centred[row]) / np.linalg.norm(x[row]) for row in range(BATCH)]
        assert float(found.apart[depth]) == pytest.approx(np.mean(apart))
        with_mean = effective_rank(torch.from_numpy(np.linalg.svd(x, compute_uv=False))).mean()
        close(found.effective_rank_with_mean[depth], with_mean, atol=1e-8)
    close(found.effective_rank, effective_rank(found.singular_values).mean(1))


@every_mixer
@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
def test_padding_adds_nothing_to_a_spectrum_of_the_residual(case: Case, left: bool) -> None:
    model, ids = case.model(), some_ids(1)
    kept = slice(3, None) if left else slice(0, TIME - 3)
    real = torch.zeros(1, TIME, dtype=torch.bool)
    real[:, kept] = True
    padded, alone = residual_spectrum(model, ids, real=real), residual_spectrum(model, ids[:, kept])
    for name in ("effective_rank", "effective_rank_with_mean", "apart"):
        close(getattr(padded, name), getattr(alone, name), atol=1e-8)


def test_an_average_of_all_that_replaces_the_token_makes_all_tokens_one() -> None:
    bare = "uniform+none,causal=false,residual=replacing,norm=none,feedforward=none"
    found = residual_spectrum(build(bare, **SIZES), some_ids())
    assert found.apart[0] > 0.5
    assert found.apart[1:].max() < 1e-4
    assert found.effective_rank_with_mean[2] == pytest.approx(1, abs=1e-3)


def test_spectra_draw_themselves() -> None:
    model = build("differential", **SIZES)
    maps, residual = map_spectrum(model, some_ids()), residual_spectrum(model, some_ids())
    assert f"{maps.uniform_rank:.3g} in a uniform average" in maps.draw().title
    assert {row[0] for row in residual.draw().table.rows} == {"less the mean", "as it is"}
    assert "<svg" in maps._repr_html_()
    assert "<svg" in residual._repr_html_()


def test_a_mixer_without_maps_has_no_spectrum_of_maps() -> None:
    with pytest.raises(UserError, match="lstm has no weights"):
        map_spectrum(build("lstm", **SIZES), some_ids())


@pytest.mark.parametrize("instrument", [map_spectrum, residual_spectrum])
def test_a_row_of_padding_alone_is_in_no_mean(instrument: Callable[..., object]) -> None:
    model, ids = build("softmax", **SIZES), some_ids(2)
    real = torch.ones(2, TIME, dtype=torch.bool)
    real[1] = False
    both, alone = vars(instrument(model, ids, real=real)), vars(instrument(model, ids[:1]))
    assert {"effective_rank", "singular_values"} < set(both)
    for name in set(both) - {"singular_values"}:
        close(torch.as_tensor(both[name]), torch.as_tensor(alone[name]))


def test_one_token_has_no_second_singular_value_and_so_no_gap_padded_or_alone() -> None:
    model, ids = build("softmax", **SIZES), some_ids(1)
    real = torch.zeros(1, TIME, dtype=torch.bool)
    real[0, 0] = True
    assert map_spectrum(model, ids, real=real).gap.isnan().all()
    assert map_spectrum(model, ids[:, :1]).gap.isnan().all()
    close(map_spectrum(model, ids, real=real).effective_rank, torch.ones(2, 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_tokens_that_have_become_one_differ_in_no_direction_but_rounding(dtype: torch.dtype) -> None:
    model = build("softmax+rope", **SIZES).to(dtype)
    found = residual_spectrum(model, torch.full((1, TIME), 3))
    assert (found.effective_rank == 0).all()
    assert (found.effective_rank_with_mean - 1).abs().max() < 0.2
    assert "in 0 directions before the first block, in 0 after" in found.draw().title
    told_apart = residual_spectrum(model, some_ids(1))
    assert (told_apart.effective_rank > 2).all()
