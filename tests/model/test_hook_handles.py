"""Hooks live in handles on a stack: however they are nested, left or removed, nothing of them stays behind."""

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from headstock.checkpoints.native import load, save
from headstock.errors import UserError
from headstock.model.hooks import UNHOOKED, HookPoint
from headstock.model.transformer import Transformer, build
from tests.model.cases import SIZES, Case, close, some_ids, stirred
from tests.model.hooking import moved, read, zeroed

IDS = some_ids()
EMBED, LAST = "hook_embed", "ln_final.hook_normalized"


@pytest.fixture
def model() -> Transformer:
    return Case("differential-rope", "differential+rope").model()


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


class Left(Exception):
    """How a block is left."""


def test_functions_see_a_value_in_the_order_in_which_they_were_put_there(model: Transformer) -> None:
    seen = []

    def adding(amount: int) -> object:
        def function(value: Tensor, hook: HookPoint) -> Tensor:
            seen.append((amount, hook.name, hook.layer()))
            return value * amount

        return function

    name = "blocks.1.hook_attn_out"
    expected = model.run_with_hooks(IDS, [(name, lambda value, hook: value * 30)])
    handle = model.add_hook(name, adding(2))
    with model.hooks([(name, adding(3))]):
        close(model.run_with_hooks(IDS, [([name], adding(5))]), expected)
    handle.remove()
    assert seen == [(2, name, 1), (3, name, 1), (5, name, 1)]
    assert [HookPoint(at).layer() for at in (EMBED, LAST, "blocks.11.hook_mlp_out")] == [None, None, 11]


def test_a_function_may_name_its_second_parameter_as_it_likes_or_take_hook_by_keyword(model: Transformer) -> None:
    seen = []

    def by_keyword(value: Tensor, *, hook: HookPoint) -> None:
        seen.append(hook.name)

    def behind_others(value: Tensor, factor: int = 3, hook: HookPoint | None = None) -> None:
        assert hook is not None
        seen.append((factor, hook.name))

    class Callable:
        def __call__(self, value: Tensor, where: HookPoint) -> None:
            seen.append(where.name)

        def method(self, value: Tensor, *rest: HookPoint) -> None:
            seen.append(rest[0].name)

    functions = [by_keyword, behind_others, Callable(), Callable().method, lambda value, where: seen.append(where.name)]
    model.run_with_hooks(IDS, [(EMBED, function) for function in functions])
    assert seen == [EMBED, (3, EMBED), EMBED, EMBED, EMBED]


def leave(value: Tensor, hook: HookPoint) -> None:
    raise Left


def leave_in_the_body(model: Transformer) -> None:
    with model.hooks([(EMBED, moved)]):
        raise Left


@pytest.mark.parametrize(
    "run",
    [
        lambda model: model.run_with_hooks(IDS, [(EMBED, moved), (LAST, leave)]),
        leave_in_the_body,
        lambda model: model.run_with_hooks(IDS, [(LAST, zeroed)], backward=[("nowhere", zeroed)]),
        lambda model: model.run_with_hooks(IDS + SIZES["vocab_size"], [(EMBED, moved)]),
        lambda model: model.run_with_cache(IDS + SIZES["vocab_size"], EMBED),
    ],
    ids=["in-a-function", "in-the-body", "in-the-names", "in-the-model", "while-keeping"],
)
def test_what_ends_in_an_exception_leaves_nothing(model: Transformer, run: Callable[[Transformer], object]) -> None:
    logits = model(IDS)
    with pytest.raises((Left, UserError)):
        run(model)
    assert torch.equal(model(IDS), logits)
    assert model.hook_stack.for_pass() is UNHOOKED


def test_run_with_cache_run_with_hooks_and_weights_leave_the_users_own_functions_alone(model: Transformer) -> None:
    calls = []
    handle = model.add_hook(EMBED, lambda value, hook: calls.append(hook.name))
    for run in (
        lambda: model.run_with_cache(IDS),
        lambda: model.run_with_cache(IDS, EMBED, gradients_of=lambda logits: logits.sum()),
        lambda: model.run_with_hooks(IDS, [(EMBED, read)]),
        lambda: model.weights(IDS),
        lambda: model(IDS),
    ):
        calls.clear()
        run()
        assert calls == [EMBED]
    handle.remove()
    handle.remove()
    model(IDS)
    assert calls == [EMBED]


def test_what_is_kept_is_as_the_functions_that_wait_left_it(model: Transformer) -> None:
    with model.hooks([("blocks.0.attn.hook_pattern", zeroed)]):
        _, cache = model.run_with_cache(IDS, "blocks.0.attn.hook_pattern")
        assert not cache["pattern", 0].any()
        assert not model.weights(IDS)[0].any()
        with model.collecting("blocks.0.attn.hook_z") as found, model.hooks([("blocks.0.attn.hook_z", moved)]):
            model(IDS)
        assert not found["blocks.0.attn.hook_z"].any()  # what waits above the one that keeps comes after it


