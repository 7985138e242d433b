import pytest
import torch

from headstock.studies.chapter.averages import STUDY, averaging_matrix
from tests.studies.declared import judged, published


def test_every_claim_on_averages_is_reproduced() -> None:
    found = judged(STUDY, seeds=2)
    assert len(found) == 12
    assert {judgement.verdict for judgement in found.values()} == {"reproduced"}


def test_the_published_digits_stand_letter_for_letter() -> None:
    assert published(STUDY, "shuffled") == {"order": "2.9802322387695312e-08"}
    assert published(STUDY, "loop_matmul") == {"forms": "5.960464477539063e-08"}
    assert published(STUDY, "loop_softmax") == {"forms": "5.960464477539063e-08"}


def test_the_averaging_matrix_is_the_one_that_is_printed() -> None:
    printed = ["1.000 0.000 0.000 0.000 0.000 0.000", "0.500 0.500 0.000 0.000 0.000 0.000",
               "0.333 0.333 0.333 0.000 0.000 0.000", "0.250 0.250 0.250 0.250 0.000 0.000",
               "0.200 0.200 0.200 0.200 0.200 0.000", "0.167 0.167 0.167 0.167 0.167 0.167"]  # fmt: skip
    assert [" ".join(f"{value:.3f}" for value in row) for row in averaging_matrix(6).tolist()] == printed


def test_a_constant_for_a_mask_lets_the_future_in_where_scores_are_low() -> None:
    found = judged(STUDY)
    assert found["Behind a mask of −∞ nothing weighs anything, however low the scores."].estimate == 0
    leaking = found["Behind a mask of −1e9 it does as soon as scores are lower than that."].estimate
    assert leaking == pytest.approx(1, abs=0.5)


def test_seeds_draw_other_numbers_and_leave_torchs_own_alone() -> None:
    state = torch.random.get_rng_state()
    first, second = (judged(STUDY, seeds=2)["Weights by dot product are not."].values[seed] for seed in (0, 1))
    assert first != second
    assert torch.equal(torch.random.get_rng_state(), state)
