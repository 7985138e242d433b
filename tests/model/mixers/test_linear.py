"""Linear attention: positive features, one normaliser a head, sums in place of keys."""

import pytest
import torch
import torch.nn.functional as F

from headstock.errors import UserError
from headstock.model.frame import Frame
from headstock.model.mixers.linear import features
from tests.model.cases import Case, close, some_ids


def test_features_are_elu_and_one_and_never_vanish() -> None:
    x = torch.linspace(-20, 20, 101, dtype=torch.float64)
    close(features(x), F.elu(x) + 1, atol=1e-15)
    extreme = torch.tensor([-1e4, -40.0, 0.0, 1e4], requires_grad=True)
    assert (features(extreme) > 0).all()
    assert (features(extreme) * features(extreme)[0] > 0).all()  # no denominator of them is 0
    (gradient,) = torch.autograd.grad(features(extreme).sum(), extreme)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("groups", [4, 2, 1])
def test_each_head_has_a_normaliser_of_its_own(groups: int) -> None:
    model = Case("linear", f"linear+none,n_layers=1,n_kv_heads={groups}").model()
    block, ids = model.blocks[0], some_ids()
    x = block.mixer_norm(model.embed(ids))
    for head, weights in enumerate(model.weights(ids)[0].unbind(1)):
        q = F.elu(block.mixer.query(x)[..., 4 * head : 4 * head + 4]) + 1
        group = head // (4 // groups)
        k = F.elu(block.mixer.key(x)[..., 4 * group : 4 * group + 4]) + 1
        similar = (q @ k.mT).tril()
        close(weights, similar / similar.sum(-1, keepdim=True))


def test_recalled_sums_are_those_of_the_formula() -> None:
    mixer = Case("linear", "linear").model().blocks[0].mixer
    sums, norms = torch.rand(2, 3, 5, 4), torch.rand(2, 3, 5)
    q = torch.rand(2, 3, 5)
    expected = torch.einsum("bhd,bhde->bhe", q, sums) / torch.einsum("bhd,bhd->bh", q, norms)[..., None]
    close(mixer.recall((sums, norms), q), expected, atol=1e-6)
    after, _ = mixer.update((sums, norms), q, torch.rand(2, 3, 4))
    assert after is not sums


@pytest.mark.parametrize("reading", ["whole", "padded", "packed"])
def test_sums_over_all_keys_equal_the_weights_where_both_sides_are_seen(reading: str) -> None:
    model, ids = Case("both", "linear+sinusoidal,causal=false,n_kv_heads=2").model(), some_ids()
    real = torch.arange(9) < torch.tensor([9, 5, 1])[:, None]
    said = {"padded": {"real": real}, "packed": {"documents": torch.tensor([[0, 0, 1, 0, 1, 1, 2, 2, 2]] * 3)}}
    kept = real if reading == "padded" else slice(None)
    fast = model(ids, **said.get(reading, {}))
    model.plain = True
    close(model(ids, **said.get(reading, {}))[kept], fast[kept])
    later = ids.clone()
    later[:, -1] = (ids[:, -1] + 1) % 17
    assert not torch.allclose(model(later)[:, 0], model(ids)[:, 0])


def test_another_sequence_is_read_by_its_sums_and_padding_of_it_is_not() -> None:
    mixer = Case("cross", "linear,n_layers=1,n_kv_heads=2").model().blocks[0].mixer
    x, memory = torch.randn(2, 3, 16, dtype=torch.float64), torch.randn(2, 7, 16, dtype=torch.float64)
    real = torch.tensor([[True] * 7, [True] * 2 + [False] * 5])
    fast, plain = (mixer(x, Frame.across(memory, 3, real_bk=real, plain=plain)) for plain in (False, True))
    close(fast, plain)
    close(fast[1:], mixer(x[1:], Frame.across(memory[1:, :2], 3)))
    weights = mixer.weights(x, Frame.across(memory, 3, real_bk=real))
    assert weights.shape == (2, 4, 3, 7)
    assert weights[1, :, :, 2:].count_nonzero() == 0
    nothing = mixer(x, Frame.across(memory, 3, real_bk=torch.zeros_like(real)))
    assert nothing.count_nonzero() == 0


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("+rope", "a rotation would no longer cancel to a distance"),
        ("+xpos", "a rotation would no longer cancel"),
        ("+alibi", "have no score to take a penalty from"),
        (",window=3", "a key that has joined its sums cannot leave them; leave window out"),
        (",soft_cap=2", "it has no score to cap"),
    ],
)
def test_what_means_nothing_to_sums_is_refused(key: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        Case("refused", f"linear{key}").model()