def test_a_function_may_remove_handles_its_own_included_while_the_model_runs(model: Transformer) -> None:
    calls = []

    def once(value: Tensor, hook: HookPoint) -> None:
        calls.append(hook.name)
        handle.remove()
        other.remove()

    names = [name for name in model.hook_names() if name.endswith("hook_resid_pre")]
    handle = model.add_hook(names, once)
    other = model.add_hook(names, lambda value, hook: calls.append("other"))
    model(IDS)
    assert calls == names[:1]
    assert handle.names == []
    with model.hooks([(EMBED, lambda value, hook: model.reset_hooks()), (EMBED, lambda value, hook: calls.append(2))]):
        model(IDS)
    assert calls == names[:1]


def test_handles_may_be_removed_in_any_order(model: Transformer) -> None:
    calls = []
    handles = [model.add_hook(EMBED, lambda value, hook, n=n: calls.append(n)) for n in range(3)]
    for gone, left in ((1, [0, 2]), (0, [2]), (2, [])):
        handles[gone].remove()
        calls.clear()
        model(IDS)
        assert calls == left


def test_reset_hooks_removes_every_function(model: Transformer) -> None:
    logits = model(IDS)
    model.add_hook(EMBED, moved)
    handle = model.add_hook(LAST, moved)
    assert not torch.equal(model(IDS), logits)
    model.reset_hooks()
    assert torch.equal(model(IDS), logits)
    assert handle.names == []


@pytest.mark.parametrize(
    "write",
    [
        lambda value: value.zero_(),
        lambda value: value.data.zero_(),
        lambda value: value.detach().numpy().fill(0),
        lambda value: value.__setitem__(..., 0),
    ],
    ids=["zero_", "data", "numpy", "slice"],
)
def test_a_change_in_place_counts_however_it_is_made(model: Transformer, write: object) -> None:
    def in_place(value: Tensor, hook: HookPoint) -> None:
        write(value)  # type: ignore[operator]

    for name in (EMBED, "blocks.0.attn.hook_lambda", "blocks.1.attn.hook_k"):
        expected = model.run_with_hooks(IDS, [(name, lambda value, hook: torch.zeros_like(value))])
        assert torch.equal(model.run_with_hooks(IDS, [(name, in_place)]), expected)


def test_hooks_work_in_inference_mode(model: Transformer) -> None:
    with torch.inference_mode():
        logits = model.run_with_hooks(IDS, [(EMBED, moved), (LAST, zeroed)])
        assert not logits.any()
        assert len(model.run_with_cache(IDS)[1]) == len(model.hook_names())


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "run", "with", "raise", "keep", "nest", "leave", "weights"]),
        st.integers(0, 99),
    ),
    max_size=12,
)
SMALL = stirred(build("softmax", vocab_size=17, context=9, d_model=8, n_heads=2, n_layers=1)).eval()


@given(ACTIONS)
def test_whatever_is_added_removed_nested_or_left_each_function_is_called_once_a_pass_and_none_after(
    actions: list[tuple[str, int]],
) -> None:
    model, ids, names = SMALL, IDS[:1, :4], SMALL.hook_names()
    with torch.no_grad():
        logits = model(ids)
        calls = []
        handles, blocks = [], ExitStack()
        nested = 0

        def counting(value: Tensor, hook: HookPoint) -> Tensor:
            calls.append(hook.name)
            return moved(value, hook)

        for action, number in actions:
            name, calls[:] = names[number % len(names)], []
            waiting = len(handles) + nested
            if action == "add":
                handles.append(model.add_hook(name, counting))
            elif action == "remove" and handles:
                handles.pop(number % len(handles)).remove()
            elif action == "run":
                assert torch.equal(model(ids), logits) or waiting
                assert len(calls) == waiting
            elif action == "with":
                model.run_with_hooks(ids, [(name, counting)])
                assert len(calls) == waiting + 1
            elif action == "raise":
                with pytest.raises(Left):
                    model.run_with_hooks(ids, [(name, leave)])
            elif action == "keep":
                assert name in model.run_with_cache(ids, name)[1]
                assert len(calls) == waiting
            elif action == "weights":
                model.weights(ids)
                assert len(calls) == waiting
            elif action == "nest":
                blocks.enter_context(model.hooks([(name, counting)]))
                nested += 1
            elif action == "leave":
                blocks.close()
                nested = 0
        blocks.close()
        for handle in handles:
            handle.remove()
        calls.clear()
        assert torch.equal(model(ids), logits)
        assert not calls


def test_copies_pickles_and_files_of_a_model_carry_no_functions(model: Transformer, tmp_path: Path) -> None:
    logits = model(IDS)
    names = list(model.state_dict())
    with model.hooks([(EMBED, lambda value, hook: value * 0)]):  # which cannot be pickled
        assert list(model.state_dict()) == names
        save(model, tmp_path)
        others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), load(tmp_path)]
        for other in others:
            assert torch.equal(other(IDS), logits)
        assert not torch.equal(model(IDS), logits)
        others[0].add_hook(EMBED, moved)
        assert not torch.equal(others[0](IDS), logits)
    assert torch.equal(model(IDS), logits)
    assert not any("hook" in name for name in names)
