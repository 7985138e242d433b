"""What share of the second map differential attention subtracts: λ by layer, or by token and head."""

from dataclasses import dataclass

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.passes import kept, lists, look, undisturbed
from headstock.model.mixers.differential import Differential
from headstock.model.mixers.differential2 import Differential2
from headstock.model.transformer import Block, Transformer
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
LAMBDA = "attn.hook_lambda"


@dataclass(frozen=True)
class Lambdas:
    """λ of a differential model; by layer in version 1, by token and head in version 2."""

    by_layer: Tensor
    """(layer,): λ, or its mean over heads and, in version 2, real tokens."""
    initial: Tensor | None
    """(layer,): version 1's λ_init, the constant that λ starts next to; None in version 2, which has none."""
    by_head: Tensor | None
    """(layer, head): version 2's mean over real tokens, or the λ of each pair of version 1; None where they share."""
    quantiles: Tensor | None
    """(layer, head, 5): version 2's, over real tokens, at 5, 25, 50, 75 and 95 %."""
    by_token: Tensor | None
    """(layer, batch, position, head): version 2's λ; not a number at padding."""

    def draw(self) -> Picture:
        """Draw λ by layer: beside λ_init, or with the band that 90 % of tokens and heads lie in."""
        layers = list(map(float, range(len(self.by_layer))))
        low, high = float(self.by_layer.min()), float(self.by_layer.max())
        ends = f"{low:.3g} to {high:.3g}" if high > low else f"{low:.3g}"
        series = {"λ": (layers, self.by_layer.tolist())}
        if self.initial is not None:
            series["λ_init"] = (layers, self.initial.tolist())
        bands = {}
        if self.by_token is not None:
            all_of_layer = self.by_token.flatten(1)
            edges = [all_of_layer.nanquantile(quantile, dim=1).tolist() for quantile in (0.05, 0.95)]
            bands["λ"] = (edges[0], edges[1])
        return lines(
            series,
            x="layer",
            y="λ",
            title=f"λ by layer: {ends}",
            bands=bands,
            band="5 to 95 % of tokens and heads" if bands else "",
            name="lambdas",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


def lambda_values(model: Transformer, ids: Tensor | None = None, *, real: Tensor | None = None) -> Lambdas:
    """Give how much of the second map is subtracted, by layer, or by token and head.

    Version 1 (Ye et al., "Differential Transformer", 2024): λ is a number a layer, or a pair, and needs no ids; with
    them it is read from a pass, as functions that wait in the model leave it. Version 2 (Ye et al., 2026): λ is read
    while reading ids, (batch, time). Raises UserError for other mixers, and where ids are needed and not given, or hold
    no token.
    """
    mixers = [block.mixer for block in model.blocks if isinstance(block, Block)]
    if mixers and all(isinstance(mixer, Differential) for mixer in mixers):
        return _first_version(model, ids, real)
    if not mixers:
        raise UserError(f"{model.described} has no blocks, so there is no λ: give a model with n_layers ≥ 1.")
    if not all(isinstance(mixer, Differential2) for mixer in mixers):
        raise UserError(f"{model.config.mixer} subtracts no second map, so it has no λ: give a differential model.")
    if ids is None:
        raise UserError("the λ of differential2 is what a token makes of it: give ids to read.")
    if real is not None and not bool(real.any()):
        raise UserError("there is no real token to read, so there is no λ: give ids of which some are real.")
    found: list[Tensor] = []
    look(model, ids, {LAMBDA: lambda lambda_bqh, _: found.append(kept(lambda_bqh))}, real=real)
    by_token = torch.stack(found)
    if real is not None:
        by_token = by_token.masked_fill(~real.cpu()[None, ..., None], torch.nan)
    a_head = by_token.flatten(1, 2)
    return Lambdas(
        by_layer=by_token.flatten(1).nanmean(1),
        initial=None,
        by_head=a_head.nanmean(1),
        quantiles=a_head.nanquantile(torch.tensor(QUANTILES, dtype=a_head.dtype), dim=1).movedim(0, -1),
        by_token=by_token,
    )


def _first_version(model: Transformer, ids: Tensor | None, real: Tensor | None) -> Lambdas:
    mixers = [block.mixer for block in model.blocks if isinstance(block, Block)]
    found: list[Tensor] = []
    if ids is not None and lists(model, LAMBDA):  # which one map alone, λ being 0, does not show
        look(model, ids, {LAMBDA: lambda value, _: found.append(kept(value))}, real=real)
    else:
        with undisturbed(model):
            found = [kept(mixer.lambda_now()) for mixer in mixers if isinstance(mixer, Differential)]
    initial = [mixer.lambda_init for mixer in mixers if isinstance(mixer, Differential)]
    stacked = torch.stack(found)
    by_head = stacked if stacked.ndim == 2 else None
    by_layer = stacked if by_head is None else by_head.mean(1)
    return Lambdas(by_layer, by_layer.new_tensor(initial), by_head=by_head, quantiles=None, by_token=None)
