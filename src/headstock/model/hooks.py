"""Functions that read or replace a model's inner values while it runs, by the names of those values.

A model's parts pass each inner value through the pass's hooks: `x = hooks("hook_resid_pre", x)`. Where no function
waits for a name the value comes back as it is, the same tensor. Functions live in handles on a stack that belongs to
the model; a handle that is removed, by whatever way a `with` block is left, leaves nothing behind. Knows nothing of
what a model is made of: which names there are, its parts say.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from headstock.errors import UserError, near_name
from headstock.model.visibility import Visible


@dataclass(frozen=True)
class HookPoint:
    """Where a function was called."""

    name: str

    def layer(self) -> int | None:
        """Give the number of the block, from 0; None outside the blocks."""
        parts = self.name.split(".")
        return int(parts[1]) if parts[0] == "blocks" else None


HookFunction: TypeAlias = Callable[[Tensor, HookPoint], Tensor | None]
"""(value, where) → the value to go on with, or None to go on with the one given, as it was or as it was changed."""
Names: TypeAlias = str | Sequence[str] | Callable[[str], bool]
"""A name, a list of them, or a predicate."""
Hook: TypeAlias = tuple[Names, HookFunction]


class Handle:
    """Functions waiting for values, until `remove()`."""

    def __init__(self, stack: "HookStack", functions: dict[str, list[HookFunction]], *, backward: bool = False) -> None:
        self._stack = stack
        self.functions = functions
        self.backward = backward
        self.copies = True
        """Whether a function is given a copy of the value; one of ours, which changes nothing in place, needs none."""

    @property
    def names(self) -> list[str]:
        """Give the names it waits for."""
        return list(self.functions)

    def remove(self) -> None:
        """Wait no longer; once is enough, twice does no harm. Gradients of passes that have been run are let go too."""
        self.functions = {}
        self._stack.let_go(self)


class HookStack:
    """The handles of one model, in the order in which they see a value."""

    def __init__(self) -> None:
        self._handles: list[Handle] = []

    def __deepcopy__(self, memo: object) -> "HookStack":
        return HookStack()  # a copy of a model is another model: nobody's functions wait there

    def __reduce__(self) -> tuple[type["HookStack"], tuple[()]]:
        return HookStack, ()

    def add(self, functions: dict[str, list[HookFunction]], *, backward: bool = False) -> Handle:
        """Put functions on top; empty ones are no handle's worth, but one all the same."""
        handle = Handle(self, functions, backward=backward)
        self._handles.append(handle)
        return handle

    def let_go(self, handle: Handle) -> None:
        """Take a handle out, wherever it lies."""
        self._handles = [held for held in self._handles if held is not handle]

    def for_pass(self) -> "PassHooks":
        """Give what one forward pass meets: those that wait now."""
        return WatchedPass(self._handles) if self._handles else UNHOOKED


class PassHooks:
    """The hooks of one forward pass in which nobody waits for anything; each value comes back as it is."""

    def __call__(self, name: str, value: Tensor) -> Tensor:
        """Give the value to go on with."""
        return value

    def by_position(self, name: str, x_bhqd: Tensor) -> Tensor:
        """Do the same for a value that functions know as (batch, position, head, …)."""
        return x_bhqd

    def scores(self, name: str, scores_bhqk: Tensor, visible: Visible) -> Tensor:
        """Do the same for scores, which functions see with −inf where hidden; what they write there changes nothing."""
        return scores_bhqk

    def wants(self, *names: str) -> bool:
        """Say whether somebody waits for one of the names."""
        return False

    def block(self, layer: int) -> "PassHooks":
        """Give the hooks of a block's own names."""
        return self

    def attn(self, layer: int) -> "PassHooks":
        """Give the hooks of a mixer's own names."""
        return self

    def refuse_unreached(self) -> None:
        """Raise UserError where a value that somebody waits for was never there."""


UNHOOKED = PassHooks()


