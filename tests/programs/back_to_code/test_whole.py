"""A model that reads a sequence whole is looked up whole."""

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.programs.back_to_code import Function, extract, whole_lookup
from tests.programs.back_to_code.functions import lively, sequences


def sorting(ids_bq: Tensor) -> Tensor:
    return torch.nn.functional.one_hot(ids_bq.sort(dim=1).values, 3).float()


def test_sorting_is_looked_up_position_by_position() -> None:
    found = whole_lookup(Function(sorting, vocab_size=3, context=4, causal=False), names="abc")
    assert found.size == found.verified == 3 + 9 + 27 + 81
    assert found("cab") == ["a", "b", "c"]
    assert all(found(ids) == ["abc"[at] for at in sorted(ids)] for ids in sequences(3, 4))
    assert str(found).splitlines()[:3] == ["of       says", "a        a", "b        b"]


@pytest.mark.parametrize("start", [None, 1])
def test_every_row_of_a_bidirectional_model_is_said(start: int | None) -> None:
    model = lively("softmax", causal=False)
    found = whole_lookup(model, alphabet=[0, 2], start=start, longest=3)
    for ids in sequences(2, 3):
        tokens = [2 * at for at in ids]
        seen = tokens if start is None else [start, *tokens]
        assert found(tokens) == model(torch.tensor([seen]))[0, -len(tokens) :].argmax(-1).tolist()
    assert extract(model, alphabet=[0, 2], start=start, longest=3) == found


def test_what_was_not_read_or_is_unsteady_is_refused() -> None:
    found = whole_lookup(Function(sorting, vocab_size=3, context=2, causal=False))
    with pytest.raises(UserError, match="give at most 2"):
        found([0, 1, 2])
    with pytest.raises(UserError, match="not of the alphabet"):
        found([3])
    flat = Function(lambda ids_bq: torch.zeros(*ids_bq.shape, 3), vocab_size=3, context=2, causal=False)
    with pytest.raises(UserError, match="after 0 two tokens are equally likely"):
        whole_lookup(flat)

    def wavering(ids_bq: Tensor) -> Tensor:
        return sorting((ids_bq + (len(ids_bq) > 2)) % 3)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headstock.programs.back_to_code.whole.TOKENS", 6)
        with pytest.raises(UserError, match="in one batch and"):
            whole_lookup(Function(wavering, vocab_size=3, context=2, causal=False))
