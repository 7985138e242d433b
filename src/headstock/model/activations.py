"""The inner values that a forward pass kept: `logits, cache = model.run_with_cache(ids)`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.model.hook_functions import near_hook


class Activations(Mapping[str, Tensor]):
    """Values by name, in the order of the pass; `cache["pattern", 0]` is `cache["blocks.0.attn.hook_pattern"]`.

    A short name may begin with its part, as in `cache["ln1.normalized", 0]`, or be followed by it, as in
    `cache["normalized", 0, "ln1"]`; it must where two parts have a value of that name. Layers are the model's, counted
    from the end where negative. Kept without their graph, so that they hold no memory but their own.

    known: the names of all that the model could have kept; those that it did where not given.
    """

    def __init__(
        self, values: Mapping[str, Tensor], gradients: Mapping[str, Tensor] | None = None, known: Sequence[str] = ()
    ) -> None:
        self._values = {name: value.detach() for name, value in values.items()}
        self._known = list(known or values)
        self.gradients = dict(gradients or {})
        """The gradient of the scalar that was asked for with respect to each value kept; empty where none was."""

    def __getitem__(self, name: "str | tuple[str, int] | tuple[str, int, str]") -> Tensor:
        """Give a value by its full name, or by its short one and its layer.

        Raises UserError, which says what is there, for one that was not kept, for a short name of two values, and for
        what is no name.
        """
        full = self._full(name)
        if full in self._values:
            return self._values[full]
        if full in self._known:
            raise NotKept(f"{full} was not kept by run_with_cache: ask for it among its names.")
        raise NotKept(f"the model has no {full!r}: {near_hook(full, self._known)}")

    def full_name(self, short: str, layer: int, part: str = "") -> str:
        """Give "blocks.0.attn.hook_pattern" for ("pattern", 0), kept or not."""
        numbers = [int(name.split(".")[1]) for name in self._known if name.startswith("blocks.")]
        number = layer + max(numbers, default=0) + 1 if layer < 0 else layer
        found = self._of_blocks(f"{part}.{short}" if part else short).get(number)
        return found or f"blocks.{number}.{part and part + '.'}{short}"

    def __contains__(self, name: object) -> bool:
        return self._full(name) in self._values if isinstance(name, str | tuple) else False

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        lines = (f"  {name} {list(value.shape)}" for name, value in self._values.items())
        return "\n".join([f"{len(self)} values, {self.n_bytes / 2**20:.1f} MiB", *lines])

    def stack(self, short: str) -> Tensor:
        """Give a value of every layer that it was kept of, (layer, …). Raises UserError where it was of none."""
        names = [name for name in self._of_blocks(short).values() if name in self._values]
        if not names:
            near = near_hook(short, self._known)
            raise NotKept(f"no layer's {short!r} was kept by run_with_cache: ask for it among its names; {near}")
        return torch.stack([self._values[name] for name in names])

    @property
    def n_bytes(self) -> int:
        """Bytes of all values together, each memory counted once."""
        storages: dict[int, Any] = {}
        for value in (*self._values.values(), *self.gradients.values()):
            storage = value.untyped_storage()
            storages[storage.data_ptr()] = storage
        return sum(storage.nbytes() for storage in storages.values())

    def _full(self, name: Any) -> str:
        if isinstance(name, tuple):
            if [type(one) for one in name] not in ([str, int], [str, int, str]):
                raise UserError(f"{name!r} names no value: give a short name and its layer, as in cache['pattern', 0].")
            return self.full_name(*name)
        return next((full for full in self._known if _plain(full) == name), str(name))

    def _of_blocks(self, short: str) -> dict[int, str]:
        """Give the full names that a short one may mean, by layer. Raises UserError where one layer has two."""
        found: dict[int, str] = {}
        for name in self._known:
            block, _, rest = name.partition(".")
            number, _, inside = rest.partition(".")
            if block == "blocks" and f".{_plain(inside)}".endswith(f".{_plain(short)}"):
                if int(number) in found:
                    parts = [full.split(".")[2] for full in (found[int(number)], name)]
                    raise UserError(
                        f"{short!r} may be that of {parts[0]} or of {parts[1]}: say which, as in "
                        f"cache['{parts[0]}.{_plain(short)}', {number}]."
                    )
                found[int(number)] = name
        return found


def _plain(name: str) -> str:
    return name.replace("hook_", "")


class NotKept(UserError, KeyError):
    """A value was asked for that the pass did not keep."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would put its sentence in quotes
