"""Looking moves nothing, writing moves what follows, and what is shown is what is used: every name, every mixer."""

import math

import pytest
import torch
from torch import Tensor

from headstock.model.attention import masked_softmax
from headstock.model.cache import Cache
from headstock.model.hooks import HookPoint
from headstock.model.mixers import mixer_class
from headstock.model.transformer import Transformer
from tests.model.cases import (
    BATCH,
    SIZES,
    TIME,
    Case,
    close,
    every_mixer,
    some_ids,
)
from tests.model.hooking import HOOKED, PER_PAIR_OF_TOKENS, every_hooked_case, everything, hooked, moved, short, zeroed
from tests.model.test_paths_agree import DOCUMENTS, padded

READINGS = {
    "whole": {},
    "padded-left": {"real": padded("left")},
    "packed-and-padded": {"documents": DOCUMENTS, "real": padded("right")},
}
WITHOUT_EFFECT = {"window-of-one": {"q", "k", "attn_scores"}}
"""Where a query sees one key, that key weighs 1 whatever its score is."""
CAUSAL = [case for case in HOOKED if case.config().causal]
AHEAD = torch.ones(TIME, TIME, dtype=torch.bool).triu(1)


def in_the_first_block(model: Transformer) -> list[str]:
    """Give all names but those of later blocks, which are the same again."""
    return [name for name in model.hook_names() if HookPoint(name).layer() in (None, 0)]


@pytest.mark.parametrize("reading", READINGS)
@every_hooked_case
def test_asking_for_everything_leaves_the_logits_as_they_are(case: Case, reading: str) -> None:
    model, ids, real = case.model(), some_ids(), READINGS[reading].get("real", torch.ones(BATCH, TIME).bool())
    with torch.no_grad():
        logits = model(ids, **READINGS[reading])
    looked_at, _ = everything(model, **READINGS[reading])
    close(looked_at[real], logits[real])


@every_hooked_case
def test_another_value_under_any_name_gives_other_logits(case: Case) -> None:
    model, ids = case.model(), some_ids()
    with torch.no_grad():
        logits = model(ids)
        for name in in_the_first_block(model):
            changed = model.run_with_hooks(ids, [(name, moved)])
            assert torch.equal(changed, logits) == (short(name) in WITHOUT_EFFECT.get(case.name, ())), name


@every_hooked_case
def test_a_change_in_place_reaches_the_value_named_and_what_follows_from_it(case: Case) -> None:
    model, ids = case.model(), some_ids()
    _, clean = everything(model)
    copies, names = {name: value.clone() for name, value in clean.items()}, model.hook_names()
    with torch.no_grad():
        for name in [*in_the_first_block(model), *(name for name in names if name == "blocks.1.hook_resid_pre")]:
            place = names.index(name)
            with model.hooks([(name, zeroed)]):
                _, cache = model.run_with_cache(ids)
            written = cache[name] if "scores" not in name else cache[name].masked_fill(clean[name] == -math.inf, 0.0)
            assert not written.any(), name
            side_by_side = [other for other in names if other.rpartition(".")[0] == name.rpartition(".")[0]]
            of_one_token = ("q", "k", "v", "gate") if short(name) in ("q", "k", "v", "gate") else ()
            beside = [other for other in side_by_side if short(other) in of_one_token and other != name]
            for other in [*names[:place], *beside]:
                assert torch.equal(cache[other], clean[other]), (name, other)
    for name, value in clean.items():
        assert torch.equal(value, copies[name]), name


@every_hooked_case
def test_the_value_kept_is_the_value_used(case: Case) -> None:
    """Two passes of two texts: the second, each value replaced by the first's as kept, gives the first's logits."""
    model, ids = case.model(), some_ids()
    logits, cache = everything(model)

    def put(value: Tensor, hook: HookPoint) -> Tensor:
        return cache[hook.name]

    with torch.no_grad():
        for layer in range(model.config.n_layers):
            part = [name for name in model.hook_names() if name.startswith(f"blocks.{layer}.attn.")]
            rest = [f"blocks.{layer}.hook_resid_pre"]  # what a block is given decides all that follows
            for names in (rest, [*part, *rest]):
                close(model.run_with_hooks(some_ids(seed=1), [(names, put)]), logits)
        final = model.hook_names()[-1]
        close(model.run_with_hooks(some_ids(seed=1), [(final, put)]), logits)
        close(model.run_with_hooks(ids, [(lambda name: True, put)]), logits)


@pytest.mark.parametrize("side", ["left", "right"])
@every_hooked_case
def test_every_value_of_a_padded_row_is_that_of_the_row_alone(case: Case, side: str) -> None:
    model, ids, real = case.model(), some_ids(), padded(side)
    _, together = everything(model, real=real)
    for row in range(BATCH):
        _, alone = everything(model, ids[row : row + 1, real[row]])
        for name, value in together.items():
            if value.ndim == 0:
                continue
            in_row = (
                value[row][:, real[row]][..., real[row]] if short(name) in PER_PAIR_OF_TOKENS else value[row, real[row]]
            )
            close(in_row, alone[name][0])


@every_mixer
def test_every_value_of_a_packed_document_is_that_of_the_document_alone(case: Case) -> None:
    model, ids = case.model(), some_ids()
    _, packed = everything(model, documents=DOCUMENTS)
    for row, start, stop in ((0, 0, 4), (0, 4, 9), (1, 1, 3), (2, 0, 9)):
        _, alone = everything(model, ids[row : row + 1, start:stop])
        for name, value in packed.items():
            if value.ndim == 0:
                continue
            pairs = short(name) in PER_PAIR_OF_TOKENS
            close(value[row, :, start:stop, start:stop] if pairs else value[row, start:stop], alone[name][0])


