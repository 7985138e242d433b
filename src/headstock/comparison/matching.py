"""Making arms equal before they are compared, and saying what is still not equal.

The one thing that is changed is the width of the feed-forward (or, for equal time, the number of steps): never the
mixer, which is what the comparison is about.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import torch

from headstock.comparison.request import Match
from headstock.errors import UserError
from headstock.model.accounting import cache_bytes, flops_per_token, parameters
from headstock.model.config import ModelConfig
from headstock.model.transformer import Transformer

TOLERANCE = 0.005
"""The largest share by which a matched size may still differ."""


@dataclass(frozen=True)
class Sizes:
    """What a config costs, by closed formula."""

    parameters: int
    non_embedding: int
    flops_per_token: int
    cache_bytes: int


def sizes(config: ModelConfig) -> Sizes:
    """Count; raises UserError where a user's mixer has other parameters than it says."""
    counted = parameters(config)
    with torch.device("meta"):
        real = sum(parameter.numel() for parameter in Transformer(config).parameters())
    if real != counted.total:
        raise UserError(
            f"{config.mixer} trains {real - counted.total:+,} numbers beside what it says: give it an "
            f"own_parameters(config) that counts its own, a layer."
        )
    return Sizes(counted.total, counted.non_embedding, flops_per_token(config), cache_bytes(config))


def matched(
    labels: Sequence[str], configs: Sequence[ModelConfig], match: Match, *, as_saved: Collection[str] = ()
) -> list[ModelConfig]:
    """Give the configs with the feed-forward of all but the first made as wide as equality needs.

    params: equal parameters without embeddings. flops: equal FLOPs a token. time and none: as they are.
    as_saved: labels of arms whose weights are given, so that they stay as they are whatever their size.
    Raises UserError, with the figure, where more than 0.5 % remains of another.
    """
    if match in ("time", "none"):
        return list(configs)
    size = _non_embedding if match == "params" else flops_per_token
    what = "parameters without embeddings" if match == "params" else "FLOPs a token"
    goal = size(configs[0])
    made = [configs[0]]
    for label, config in zip(labels[1:], configs[1:], strict=True):
        if label in as_saved:
            made.append(config)
            continue
        solved = _solved(config, goal, size)
        left = (size(solved) - goal) / goal if goal else float(size(solved) != goal)
        if abs(left) > TOLERANCE:
            raise UserError(
                f"{label} has {abs(left):.1%} {'more' if left > 0 else 'fewer'} {what} than {labels[0]} and no width "
                f"of its feed-forward makes them equal: choose --match none, and read the sizes beside the result."
            )
        made.append(solved)
    return made


def _non_embedding(config: ModelConfig) -> int:
    return parameters(config).non_embedding


def _solved(config: ModelConfig, goal: int, size: Callable[[ModelConfig], int]) -> ModelConfig:
    """Give the config whose feed-forward brings its size nearest to the goal; sizes grow in a line with d_ff."""
    if config.feedforward == "none" or not config.n_layers or size(config) == goal:
        return config
    one, two = (size(config.model_copy(update={"d_ff": width})) for width in (1, 2))
    return config.model_copy(update={"d_ff": max(1, 1 + round((goal - one) / (two - one)))})


def still_differs(labels: Sequence[str], configs: Sequence[ModelConfig]) -> str:
    """Say what is not equal between the arms, relative to the first; empty where all is."""
    counted = [sizes(config) for config in configs]
    said = []
    for field, what in (
        ("non_embedding", "parameters without embeddings"),
        ("flops_per_token", "FLOPs a token"),
        ("cache_bytes", "bytes of a full cache"),
    ):
        base = getattr(counted[0], field)
        others = [
            f"{label} {_relative(getattr(count, field), base)}"
            for label, count in zip(labels[1:], counted[1:], strict=True)
            if getattr(count, field) != base
        ]
        if others:
            said.append(f"{what} ({', '.join(others)})")
    return f"still unlike {labels[0]}'s: {'; '.join(said)}" if said else ""


def _relative(value: int, base: int) -> str:
    if not base:
        return f"{value:,} beside 0"
    return f"{(value - base) / base:+.2%}".replace("-", "−").replace("%", " %")
