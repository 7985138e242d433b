"""Functions that read or replace a model's inner values while it runs, by the names of those values.

A model's parts pass each inner value through the pass's hooks: `x = hooks("hook_resid_pre", x)`. Where no function
waits for a name the value comes back as it is, the same tensor. Functions live in handles on a stack that belongs to
the model; a handle that is removed, by whatever way a `with` block is left, leaves nothing behind. Knows nothing of
what a model is made of: which names there are, its parts say.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.hook_functions import HookFunction, HookPoint, function_applied
from headstock.model.shapes import VisibleTensor
from headstock.model.visibility import Visible

__all__ = ["UNHOOKED", "Handle", "HookFunction", "HookPoint", "HookStack", "PassHooks", "WatchedPass"]


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

    def clear(self) -> None:
        """Remove every handle."""
        for handle in self._handles:
            handle.remove()

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """Let no function see a pass that is run inside."""
        waiting, self._handles = self._handles, []
        try:
            yield
        finally:
            self._handles = waiting

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

    def projected(self, q_bhqd: Tensor, k_bhkd: Tensor, v_bhkd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Do so for queries, keys and values, which are met in every block: three calls in one."""
        return q_bhqd, k_bhkd, v_bhkd

    def scores(self, name: str, scores_bhqk: Tensor, visible: Visible) -> tuple[Tensor, VisibleTensor]:
        """Do the same for scores, and say what is visible, bool (batch or 1, head or 1, query, key).

        Functions see −inf where a key is hidden; what they write there changes nothing. A key to which they write −inf
        weighs nothing, and a query to all of whose keys they do sees nothing.
        """
        return scores_bhqk, visible.dense

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

    def __call__(self, name: str, value: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Show the value to each function in turn; gradients are shown of the value that the pass goes on with.

        hidden: where it stays −inf, whatever a function writes there.
        """
        point = HookPoint(self._prefix + name)
        waiting = [handle for handle in self._handles if point.name in handle.functions]
        if not waiting:
            return value
        self._reached.add(point.name)
        for handle in waiting:
            if not handle.backward:
                for function in handle.functions.get(point.name, ()):
                    if handle.functions:  # one function may remove the handle of the next
                        value = function_applied(function, value, point, copies=handle.copies)
                        if hidden is not None and handle.copies:
                            value = value.masked_fill(hidden, -math.inf)
        backward = [handle for handle in waiting if handle.backward and point.name in handle.functions]
        if backward:
            if not value.requires_grad:
                raise UserError(
                    f"{point.name} has no gradient here, so the function that waits for it would never be called: run "
                    f"the model outside torch.no_grad(); a value that no trained parameter reaches never has one."
                )
            # A tensor of its own: where two names mean one tensor, each is to have its own functions.
            value = value.view_as(value)
            for handle in reversed(backward):  # the last to see a value is the first to see its gradient
                value.register_hook(partial(_gradient_applied, handle, point))  # type: ignore[no-untyped-call]
        return value

    def by_position(self, name: str, x_bhqd: Tensor) -> Tensor:
        """Turn, show, turn back."""
        return self(name, x_bhqd.transpose(1, 2)).transpose(1, 2) if self.wants(name) else x_bhqd

    def projected(self, q_bhqd: Tensor, k_bhkd: Tensor, v_bhkd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One after the other."""
        named = ("hook_q", q_bhqd), ("hook_k", k_bhkd), ("hook_v", v_bhkd)
        q_bhqd, k_bhkd, v_bhkd = (self.by_position(name, x_bhqd) for name, x_bhqd in named)
        return q_bhqd, k_bhkd, v_bhkd

    def scores(self, name: str, scores_bhqk: Tensor, visible: Visible) -> tuple[Tensor, VisibleTensor]:
        """Hide what is hidden, show, and put what was hidden back: a mixer masks it as it does without hooks."""
        if not self.wants(name):
            return scores_bhqk, visible.dense
        hidden = ~visible.dense
        given = self(name, scores_bhqk.masked_fill(hidden, -math.inf), hidden)
        blind = (given == -math.inf).all(-1, keepdim=True)
        seen = visible.dense & ~blind if bool(blind.any()) else visible.dense
        return torch.where(seen, given, scores_bhqk), seen

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
                        f"lists it never shows it; ask for other names, or let it call frame.hooks."
                    )


def _gradient_applied(handle: Handle, point: HookPoint, gradient: Tensor) -> Tensor:
    for function in handle.functions.get(point.name, ()):  # none once the handle is removed
        gradient = function_applied(function, gradient, point)
    return gradient
