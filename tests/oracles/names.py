"""Numbers of others' models under our names."""

from torch import Tensor, nn


def by_our_names(parts: dict[str, nn.Module]) -> dict[str, Tensor]:
    """Give weights, and biases where there are any."""
    return {f"{name}.{kind}": number for name, part in parts.items() for kind, number in part.named_parameters()}


def split_by_head(fused: nn.Linear, heads: int) -> dict[str, Tensor]:
    """Undo one map of [query, key, value] of head 0, then of head 1, …"""
    return {
        f"{name}.{kind}": number.unflatten(0, (heads, 3, -1))[:, third].flatten(0, 1)
        for third, name in enumerate(("query", "key", "value"))
        for kind, number in fused.named_parameters()
    }
