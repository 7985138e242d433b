"""The inner values that a forward pass kept: `logits, cache = model.run_with_cache(ids)`."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from headstock.errors import UserError, near_name


class Activations(Mapping[str, Tensor]):
    """Values by name, in the order of the pass; `cache["pattern", 0]` is `cache["blocks.0.attn.hook_pattern"]`.

    Kept without their graph, so that they hold no memory but their own.
    """

    def __init__(self, values: Mapping[str, Tensor], gradients: Mapping[str, Tensor] | None = None) -> None:
        self._values = {name: value.detach() for name, value in values.items()}
        self.gradients = dict(gradients or {})
        """The gradient of the scalar that was asked for with respect to each value kept; empty where none was."""

    def __getitem__(self, name: "str | tuple[str, int]") -> Tensor:
        """Give a value by its full name, or by its short one and its layer, counted from the end where negative.

        Raises UserError, which says what is there, for one that was not kept.
        """
        full = self.full_name(*name) if isinstance(name, tuple) else name
        try:
            return self._values[full]
        except KeyError:
            kept = "nothing was kept" if not self._values else near_name(full, self._values)
            raise NotKept(f"{full!r} was not kept by run_with_cache: {kept}") from None

    def full_name(self, short: str, layer: int) -> str:
        """Give "blocks.0.attn.hook_pattern" for ("pattern", 0), a negative layer counted from the last one kept."""
        found = [name for name in self._values if name.startswith("blocks.") and name.endswith(f"hook_{short}")]
        found = [name for name in found if name.split(".")[-1] == f"hook_{short}"]
        layers = {int(name.split(".")[1]): name for name in found}
        if layer < 0 and layers:
            layer += max(layers) + 1
        return layers.get(layer, f"blocks.{layer}.hook_{short}")

    def __contains__(self, name: object) -> bool:
        return (self.full_name(*name) if isinstance(name, tuple) else name) in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        lines = (f"  {name} {list(value.shape)}" for name, value in self._values.items())
        return "\n".join([f"{len(self)} values, {self.n_bytes / 2**20:.1f} MiB", *lines])

    def stack(self, short: str) -> Tensor:
        """Give a value of every layer that was kept, (layer, …). Raises UserError where none was."""
        names = [name for name in self._values if name.split(".")[-1] == f"hook_{short}" and name.startswith("blocks.")]
        if not names:
            raise NotKept(f"no layer's hook_{short} was kept by run_with_cache: name it, as in ['blocks.0.…'].")
        return torch.stack([self._values[name] for name in names])

    @property
    def n_bytes(self) -> int:
        """Bytes of all values together, each memory counted once."""
        storages: dict[int, Any] = {}
        for value in (*self._values.values(), *self.gradients.values()):
            storage = value.untyped_storage()
            storages[storage.data_ptr()] = storage
        return sum(storage.nbytes() for storage in storages.values())


class NotKept(UserError, KeyError):
    """A value was asked for that the pass did not keep."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would put its sentence in quotes
