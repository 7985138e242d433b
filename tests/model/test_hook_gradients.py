"""Backward functions see the gradient of the value that they name, and what they give goes on to what made it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.hooks import HookPoint
from headstock.model.transformer import Transformer
from tests.model.cases import Case, close, every_mixer, some_ids
from tests.model.hooking import every_hooked_case, read, short

IDS = some_ids()
LAST = "ln_final.hook_normalized"


@pytest.fixture
def model() -> Transformer:
    return Case("softmax-rope", "softmax+rope").model()


def loss(logits: Tensor) -> Tensor:
    """A number that every logit moves, each differently."""
    weights = torch.linspace(-1, 1, logits.numel(), dtype=logits.dtype).view_as(logits)
    return (weights * logits).sum() + 0.1 * logits.square().sum()


@every_hooked_case
def test_a_backward_function_sees_autograds_gradient_of_the_value(case: Case) -> None:
    model, seen = case.model(), {}

    def keep(gradient: Tensor, hook: HookPoint) -> None:
        seen[hook.name] = gradient

    with model.hooks(backward=[(lambda name: True, keep)]), model.collecting() as found:
        expected = torch.autograd.grad(loss(model(IDS)), list(found.values()), allow_unused=True)
    assert set(seen) == set(model.hook_names())
    for name, gradient in zip(found, expected, strict=True):
        if gradient is not None:
            close(seen[name], gradient)


@every_hooked_case
def test_gradients_of_are_those_of_finite_differences(case: Case) -> None:
    model, step = case.model(), 1e-6
    weight = model.embed.weight
    weight.grad = torch.ones_like(weight)
    logits, cache = model.run_with_cache(IDS, gradients_of=loss)
    assert not logits.requires_grad
    assert set(cache.gradients) == set(cache) == set(model.hook_names())
    assert torch.equal(weight.grad, torch.ones_like(weight))
    assert all(parameter.grad is None for name, parameter in model.named_parameters() if parameter is not weight)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, gradient in cache.gradients.items():
            if HookPoint(name).layer() == 1:  # the same again
                continue
            direction = torch.randn(gradient.shape, generator=generator, dtype=gradient.dtype)

            def along(sign: int, name: str = name, direction: Tensor = direction) -> Tensor:
                added = [(name, lambda value, hook: value + sign * step * direction)]
                return loss(model.run_with_hooks(IDS, added))

            slope = (along(1) - along(-1)) / (2 * step)
            expected = (gradient * direction).sum()
            torch.testing.assert_close(slope, expected, rtol=1e-4, atol=1e-4, msg=lambda said, at=name: f"{at}: {said}")


@every_mixer
def test_gradients_of_need_no_gradients_of_parameters_and_work_under_no_grad(case: Case) -> None:
    model = case.model()
    _, expected = model.run_with_cache(IDS, gradients_of=loss)
    model.requires_grad_(requires_grad=False)
    with torch.no_grad():
        _, cache = model.run_with_cache(IDS, gradients_of=loss)
    for name, gradient in expected.gradients.items():
        close(cache.gradients[name], gradient)


@every_mixer
def test_a_gradient_that_is_replaced_reaches_the_parameters_below_and_none_above(case: Case) -> None:
    model = case.model()

    def gradients(*backward: tuple[str, Callable[[Tensor, HookPoint], Tensor | None]]) -> dict[str, Tensor]:
        model.zero_grad()
        loss(model.run_with_hooks(IDS, backward=backward)).backward()
        return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    clean = gradients()
    doubled = gradients((LAST, lambda gradient, hook: 2 * gradient))
    for name, gradient in clean.items():
        close(doubled[name], gradient * (1 if name.startswith("unembed") else 2))
    cut = gradients(("blocks.1.hook_attn_out", lambda gradient, hook: gradient.zero_()))
    assert not any(gradient.any() for name, gradient in cut.items() if name.startswith("blocks.1.mixer."))
    close(cut["unembed.weight"], clean["unembed.weight"])
    looked_at = gradients(*((name, read) for name in model.hook_names()))
    for name, gradient in clean.items():
        close(looked_at[name], gradient)


def test_the_last_function_to_see_a_value_is_the_first_to_see_its_gradient(model: Transformer) -> None:
    seen = []

    def times(factor: int) -> Callable[[Tensor, HookPoint], Tensor]:
        def function(gradient: Tensor, hook: HookPoint) -> Tensor:
            seen.append((factor, float(gradient.flatten()[0])))
            return gradient * factor

        return function

    with model.hooks(backward=[(LAST, times(2))]), model.hooks(backward=[(LAST, times(3))]):
        logits = model(IDS)
        loss(logits).backward(retain_graph=True)
        (inner, first), (outer, after_inner) = seen
        assert (inner, outer) == (3, 2)
        assert after_inner == pytest.approx(3 * first)
        loss(logits).backward()
        assert len(seen) == 4  # each backward pass calls them


def test_two_names_of_one_tensor_have_each_their_own_gradient(model: Transformer) -> None:
    """resid_pre of a block is resid_post of the one before: what replaces the gradient of one is seen by the other."""
    seen = {}

    def keep(gradient: Tensor, hook: HookPoint) -> None:
        seen[hook.name] = gradient

    after, before = "blocks.0.hook_resid_post", "blocks.1.hook_resid_pre"
    loss(model.run_with_hooks(IDS, backward=[(before, lambda gradient, hook: 2 * gradient), (after, keep)])).backward()
    _, cache = model.run_with_cache(IDS, before, gradients_of=loss)
    close(seen[after], 2 * cache.gradients[before])
    loss(model.run_with_hooks(IDS, backward=[(before, keep), (after, lambda gradient, hook: 2 * gradient)])).backward()
    close(seen[before], cache.gradients[before])


def test_functions_of_passes_that_have_been_run_wait_after_the_block_until_their_handle_is_removed(
    model: Transformer,
) -> None:
    seen = []

    def keep(gradient: Tensor, hook: HookPoint) -> None:
        seen.append(hook.name)

    with model.hooks(backward=[(LAST, keep)]):
        logits = model(IDS)
    loss(logits).backward()
    assert seen == [LAST]
    handle = model.add_hook(LAST, keep, backward=True)
    logits = model(IDS)
    handle.remove()
    loss(logits).backward()
    loss(model(IDS)).backward()
    assert seen == [LAST]


def test_a_value_that_a_function_keeps_is_the_models_own_with_its_gradient(model: Transformer) -> None:
    found = {}

    def keep(value: Tensor, hook: HookPoint) -> None:
        value.retain_grad()
        found[hook.name] = value

    name = "blocks.0.attn.hook_z"
    _, cache = model.run_with_cache(IDS, name, gradients_of=loss)
    loss(model.run_with_hooks(IDS, [(name, keep)])).backward()
    close(found[name].grad, cache.gradients[name])
    model.zero_grad()

    def cut(value: Tensor, hook: HookPoint) -> None:
        value.detach_()

    loss(model.run_with_hooks(IDS, [("blocks.1.hook_resid_pre", cut)])).backward()
    assert all(parameter.grad is None for parameter in model.blocks[0].parameters())


@pytest.mark.parametrize(
    "run",
    [
        lambda model, name: torch.no_grad()(model)(IDS),
        lambda model, name: model.requires_grad_(requires_grad=False)(IDS),
        lambda model, name: model.run_with_hooks(IDS, [(name, lambda value, hook: value.detach())]),
        lambda model, name: model.generate(IDS, 1),
    ],
    ids=["no-grad", "frozen", "replaced-by-a-constant", "generate"],
)
def test_a_backward_function_that_would_never_be_called_is_refused(
    model: Transformer, run: Callable[[Transformer, str], object]
) -> None:
    name = "blocks.0.attn.hook_pattern"
    with model.hooks(backward=[(name, read)]), pytest.raises(UserError, match=f"{name} has no gradient here"):
        run(model, name)


@pytest.mark.parametrize(
    ("gradients_of", "sentence"),
    [
        (lambda logits: logits, "gradients_of has to make one number of the logits"),
        (lambda logits: 3.0, "gradients_of has to make one number of the logits"),
        (lambda logits: logits.detach().sum(), "gradients_of gave a number that depends on none of the values"),
    ],
)
def test_gradients_of_refuses_what_has_none(
    model: Transformer, gradients_of: Callable[[Tensor], Tensor], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        model.run_with_cache(IDS, gradients_of=gradients_of)


def test_gradients_of_refuses_inference_mode(model: Transformer) -> None:
    with torch.inference_mode(), pytest.raises(UserError, match="no gradients in torch"):
        model.run_with_cache(IDS, gradients_of=loss)


def test_scores_have_no_gradient_where_they_are_hidden(model: Transformer) -> None:
    _, cache = model.run_with_cache(IDS, gradients_of=loss)
    hidden = cache["attn_scores", 0] == -torch.inf
    assert hidden.any()
    assert not cache.gradients["blocks.0.attn.hook_attn_scores"][hidden].any()
    assert {short(name) for name in cache.gradients} >= {"attn_scores", "pattern", "z"}