class WatchedPass(PassHooks):
    """The hooks of one forward pass, under the names of one part of the model."""

    def __init__(self, handles: Iterable[Handle], prefix: str = "", reached: set[str] | None = None) -> None:
        self._handles = list(handles)
        self._prefix = prefix
        self._reached: set[str] = set() if reached is None else reached

    def __call__(self, name: str, value: Tensor) -> Tensor:
        """Show the value to each function in turn; gradients are shown of the value that the pass goes on with."""
        point = HookPoint(self._prefix + name)
        waiting = [handle for handle in self._handles if point.name in handle.functions]
        if not waiting:
            return value
        self._reached.add(point.name)
        for handle in waiting:
            if not handle.backward:
                for function in handle.functions.get(point.name, ()):
                    value = function_applied(function, value, point, copies=handle.copies)
        backward = [handle for handle in waiting if handle.backward and point.name in handle.functions]
        if backward:
            if not value.requires_grad:
                raise UserError(
                    f"{point.name} has no gradient here, so the function that waits for it would never be called: run "
                    f"the model with gradients, outside torch.no_grad()."
                )
            # A tensor of its own: where two names mean one tensor, each is to have its own functions.
            value = value.view_as(value)
            for handle in reversed(backward):  # the last to see a value is the first to see its gradient
                value.register_hook(partial(_gradient_applied, handle, point))  # type: ignore[no-untyped-call]
        return value

    def by_position(self, name: str, x_bhqd: Tensor) -> Tensor:
        """Turn, show, turn back."""
        return self(name, x_bhqd.transpose(1, 2)).transpose(1, 2) if self.wants(name) else x_bhqd

    def scores(self, name: str, scores_bhqk: Tensor, visible: Visible) -> Tensor:
        """Hide what is hidden, show, and put what was hidden back: a mixer masks it as it does without hooks."""
        if not self.wants(name):
            return scores_bhqk
        shown = scores_bhqk.masked_fill(~visible.dense, -math.inf)
        return torch.where(visible.dense, self(name, shown), scores_bhqk)

    def wants(self, *names: str) -> bool:
        """Say whether somebody waits for one of the names."""
        return any(self._prefix + name in handle.functions for handle in self._handles for name in names)

    def block(self, layer: int) -> PassHooks:
        """Give the hooks under `blocks.{layer}.`"""
        return self._under(f"blocks.{layer}.")

    def attn(self, layer: int) -> PassHooks:
        """Give the hooks under `blocks.{layer}.attn.`"""
        return self._under(f"blocks.{layer}.attn.")

    def _under(self, prefix: str) -> PassHooks:
        here = [handle for handle in self._handles if any(name.startswith(prefix) for name in handle.functions)]
        return WatchedPass(here, prefix, self._reached) if here else UNHOOKED

    def refuse_unreached(self) -> None:
        """Raise UserError where a value that somebody waits for was never there."""
        for handle in self._handles:
            for name in handle.functions:
                if name not in self._reached:
                    raise UserError(
                        f"{name} was not reached, so the function that waits for it was never called: the part that "
                        f"lists it works it out in a way of its own."
                    )


def function_applied(function: HookFunction, value: Tensor, point: HookPoint, *, copies: bool = True) -> Tensor:
    """Give the value to go on with after one function has seen it.

    The function is given a copy, which it may change in place as it likes: other names may mean the same memory.
    Raises UserError for what is no tensor of the value's shape.
    """
    copy = value.clone() if copies else value
    version = copy._version
    given = function(copy, point)
    if given is None:
        return value if copy._version == version else copy
    return _of_its_shape(given, value, point)


def _gradient_applied(handle: Handle, point: HookPoint, gradient: Tensor) -> Tensor:
    for function in handle.functions.get(point.name, ()):  # none once the handle is removed
        gradient = function_applied(function, gradient, point)
    return gradient


def _of_its_shape(given: object, value: Tensor, point: HookPoint) -> Tensor:
    if not isinstance(given, Tensor):
        raise UserError(
            f"the function on {point.name} gave {type(given).__name__}: give a tensor of shape {tuple(value.shape)}, "
            f"or None to leave the value as it is."
        )
    if given.shape != value.shape:
        raise UserError(
            f"the function on {point.name} gave a tensor of shape {tuple(given.shape)}, but the value has "
            f"{tuple(value.shape)}: give one of that shape."
        )
    return given.to(value.dtype)


def named(hooks: Iterable[Hook], known: Sequence[str], of: str) -> dict[str, list[HookFunction]]:
    """Give the functions by the full names that they wait for.

    Raises UserError for a name that is not known, a predicate that fits none, and what cannot be called as
    `function(value, hook)`.
    """
    functions: dict[str, list[HookFunction]] = {}
    for hook in hooks:
        try:
            names, function = hook
        except (TypeError, ValueError):
            raise UserError(f"{hook!r} is no hook: give pairs of a name and a function.") from None
        refuse_no_function(function)
        for name in chosen(names, known, of):
            functions.setdefault(name, []).append(function)
    return functions


def chosen(names: Names, known: Sequence[str], of: str) -> list[str]:
    """Give the known names that are meant, in the order of the pass. Raises UserError where one means none."""
    if callable(names):
        found = [name for name in known if names(name)]
        if not found:
            raise UserError(f"the predicate fits none of the {len(known)} names of {of}: see model.hook_names().")
        return found
    asked = [names] if isinstance(names, str) else list(names)
    for name in asked:
        if name not in known:
            raise UserError(f"{of} has no {name!r}: {near_name(str(name), known)}")
    return [name for name in known if name in asked]


def refuse_no_function(function: object) -> None:
    """Raise UserError for what cannot be called with a value and a hook point."""
    if not callable(function):
        raise UserError(f"{function!r} is no function: a hook is called as function(value, hook).")
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        raise UserError(
            f"{getattr(function, '__name__', function)!r} cannot be called as function(value, hook), where "
            f"hook.name is the value's name: give it these two parameters."
        ) from None
    except ValueError:  # what is written in C does not say what it takes
        return
