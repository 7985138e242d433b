"""The delta rule: what is written under a key replaces what was there."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from headstock.errors import UserError
from headstock.model.frame import Frame
from headstock.model.mixers.delta import Delta
from headstock.model.visibility import Visible
from tests.model.cases import TIME, Case, close, some_ids


def mixer_of(variant: str = "delta+none") -> Delta:
    return Case("delta", f"{variant},n_layers=1").model().blocks[0].mixer


def unit(*shape: int) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(*shape, dtype=torch.float64), dim=-1)


@given(seed=st.integers(0, 2**31), width=st.integers(1, 8))
def test_what_was_written_in_full_under_a_key_is_read_under_it_exactly(seed: int, width: int) -> None:
    torch.manual_seed(seed)
    mixer, key, other = mixer_of(), unit(2, 3, width), unit(2, 3, width)
    memory, value = torch.randn(2, 3, width, 5, dtype=torch.float64), torch.randn(2, 3, 5, dtype=torch.float64)
    ones = torch.ones(2, 3, dtype=torch.float64)
    state = mixer.update((memory,), key, value, ones)
    close(mixer.recall(state, key), value)
    aside = other - (other * key).sum(-1, keepdim=True) * key  # at right angles to the key
    close(mixer.recall(state, aside), mixer.recall((memory,), aside))
    halfway = mixer.update((memory,), key, value, ones / 2)
    close(mixer.recall(halfway, key), (value + mixer.recall((memory,), key)) / 2)


@pytest.mark.parametrize("groups", [4, 2])
def test_weights_are_those_of_the_recurrence_written_out(groups: int) -> None:
    model, ids = Case("delta", f"delta+rope,n_layers=1,n_kv_heads={groups}").model(), some_ids()
    mixer = model.blocks[0].mixer
    x = model.blocks[0].mixer_norm(model.embed(ids))
    heads = mixer.read(x, model._frame(ids, None, None, None, None))
    q, k, beta = heads.q_bhqd, heads.k_bhkd, heads.gates_bhk
    for head in range(4):
        group = head // (4 // groups)
        expected = torch.zeros(3, TIME, TIME, dtype=torch.float64)
        for query in range(TIME):
            for key in range(query + 1):
                reaches = q[:, head, query]  # goes back through what each later key took away
                for later in range(query, key, -1):
                    taken = beta[:, group, later, None] * k[:, group, later]
                    reaches = reaches - (reaches * k[:, group, later]).sum(-1, keepdim=True) * taken
                expected[:, query, key] = beta[:, group, key] * (reaches * k[:, group, key]).sum(-1)
        close(mixer.weights(x, model._frame(ids, None, None, None, None))[:, head], expected)


def test_queries_and_keys_have_length_one_and_gates_lie_between_nothing_and_all() -> None:
    mixer, x = mixer_of("delta+rope,n_kv_heads=2"), torch.randn(3, TIME, 16, dtype=torch.float64)
    heads = mixer.read(x, Frame(Visible(TIME, TIME, torch.device("cpu"))))
    for vectors in (heads.q_bhqd, heads.k_bhkd):
        close(vectors.norm(dim=-1), torch.ones(vectors.shape[:-1], dtype=torch.float64))
    assert heads.gates_bhk.shape == (3, 2, TIME)
    assert ((heads.gates_bhk > 0) & (heads.gates_bhk < 1)).all()


def test_a_token_of_zeros_has_finite_gradients() -> None:
    mixer = mixer_of()
    x = torch.randn(1, 4, 16, dtype=torch.float64)
    x[:, 1:3] = 0
    x.requires_grad_()
    for plain in (False, True):
        (gradient,) = torch.autograd.grad(mixer(x, Frame(Visible(4, 4, torch.device("cpu")), plain=plain)).sum(), x)
        assert gradient.isfinite().all()


def test_order_is_seen_without_positions() -> None:
    model, ids = Case("delta", "delta+none,n_layers=1").model(), some_ids()
    swapped = ids[:, [1, 0, *range(2, TIME)]]
    assert not torch.allclose(model(swapped)[:, -1], model(ids)[:, -1])


@pytest.mark.parametrize("position", ["rope", "rope-interleaved"])
def test_rotations_still_cancel_to_distances(position: str) -> None:
    model, ids = Case("delta", f"delta+{position},n_layers=1").model(), some_ids()
    frame = model._frame(ids, None, None, None, None)
    x = torch.randn(3, TIME, 16, dtype=torch.float64)
    here = model.blocks[0].mixer.weights(x, frame)
    shifted = torch.cat([torch.zeros(3, 2, 16, dtype=torch.float64), x[:, :-2]], dim=1)  # zeros write nothing
    close(model.blocks[0].mixer.weights(shifted, frame)[:, :, 2:, 2:], here[:, :, :-2, :-2])


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("+xpos", "given length 1, which undoes xPos's scales"),
        ("+alibi", "no score to take a penalty from"),
        (",window=3", "cannot be told from the rest; leave window out"),
        (",soft_cap=2", "no rule of a memory of fixed size"),
        (",qk_norm=rmsnorm", "it gives queries and keys length 1 already"),
        (",causal=false", "causal=false: a memory is written in one order"),
    ],
)
def test_what_means_nothing_to_a_memory_is_refused(key: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        Case("refused", f"delta{key}").model()


def test_another_sequence_is_refused() -> None:
    x = torch.randn(1, 2, 16, dtype=torch.float64)
    with pytest.raises(UserError, match="cannot read another sequence: a memory is written in one order"):
        mixer_of()(x, Frame.across(x, 2))
