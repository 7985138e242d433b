import torch
from torch import nn

from headstock.studies.base import Opened
from headstock.studies.chapter import parity
from headstock.studies.chapter.parity import STUDY, WIDTH, copied
from tests.studies.declared import judged, published


def test_every_claim_on_parity_is_reproduced() -> None:
    found = judged(STUDY, seeds=2)
    assert len(found) == 4
    assert {judgement.verdict for judgement in found.values()} == {"reproduced"}


def test_the_published_digits_stand_letter_for_letter() -> None:
    assert published(STUDY, "plain") == dict.fromkeys(("multihead", "scaled-dot-product"), "1.7881393432617188e-07")
    assert published(STUDY, "magnitude") == {"multihead": "0.159"}


def test_a_bias_that_is_not_copied_is_seen(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    def forgetful(theirs: nn.MultiheadAttention) -> nn.Module:
        ours = copied(theirs)
        with torch.no_grad():
            ours.value.bias.zero_()
        return ours

    monkeypatch.setattr(parity, "copied", forgetful)
    assert parity.beside_multihead(Opened("multihead", 0, "full")).figures["plain"] > 1e-3


def test_the_outputs_compared_are_no_zeros() -> None:
    for measure in (parity.beside_multihead, parity.beside_scaled_dot_product):
        assert measure(Opened("", 0, "full")).figures["magnitude"] > 0.05
    assert WIDTH == 128