@pytest.mark.parametrize("case", hooked(CAUSAL))
def test_what_is_read_on_after_a_cache_is_shown_as_in_the_whole(case: Case) -> None:
    model, ids = case.model(), some_ids()
    of_a_state = mixer_class(model.config.mixer).kept_numbers(model.config) == 0
    names = [name for name in model.hook_names() if not (of_a_state and short(name) == "pattern")]
    logits, whole = everything(model, names=names)
    for split in range(1, TIME):
        remembered = Cache(model.config.n_layers)
        first, before = everything(model, ids[:, :split], names=names, cache=remembered)
        second, after = everything(model, ids[:, split:], names=names, cache=remembered)
        close(torch.cat([first, second], dim=1), logits)
        for name, value in whole.items():
            if value.ndim == 0:
                assert torch.equal(before[name], after[name])
            elif short(name) in PER_PAIR_OF_TOKENS:
                close(before[name], value[:, :, :split, :split])
                n_keys = after[name].shape[-1]  # fewer where a window has let some go
                close(after[name], value[:, :, split:, TIME - n_keys :])
            else:
                close(torch.cat([before[name], after[name]], dim=1), value)


def scored(case: Case) -> bool:
    return any("scores" in name for name in case.model().hook_names())


SCORED = [case for case in CAUSAL if scored(case) and case.config().window is None]


@pytest.mark.parametrize("size", [1e4, 1e30])
@pytest.mark.parametrize("case", hooked(SCORED))
def test_however_extreme_the_scores_written_the_future_weighs_nothing(case: Case, size: float) -> None:
    model, ids = case.model(torch.float32), some_ids()

    def extreme(value: Tensor, hook: HookPoint) -> Tensor:
        """Give large scores of both signs, the largest to what lies ahead."""
        signs = torch.rand(value.shape, generator=torch.Generator().manual_seed(0)).sub(0.5).sign()
        return torch.where(AHEAD, 10 * size, size * signs)

    scores = [name for name in model.hook_names() if "scores" in name]
    with model.hooks([(scores, extreme)]):
        logits, cache = everything(model, ids)
    assert logits.isfinite().all()
    for name in scores:
        assert (cache[name][..., AHEAD] == -math.inf).all(), name  # what is shown is what is used
    for name, value in cache.items():
        if "pattern" in name:
            assert (value[..., AHEAD] == 0).all(), name
            assert value.isfinite().all(), name
            if mixer_class(model.config.mixer).weights_are == "normalised":
                close(value.sum(-1), torch.ones_like(value[..., 0]), 1e-5)


@pytest.mark.parametrize("case", hooked(SCORED))
def test_scores_of_minus_infinity_hide_keys_and_a_row_of_them_weighs_nothing(case: Case) -> None:
    """Key 0 is hidden from all, so the first query sees nothing; in head 0 query 5 sees nothing either."""
    model, ids = case.model(), some_ids()

    def hide(value: Tensor, hook: HookPoint) -> Tensor:
        penalty = torch.zeros_like(value)
        penalty[..., 0] = -math.inf
        penalty[:, 0, 5] = -math.inf
        return value + penalty

    scores = [name for name in model.hook_names() if "scores" in name]
    logits, cache = model.run_with_cache(ids)
    with model.hooks([(scores, hide)]):
        logits, hidden = model.run_with_cache(ids)
    logits.sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)
    patterns = [name for name in hidden if name.startswith("blocks.0.") and "pattern" in name]
    for name in patterns:
        assert hidden[name].isfinite().all()
        assert (hidden[name][..., 0] == 0).all(), name
        assert (hidden[name][:, 0, 5] == 0).all(), name
        assert hidden[name][:, :, 6].any()
    if model.config.mixer == "softmax":
        written = hide(cache["attn_scores", 0], HookPoint("blocks.0.attn.hook_attn_scores"))
        seen = (written > -math.inf).any(-1, keepdim=True)
        close(hidden["pattern", 0], written.masked_fill(~seen, 0.0).softmax(-1) * seen)


def test_a_row_of_minus_infinity_is_what_a_row_that_sees_nothing_is() -> None:
    scores, visible = torch.randn(1, 2, 3, 3), torch.ones(1, 2, 3, 3, dtype=torch.bool)
    visible[:, 1, 2] = False
    assert not masked_softmax(scores, visible)[0, 1, 2].any()


def test_one_head_ablated_is_one_head_and_undoing_it_restores_every_bit() -> None:
    model, ids = Case("softmax", "softmax").model(n_layers=1), some_ids()
    logits, clean = everything(model)

    def ablate(z: Tensor, hook: HookPoint) -> Tensor:
        z[:, :, 2] = 0
        return z

    with torch.no_grad(), model.hooks([("blocks.0.attn.hook_z", ablate)]):
        _, cache = model.run_with_cache(ids)
        assert not torch.equal(model(ids), logits)
    difference = cache["result", 0] - clean["result", 0]
    assert [bool(difference[:, :, head].any()) for head in range(SIZES["n_heads"])] == [False, False, True, False]
    with torch.no_grad():
        assert torch.equal(model(ids), model(ids))
        assert torch.equal(everything(model)[0], logits)
