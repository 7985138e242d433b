"""A pass that shows, layer by layer, the weights of each head together with the values that they average."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.passes import PATTERN, Look, lists, look, look_at_weights, refuse_without_weights
from headstock.model.attention import shared_by_groups
from headstock.model.transformer import Transformer

VALUES = "attn.hook_v"
Average: TypeAlias = Callable[[Tensor, Tensor, int], None]
"""(weights (batch, head, query, key), values (batch, head, key, d), layer)"""


def look_at_averages(
    model: Transformer,
    ids_bq: Tensor,
    function: Average,
    at: Mapping[str, Look] | None = None,
    *,
    real: Tensor | None = None,
    documents: Tensor | None = None,
) -> None:
    """Show each block's weights and values, grouped values repeated for each head, and the values named in `at`.

    Their product is what a head gives before its norm, if it has one. Raises UserError for a mixer without weights or
    one that does not show its values, and as `look` does.
    """
    refuse_without_weights(model)
    if not lists(model, VALUES):
        raise UserError(f"{model.config.mixer} does not show what it averages, {VALUES}, so that cannot be measured.")
    held: dict[int, Tensor] = {}

    def hold(v_bkhd: Tensor, layer: int) -> None:
        held[layer] = v_bkhd.transpose(1, 2)

    def weigh(w_bhqk: Tensor, layer: int) -> None:
        function(w_bhqk, shared_by_groups(held.pop(layer), w_bhqk.shape[1]), layer)

    watched = {VALUES: hold, **(at or {})}
    if lists(model, PATTERN):
        look_at_weights(model, ids_bq, weigh, watched, real=real, documents=documents)
        return
    look(model, ids_bq, watched, real=real, documents=documents)
    look_at_weights(model, ids_bq, weigh, real=real, documents=documents)
