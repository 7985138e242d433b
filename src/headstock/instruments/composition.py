"""Which heads read what earlier heads write, judged by their weights alone."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from headstock.errors import UserError, near_name
from headstock.instruments.passes import refuse_no_numbers
from headstock.instruments.tables import cells
from headstock.model.attention import shared_by_groups
from headstock.model.mixers.base import HeadMixer, ScoreMixer
from headstock.model.transformer import Block, Transformer
from headstock.pictures.grid import MOST, heat
from headstock.pictures.picture import Picture

Kind = Literal["q", "k", "v"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_READS = {"q": "queries", "k": "keys", "v": "values"}


@dataclass(frozen=True)
class Composition:
    """How much of what a later head reads lies where an earlier head writes, 0 to 1; not a number where not later."""

    q: Tensor | None
    """float64 (later layer, later map, earlier layer, earlier head): into its queries; None for a mixer without
    queries and keys. A head has one map, in differential attention two: maps 2i and 2i + 1 are those of pair i."""
    k: Tensor | None
    """float64, the same: into its keys."""
    v: Tensor
    """float64 (later layer, later head, earlier layer, earlier head): into its values."""
    chance: float
    """The root mean square of the score of the same maps turned to each other at random: 1/√d_model."""

    def of(self, kind: str) -> Tensor:
        """Give the scores of a kind. Raises UserError for a kind that there is not."""
        if kind not in KINDS:
            raise UserError(f"there is no {kind!r} composition: {near_name(kind, KINDS)}")
        scores = getattr(self, kind)
        if scores is None:
            raise UserError(f"the mixer has no queries and keys, so there is no {kind} composition: ask for v.")
        return scores  # type: ignore[no-any-return]

    def strongest(self, kind: Kind, count: int = 10) -> list[tuple[tuple[int, int], tuple[int, int], float]]:
        """Give ((earlier layer, head), (later layer, map or head), score) of the highest scores, the highest first."""
        scores = self.of(kind)
        order = scores.nan_to_num(-1.0).flatten().argsort(descending=True, stable=True)[:count]
        found = []
        for place in zip(*(axis.tolist() for axis in torch.unravel_index(order, scores.shape)), strict=True):
            later_layer, later, earlier_layer, earlier = place
            score = float(scores[place])
            if math.isfinite(score):
                found.append(((earlier_layer, earlier), (later_layer, later), score))
        return found

    def draw(self, kind: Kind = "k") -> Picture:
        """Draw the scores, later heads down and earlier ones across; the strongest of each two layers where too many.

        Raises UserError for a kind that there is not.
        """
        scores = self.of(kind)[1:, :, :-1]  # nothing is earlier than the first layer, nor later than the last
        n_later, later_heads, n_earlier, earlier_heads = scores.shape
        if max(n_later * later_heads, n_earlier * earlier_heads) > MOST:
            table, what = scores.nan_to_num(-1.0).amax((1, 3)), "layer"
            table = table.masked_fill(table < 0, math.nan)
            rows, columns = [str(1 + layer) for layer in range(n_later)], [str(layer) for layer in range(n_earlier)]
        else:
            table, what = scores.flatten(2).flatten(0, 1), "layer.head"
            rows = [f"{1 + layer}.{head}" for layer in range(n_later) for head in range(later_heads)]
            columns = [f"{layer}.{head}" for layer in range(n_earlier) for head in range(earlier_heads)]
        best = self.strongest(kind, 1)
        title = f"{kind.upper()}-composition"
        if best:
            (writer, reader, score) = best[0]
            title += f": most of {writer[0]}.{writer[1]} in the {_READS[kind]} of {reader[0]}.{reader[1]}, {score:.2f}"
        return heat(
            cells(table),
            rows,
            columns,
            title=title,
            rows=f"later {what}",
            columns=f"earlier {what}",
            unit="composition score",
            missing="not earlier",
            caption=f"Turned to each other at random, the same maps score {self.chance:.3g}.",
            name=f"{kind}-composition",
        )

    def _repr_html_(self) -> str:
        return "".join(self.draw(kind)._repr_html_() for kind in KINDS if getattr(self, kind) is not None)


def composition_scores(model: Transformer) -> Composition:
    """Give the Q-, K- and V-composition score of every head with every head of an earlier layer.

        q: ‖W_QKᵀ W_OV‖ / (‖W_QK‖ ‖W_OV‖)    k: ‖W_QK W_OV‖ / (…)    v: ‖W_OV′ W_OV‖ / (‖W_OV′‖ ‖W_OV‖)

    with W_QK = W_Qᵀ W_K and W_OV′ the later head's, W_OV = W_O W_V the earlier one's, ‖·‖ the root of the sum of
    squares (Elhage et al., "A Mathematical Framework for Transformer Circuits", 2021). Of maps turned to each other
    at random, whatever their own singular values, the expected square is 1/d_model: `chance` is its root.

    From the maps alone: no weight or bias of a norm is folded in, no turn by position, no norm of queries, keys or
    head outputs, no gate, no feature map. Grouped heads read the maps of their group; where the token itself is query,
    key or value, or heads' outputs are not mapped, that map is the identity. Raises UserError for fewer than two
    blocks, a mixer without such maps, and sub-layers that replace their input, which no earlier head's output passes.
    """
    if len(model.blocks) < 2:
        count = "one block" if len(model.blocks) else "no blocks"
        raise UserError(f"{model.described} has {count}: two heads compose across at least two.")
    if model.config.residual == "replacing":
        raise UserError("residual=replacing lets nothing past a sub-layer, so no two heads meet: use residual=added.")
    refuse_no_numbers(model)
    chance = model.config.d_model**-0.5
    with torch.no_grad():
        maps = [_maps(block.mixer, model.config.mixer) for block in model.blocks if isinstance(block, Block)]
        v = _table([(_squared(one.o_hmd.mT), one.v_hdm) for one in maps], maps)
        scored = [(one.q_hdm, one.k_hdm) for one in maps if one.q_hdm is not None and one.k_hdm is not None]
        if len(scored) < len(maps):
            return Composition(None, None, v, chance)
        q = _table([(_squared(k_hdm), q_hdm) for q_hdm, k_hdm in scored], maps)
        k = _table([(_squared(q_hdm), k_hdm) for q_hdm, k_hdm in scored], maps)
    return Composition(q, k, v, chance)


@dataclass(frozen=True)
class _Maps:
    """The maps of one layer, float64, a head each: one a query head of q and k, one an output head of v and o."""

    q_hdm: Tensor | None
    k_hdm: Tensor | None
    v_hdm: Tensor
    o_hmd: Tensor


def _maps(mixer: nn.Module, called: str) -> _Maps:
    if not isinstance(mixer, HeadMixer):
        raise UserError(f"{called} has no maps of queries, keys and values, so its heads compose in no such way.")
    sizes = mixer.heads
    width = sizes.output_heads * sizes.value_size
    q_hdm = k_hdm = None
    if sizes.key_size:
        q_hdm = _weight(mixer.query, sizes.query_heads, sizes.key_size)
        k_hdm = q_hdm if mixer.key is None else _weight(mixer.key, sizes.key_heads, sizes.key_size)
        if isinstance(mixer, ScoreMixer):
            k_hdm = mixer.key_for_each_query_head(k_hdm[None])[0]
        else:
            k_hdm = shared_by_groups(k_hdm[None], sizes.query_heads)[0]
    v_hdm = shared_by_groups(_weight(mixer.value, sizes.value_heads, sizes.value_size)[None], sizes.output_heads)[0]
    weight_me = torch.eye(width).to(v_hdm) if mixer.output is None else mixer.output.weight.double()
    o_hmd = weight_me.view(-1, sizes.output_heads, sizes.value_size).transpose(0, 1)
    return _Maps(q_hdm, k_hdm, v_hdm, o_hmd)


def _weight(linear: nn.Linear | None, heads: int, size: int) -> Tensor:
    """(head, size, model), of the identity where there is no map."""
    weight = torch.eye(heads * size, dtype=torch.float64) if linear is None else linear.weight.double()
    return weight.view(heads, size, -1)


def _squared(x_hdm: Tensor) -> Tensor:
    """x xᵀ, (head, d, d)"""
    return x_hdm @ x_hdm.mT


def _table(later: list[tuple[Tensor, Tensor]], earlier: list[_Maps]) -> Tensor:
    """Score every later product L R, given as LᵀL (head, d, d) and R (head, d, model), with every earlier O V.

    ‖L R O V‖² is the trace of LᵀL (R O) VVᵀ (R O)ᵀ, matrices as small as a head; none of width × width is made.
    """
    n_layers, n_later, n_earlier = len(later), len(later[0][0]), len(earlier[0].o_hmd)
    scores = torch.full((n_layers, n_later, n_layers, n_earlier), torch.nan, dtype=torch.float64)
    for layer, (gram_hdd, reads_hdm) in enumerate(later):
        own_h = (gram_hdd * _squared(reads_hdm)).sum((1, 2))
        for before in range(layer):
            o_emf, v_gram_eff = earlier[before].o_hmd, _squared(earlier[before].v_hdm)
            met_hedf = torch.einsum("hdm,emf->hedf", reads_hdm, o_emf)
            left = torch.einsum("hcd,hedf->hecf", gram_hdd, met_hedf)
            square_he = (left * torch.einsum("hedf,efg->hedg", met_hedf, v_gram_eff)).sum((2, 3))
            written_e = (_squared(o_emf.mT) * v_gram_eff).sum((1, 2))
            size_he = own_h[:, None] * written_e
            share_he = torch.where(size_he > 0, square_he / size_he, 0.0)  # what writes or reads nothing meets nothing
            scores[layer, :, before] = share_he.clamp(min=0).sqrt().cpu()
    return scores
