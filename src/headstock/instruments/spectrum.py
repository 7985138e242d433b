"""How many directions a map or a residual really uses: singular values, effective rank, and collapse by depth."""

from dataclasses import dataclass

import torch
from torch import Tensor

from headstock.instruments.passes import kept, look, look_at_weights, refuse_nothing, refuse_overflow, visible_to
from headstock.instruments.tables import cells, head_labels, layer_labels
from headstock.model.transformer import Transformer
from headstock.pictures.grid import heat
from headstock.pictures.lines import lines
from headstock.pictures.picture import Picture

ROUNDING = 2
"""Machine epsilons of a residual's largest singular value: what is smaller may be rounding."""


@dataclass(frozen=True)
class MapSpectrum:
    """Singular values of every attention map, the largest first. A row of padding alone is in no mean."""

    singular_values: Tensor
    """(layer, batch, head, time); padding adds zeros at the end."""
    effective_rank: Tensor
    """(layer, head), mean of the batch: from 1, where every query looks alike, to the number of tokens."""
    gap: Tensor
    """(layer, head), mean of the rows of two real tokens or more: the part of the largest singular value by which it is
    above the second. Near 1 one direction outweighs all others."""
    uniform_rank: float
    """The effective rank of a uniform average over the same visible keys, mean of the batch."""

    def draw(self) -> Picture:
        """Draw the effective rank of every head, layers down."""
        low, high = float(self.effective_rank.min()), float(self.effective_rank.max())
        return heat(
            cells(self.effective_rank),
            layer_labels(len(self.effective_rank)),
            head_labels(self.effective_rank.shape[1]),
            title=f"Effective rank of maps: {low:.3g} to {high:.3g}, {self.uniform_rank:.3g} in a uniform average",
            rows="layer",
            columns="head",
            unit="effective rank",
            name="map-spectrum",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


@dataclass(frozen=True)
class ResidualSpectrum:
    """Singular values of the residual of each row, tokens × model, by depth; the largest first.

    Depth 0 is what enters the first block; depth i is what leaves block i − 1. A row of padding alone is in no mean.
    What is no more than rounding is no direction in which tokens differ: where they have become one, there is none.
    """

    singular_values: Tensor
    """(depth, batch, number): of the residual less the mean of its tokens; padding adds zeros at the end."""
    effective_rank: Tensor
    """(depth,), mean of the batch, of the same: in how many directions tokens differ."""
    effective_rank_with_mean: Tensor
    """(depth,), mean of the batch: the same of the residual as it is."""
    apart: Tensor
    """(depth,), mean of the batch: ‖X − 1xᵀ‖ / ‖X‖ in Frobenius norms, x being the mean of the tokens: 0 where all
    tokens have become one."""

    def draw(self) -> Picture:
        """Draw the effective rank by depth."""
        depths = list(map(float, range(len(self.effective_rank))))
        first, last = float(self.effective_rank[0]), float(self.effective_rank[-1])
        return lines(
            {
                "less the mean": (depths, self.effective_rank.tolist()),
                "as it is": (depths, self.effective_rank_with_mean.tolist()),
            },
            x="blocks before",
            y="effective rank of the residual",
            title=f"Tokens differ in {first:.3g} directions before the first block, in {last:.3g} after the last",
            name="residual-spectrum",
        )

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()


def effective_rank(singular_values: Tensor) -> Tensor:
    """Give exp of the entropy of σ / Σσ, (…, number) → (…), 0 for zeros: Roy & Vetterli, "Effective Rank" (2007)."""
    total = singular_values.sum(-1, keepdim=True)
    share = singular_values / total.where(total > 0, 1.0)
    return torch.exp(-torch.xlogy(share, share).sum(-1)).where(total[..., 0] > 0, 0.0)


def map_spectrum(
    model: Transformer, ids: Tensor, *, real: Tensor | None = None, documents: Tensor | None = None
) -> MapSpectrum:
    """Give the singular values and the effective rank of each head's map, with its signs.

    ids: (batch, time); a map is (query × key). A largest singular value far above the rest is what makes tokens alike
    with depth: Dong et al., "Attention is not all you need" (2021); Naderi et al., "Mind the Gap" (2024). Takes time³ a
    map. Raises UserError where the mixer has no weights, for weights of NaN or infinity, and for ids without a token.
    """
    found: list[Tensor] = []

    def values(w_bhqk: Tensor, layer: int) -> None:
        refuse_overflow(w_bhqk, f"the weights of layer {layer}")
        found.append(torch.linalg.svdvals(kept(w_bhqk)))

    visible = visible_to(model, ids, real, documents)
    look_at_weights(model, ids, values, real=real, documents=documents)
    singular = torch.stack(found)
    uniform = visible / visible.sum(-1, keepdim=True).clamp(min=1)
    tokens_b = _token(ids, real).sum(1)
    ranks_lbh = effective_rank(singular)
    uniform_b = effective_rank(torch.linalg.svdvals(kept(uniform)))[:, 0].expand(len(ids))
    first, second = singular[..., 0], singular[..., min(1, singular.shape[-1] - 1)]
    gaps_lbh = (first - second) / first.where(first > 0, 1.0)
    return MapSpectrum(
        singular_values=singular,
        effective_rank=ranks_lbh[:, tokens_b > 0].mean(1),
        gap=gaps_lbh[:, tokens_b > 1].mean(1),
        uniform_rank=float(uniform_b[tokens_b > 0].mean()),
    )


def residual_spectrum(
    model: Transformer, ids: Tensor, *, real: Tensor | None = None, documents: Tensor | None = None
) -> ResidualSpectrum:
    """Give the singular values of the residual by depth: whether tokens become alike.

    ids: (batch, time). Each row of the batch is a matrix of its own, (token × model). That averages alone pull all
    tokens to one: Dong et al., "Attention is not all you need: pure attention loses rank doubly exponentially with
    depth" (2021), who measure ‖X − 1xᵀ‖ in another norm. Raises UserError for ids without a token, and for a residual
    of NaN or infinity.
    """
    refuse_nothing(ids, real, documents)
    token = _token(ids, real)
    count = token.sum(1)[:, None, None].clamp(min=1)
    there_b = token.any(1)
    singular: list[Tensor] = []
    ranks, with_mean, apart = [], [], []

    def measure(x_bqm: Tensor) -> None:
        refuse_overflow(x_bqm, f"the residual at depth {len(singular)}")
        x = kept(x_bqm) * token[..., None]
        centred = (x - x.sum(1, keepdim=True) / count) * token[..., None]
        whole, differing = torch.linalg.svdvals(x), torch.linalg.svdvals(centred)
        rounding = ROUNDING * torch.finfo(x_bqm.dtype).eps * whole[:, :1]
        singular.append(differing)
        ranks.append(effective_rank(differing.where(differing > rounding, 0.0))[there_b].mean())
        with_mean.append(effective_rank(whole)[there_b].mean())
        size = x.flatten(1).norm(dim=1)
        apart.append((centred.flatten(1).norm(dim=1) / size.where(size > 0, 1.0))[there_b].mean())

    def entering(x_bqm: Tensor, layer: int) -> None:
        if layer == 0:
            measure(x_bqm)

    look(
        model,
        ids,
        {"hook_resid_pre": entering, "hook_resid_post": lambda x_bqm, _: measure(x_bqm)},
        real=real,
        documents=documents,
    )
    return ResidualSpectrum(torch.stack(singular), torch.stack(ranks), torch.stack(with_mean), torch.stack(apart))


def _token(ids: Tensor, real: Tensor | None) -> Tensor:
    """Say which ids are no padding, bool (batch, time)."""
    return torch.ones(ids.shape, dtype=torch.bool) if real is None else real.cpu().bool()
