"""Which kernel really ran: read off the operations that torch dispatched, never off what was asked for."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from headstock.model.evaluations import listening
from headstock.model.transformer import Transformer

_FUSED = {
    "_scaled_dot_product_flash_attention_for_cpu": "fused (flash, CPU)",
    "_scaled_dot_product_flash_attention": "fused (flash)",
    "_scaled_dot_product_efficient_attention": "fused (memory-efficient)",
    "_scaled_dot_product_cudnn_attention": "fused (cuDNN)",
    "_scaled_dot_product_fused_attention_overrideable": "fused (device's own)",
}


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the names of the operations that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def kernel_that_ran(model: Transformer, ids_bq: torch.Tensor) -> str:
    """Run the model once on ids and say by which kernel its blocks mixed: "fused (flash, CPU)", "plain", ….

    An evaluation of ours says its own name: "blockwise", "running mean", "chunked", "recurrent". "plain" where every
    weight was stored, "none" for a model without blocks.
    """
    if not model.config.n_layers:
        return "none"
    with torch.no_grad():
        return kernel_of(lambda: model.hidden(ids_bq))


def kernel_of(run: Callable[[], object]) -> str:
    """Run what mixes and say by which kernel it did, in the words of `kernel_that_ran`."""
    with listening() as ours, _Watch() as watch:
        run()
    fused = {label for name, label in _FUSED.items() if name in watch.names}
    return ", ".join(sorted(fused | ours)) or "plain"
