"""A module whose inner values can be read and replaced by name while it runs."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn

from headstock.errors import UserError
from headstock.model.activations import Activations
from headstock.model.hook_functions import Hook, HookFunction, HookPoint, Names, chosen, named
from headstock.model.hooks import Handle, HookStack
from headstock.model.shapes import Ids, Logits


class Hooked(nn.Module):
    """What `run_with_cache`, `run_with_hooks` and `hooks` do; a model says its names, and shows its values to a pass.

    The names and their shapes are the field's (TransformerLens): `blocks.0.attn.hook_pattern` [batch, head, query,
    key].
    """

    def __init__(self) -> None:
        super().__init__()
        self.hook_stack = HookStack()
        """Who waits for which inner value."""

    @property
    @abstractmethod
    def described(self) -> str:
        """What a sentence calls the model."""

    @abstractmethod
    def hook_names(self) -> list[str]:
        """Give the name of every inner value that can be read and replaced, in the order of the pass."""

    def add_hook(self, names: Names, function: HookFunction, *, backward: bool = False) -> Handle:
        """Let a function wait until the handle that is given back is removed: see `hooks`."""
        return self.hook_stack.add(self._named([(names, function)]), backward=backward)

    def reset_hooks(self) -> None:
        """Remove every function that waits, whoever put it there. Nothing of ours calls it."""
        self.hook_stack.clear()

    @contextmanager
    def hooks(self, forward: Iterable[Hook] = (), backward: Iterable[Hook] = ()) -> Iterator[Self]:
        """Let functions wait inside a `with` block: pairs of a name, a list of names or a predicate, and a function.

        A function is called as `function(value, hook)`, `hook.name` being the value's name, whenever the model runs,
        in `generate` too, where a pass reads what the cache does not hold. It gives the value to go on with, or None
        to go on with the one it was given, a copy that is its own to change in place. Those of outer blocks see a value
        first. Scores stand at −inf where hidden, and what is written there changes nothing; −inf written elsewhere
        hides a key.

        Functions of `backward` are given the gradient with respect to the value instead, whenever gradients flow
        through a pass that was run inside, be it after the block.

        Raises UserError for a name that the model does not have, and for a function that waits in vain.
        """
        handles = []
        try:
            handles.append(self.hook_stack.add(self._named(forward)))
            handles.append(self.hook_stack.add(self._named(backward), backward=True))
            yield self
        finally:
            for handle in handles:
                self.hook_stack.let_go(handle)

    def run_with_hooks(
        self, ids_bq: Ids, forward: Iterable[Hook] = (), backward: Iterable[Hook] = (), **reading: Any
    ) -> Logits:
        """Give the logits of one pass that functions read or change: see `hooks`; reading: what `forward` takes."""
        with self.hooks(forward, backward):
            return self(ids_bq, **reading)  # type: ignore[no-any-return]

    def run_with_cache(
        self,
        ids_bq: Ids,
        names: Names | None = None,
        *,
        gradients_of: Callable[[Tensor], Tensor] | None = None,
        **reading: Any,
    ) -> tuple[Logits, Activations]:
        """Give the logits and the inner values of those names, all of them where none are given; nothing else is kept.

        gradients_of: makes a scalar of the logits, whose gradients with respect to the values are kept beside them;
        parameters' own gradients are left as they are. reading: what `forward` takes. Values are as the functions
        that wait already leave them. Scores and patterns are worked out plainly, so asking for them needs memory for
        every weight, and moves the logits by rounding.

        Raises UserError as `hooks` does.
        """
        if gradients_of is None:
            with self.collecting(names) as found:
                logits: Tensor = self(ids_bq, **reading)
            return logits, Activations(found, known=self.hook_names())
        if torch.is_inference_mode_enabled():
            raise UserError("there are no gradients in torch.inference_mode(): ask for gradients_of outside it.")
        if names is not None and not chosen(names, self.hook_names(), self.described):
            raise UserError("gradients_of has no values to have gradients of: name some.")
        with torch.enable_grad(), self.collecting(names, with_gradients=True) as found:
            logits = self(ids_bq, **reading)
            gradients = _gradients(gradients_of(logits), found)
        return logits.detach(), Activations(found, gradients, known=self.hook_names())

    @contextmanager
    def collecting(self, names: Names | None = None, *, with_gradients: bool = False) -> Iterator[dict[str, Tensor]]:
        """Collect values of the passes run inside, with their graph, by full name; a later pass's take the place.

        with_gradients: see to it that each value has a gradient, also in a model whose parameters have none.
        """
        known = self.hook_names()
        found: dict[str, Tensor] = {}

        def collect(value: Tensor, hook: HookPoint) -> Tensor:
            if with_gradients and not value.requires_grad:
                value = value.detach().requires_grad_()
            found[hook.name] = value
            return value

        wanted = known if names is None else chosen(names, known, self.described)
        handle = self.hook_stack.add({name: [collect] for name in wanted})
        handle.copies = False
        try:
            yield found
        finally:
            handle.remove()

    def _named(self, hooks: Iterable[Hook]) -> dict[str, list[HookFunction]]:
        return named(hooks, self.hook_names(), self.described)


def _gradients(scalar: object, values: dict[str, Tensor]) -> dict[str, Tensor]:
    if not isinstance(scalar, Tensor) or scalar.numel() != 1:
        raise UserError("gradients_of has to make one number of the logits, such as lambda x: x[0, -1, 3].")
    if not scalar.requires_grad:
        raise UserError("gradients_of gave a number that depends on none of the values: make it of the logits.")
    given = torch.autograd.grad(scalar, list(values.values()), allow_unused=True)
    return {
        name: torch.zeros_like(value) if gradient is None else gradient
        for (name, value), gradient in zip(values.items(), given, strict=True)
    }
