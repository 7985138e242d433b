"""Hooks in `generate` and after a cache: called once a step with what it reads, and as good as in a whole pass."""

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.cache import Cache
from headstock.model.hooks import HookPoint
from headstock.model.mixers import mixer_class
from headstock.model.mixers.states import StateMixer
from headstock.model.transformer import Transformer
from tests.model.cases import ONE_A_MIXER, Case, close, every_mixer, some_ids
from tests.model.hooking import read, short

PROMPT, NEW = some_ids(time=4), 5
STATES = [case for case in ONE_A_MIXER if issubclass(mixer_class(case.config().mixer), StateMixer)]


def ablate_a_head(value: Tensor, hook: HookPoint) -> None:
    value[:, :, 1] = 0


def shift(value: Tensor, hook: HookPoint) -> Tensor:
    return value + torch.linspace(-2, 2, value.shape[-1], dtype=value.dtype)


@every_mixer
def test_a_function_is_called_once_a_step_with_the_tokens_not_yet_read(case: Case) -> None:
    model, shapes = case.model(), []
    tokens = model.generate(PROMPT, NEW)

    def look(value: Tensor, hook: HookPoint) -> None:
        shapes.append(tuple(value.shape[:2]))

    name = "blocks.1.attn.hook_z"
    with model.hooks([(name, look)]):
        assert torch.equal(model.generate(PROMPT, NEW), tokens)
        assert shapes == [(3, 4), (3, 1), (3, 1), (3, 1), (3, 1)]
        shapes.clear()
        assert torch.equal(model.generate(PROMPT, NEW, use_cache=False), tokens)
        assert shapes == [(3, 4), (3, 5), (3, 6), (3, 7), (3, 8)]
    shapes.clear()
    model.generate(PROMPT, NEW)
    assert not shapes


@every_mixer
def test_changing_values_in_generate_equals_changing_them_in_whole_passes(case: Case) -> None:
    model = case.model()
    free = model.generate(PROMPT, NEW)
    candidates = {"z": ablate_a_head, "attn_out": shift, "v": shift, "k": shift, "resid_post": shift}
    changed = 0
    for name in model.hook_names():
        if name.startswith("blocks.0.") and short(name) in candidates:
            with model.hooks([(name, candidates[short(name)])]):
                cached = model.generate(PROMPT, NEW)
                assert torch.equal(cached, model.generate(PROMPT, NEW, use_cache=False)), name
                whole = PROMPT
                for _ in range(NEW):
                    whole = torch.cat([whole, model(whole)[:, -1:].argmax(-1)], dim=1)
                assert torch.equal(cached, whole), name
            changed += not torch.equal(cached, free)
    assert changed


@every_mixer
def test_values_changed_before_a_cache_reads_on_stay_changed(case: Case) -> None:
    model, ids = case.model(), some_ids()
    name = next(n for n in ("blocks.0.attn.hook_v", "blocks.0.attn.hook_z") if n in model.hook_names())
    with torch.no_grad(), model.hooks([(name, shift)]):
        whole, cache = model(ids), Cache(2)
        close(torch.cat([model(ids[:, :4], cache=cache), model(ids[:, 4:], cache=cache)], dim=1), whole)


@every_mixer
def test_the_pattern_of_a_step_is_a_row_over_all_that_the_cache_keeps(case: Case) -> None:
    model, seen = case.model(), []
    name = "blocks.0.attn.hook_pattern"
    if name not in model.hook_names() or case in STATES:
        return

    def look(value: Tensor, hook: HookPoint) -> None:
        seen.append(value)

    tokens = model.generate(PROMPT, NEW)
    with model.hooks([(name, look)]):
        assert torch.equal(model.generate(PROMPT, NEW), tokens)
    assert [tuple(value.shape[2:]) for value in seen] == [(4, 4), (1, 5), (1, 6), (1, 7), (1, 8)]
    close(seen[-1][:, :, 0], model.weights(tokens[:, :-1])[0][:, :, -1])


@pytest.mark.parametrize("case", STATES, ids=str)
def test_the_pattern_of_a_state_after_a_cache_is_refused_in_one_sentence(case: Case) -> None:
    model = case.model()
    name = "blocks.0.attn.hook_pattern"
    if name not in model.hook_names():
        return
    with model.hooks([(name, read)]):
        with pytest.raises(UserError, match=r"keeps a state and not the keys of past tokens.* use_cache=False\.$"):
            model.generate(PROMPT, NEW)
        free = model.generate(PROMPT, NEW, use_cache=False)
    assert torch.equal(free, model.generate(PROMPT, NEW))


def test_a_function_that_fails_leaves_the_cache_where_it_stood_and_the_model_in_its_mode() -> None:
    model, ids = Case("softmax", "softmax").model(), some_ids()
    model.train()
    cache = Cache(2)

    def fail(value: Tensor, hook: HookPoint) -> None:
        raise ZeroDivisionError

    with torch.no_grad():
        whole = model(ids)
        first = model(ids[:, :4], cache=cache)
        with model.hooks([("blocks.1.hook_resid_pre", fail)]):
            with pytest.raises(ZeroDivisionError):
                model(ids[:, 4:], cache=cache)
            with pytest.raises(ZeroDivisionError):
                model.generate(ids[:, :4], 2)
        assert model.training
        assert cache.length == 4
        close(torch.cat([first, model(ids[:, 4:], cache=cache)], dim=1), whole)


def test_generating_shows_a_reader_no_more_than_hidden_does() -> None:
    """`hidden` is a pass as `forward` is, but for the unembedding, which has no name."""
    model: Transformer = Case("softmax", "softmax").model()
    with model.collecting() as found:
        model.hidden(some_ids())
    assert list(found) == model.hook_names()
