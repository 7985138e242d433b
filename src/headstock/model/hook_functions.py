"""What a hook is: the names it waits for and a function, how both are checked, and how a function is called.

Knows nothing of models: which names there are, it is told.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import Tensor, nn

from headstock.errors import UserError, near_name


@dataclass(frozen=True)
class HookPoint:
    """Where a function was called."""

    name: str

    def layer(self) -> int | None:
        """Give the number of the block, from 0; None outside the blocks."""
        parts = self.name.split(".")
        return int(parts[1]) if parts[0] == "blocks" else None


HookFunction: TypeAlias = Callable[[Tensor, HookPoint], Tensor | None]
"""(value, hook) → the value to go on with, or None to go on with the one given, as it was or as it was changed."""
Names: TypeAlias = str | Sequence[str] | Callable[[str], bool]
"""A name, a list of them, or a predicate."""
Hook: TypeAlias = tuple[Names, HookFunction]


def function_applied(function: HookFunction, value: Tensor, point: HookPoint, *, copies: bool = True) -> Tensor:
    """Give the value to go on with after one function has seen it.

    The function is given a copy, for other names may mean the same memory; where it returns None the model goes on
    with that copy, so that whatever was done to it counts: changes in place, `detach_`, `retain_grad`. Raises
    UserError for what is no real tensor of the value's shape, where the value is, a copy that was reshaped too.
    """
    shown = value.clone() if copies else value
    given = function(shown, point)
    return _of_its_shape(shown if given is None else given, value, point)


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
    if given.device != value.device:
        raise UserError(
            f"the function on {point.name} gave a tensor on {given.device}, but the value is on {value.device}: give "
            f"one there."
        )
    if given.is_complex():
        raise UserError(f"the function on {point.name} gave complex numbers: give real ones, such as their .real.")
    return given.to(value.dtype)


def named(hooks: Iterable[Hook], known: Sequence[str], of: str) -> dict[str, list[HookFunction]]:
    """Give the functions by the full names that they wait for.

    Raises UserError for a name that is not known, no name at all, a predicate that fits none, and what cannot be
    called as `function(value, hook)`.
    """
    functions: dict[str, list[HookFunction]] = {}
    if not isinstance(hooks, Iterable):
        raise UserError(f"{hooks!r} holds no hooks: give a list of pairs of a name and a function.")
    for hook in hooks:
        try:
            names, function = hook
        except (TypeError, ValueError):
            raise UserError(f"{hook!r} is no hook: give pairs of a name and a function.") from None
        called = as_called(function)
        found = chosen(names, known, of)
        if not found:
            raise UserError(f"a function waits for no name of {of}: give it one, see model.hook_names().")
        for name in found:
            functions.setdefault(name, []).append(called)
    return functions


def chosen(names: Names, known: Sequence[str], of: str) -> list[str]:
    """Give the known names that are meant, in the order of the pass. Raises UserError where one means none."""
    if callable(names):
        found = [name for name in known if names(name)]
        if not found:
            raise UserError(f"the predicate fits none of the {len(known)} names of {of}: see model.hook_names().")
        return found
    if not isinstance(names, Iterable):
        raise UserError(
            f"{names!r} names nothing: give a name, a list of names, or a function that says of a name whether it is "
            f"meant, such as re.compile(...).search."
        )
    asked = [names] if isinstance(names, str) else list(names)
    for name in asked:
        if name not in known:
            raise UserError(f"{of} has no {name!r}: {near_hook(str(name), known)}")
    return [name for name in known if name in asked]


def near_hook(name: str, known: Sequence[str]) -> str:
    """Give the end of a sentence about an unknown name: the nearest known one, also of a short or half-right one."""
    last = _short(name)
    numbers = [part for part in name.split(".") if part.isdigit()]
    ends_alike = [full for full in known if _short(full) == last]
    ends_alike = ends_alike or [full for full in known if len(last) > 2 and last in _short(full)]
    in_its_layer = [full for full in ends_alike if numbers and numbers[0] in full.split(".")]
    for full in in_its_layer or ends_alike:
        return f"did you mean {full!r}?"
    said = near_name(name, known)
    return said if said.startswith("did you mean") or len(known) < 9 else "see model.hook_names()."


def _short(name: str) -> str:
    return name.rpartition(".")[2].removeprefix("hook_")


def as_called(function: Any) -> HookFunction:
    """Give a function that is called as (value, point): by the keyword `hook` where that is what it calls it.

    Raises UserError for what cannot be called so, and where the point would land in a parameter meant for something
    else.
    """
    if not callable(function):
        raise UserError(f"{function!r} is no function: a hook is called as function(value, hook).")
    try:
        # A module's own call takes anything, and hands it on.
        signature = inspect.signature(function.forward if isinstance(function, nn.Module) else function)
    except ValueError:  # what is written in C does not say what it takes
        return function  # type: ignore[no-any-return]
    kinds = {name: parameter.kind for name, parameter in signature.parameters.items()}
    by_keyword = kinds.get("hook", inspect.Parameter.POSITIONAL_ONLY) is not inspect.Parameter.POSITIONAL_ONLY
    try:
        if by_keyword:
            signature.bind(None, hook=None)
            return lambda value, point: function(value, hook=point)
        bound = signature.bind(None, None)
    except TypeError:
        bound = None
    for name in list(bound.arguments)[1:] if bound else ():
        if signature.parameters[name].default is not inspect.Parameter.empty:
            bound = None  # as in `lambda value, layer=layer: ...`
    if bound is None:
        said = getattr(function, "__name__", type(function).__name__)
        raise UserError(
            f"{said!r} cannot be called as function(value, hook), where hook.name is the value's name: give it these "
            f"two parameters."
        )
    return function  # type: ignore[no-any-return]
