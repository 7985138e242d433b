"""Where each head looks: the exact weights of every average that a model takes of a text."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.passes import kept, look_at_weights, weights_are
from headstock.instruments.tables import position_labels
from headstock.model.transformer import Transformer
from headstock.pictures.grid import heat
from headstock.pictures.picture import Picture

NOTHING = ""
"""What a token predicts that predicts nothing."""
_FACTS = {
    "normalised": "Rows sum to 1.",
    "signed": "Weights may be negative.",
    "unnormalised": "Rows need not sum to 1.",
}


@dataclass(frozen=True)
class Patterns:
    """Every weight of every head, with the tokens that it belongs to."""

    weights: tuple[Tensor, ...]
    """One (batch, head, query, key) a layer; heads are those of the mixer's output, so a differential pair is one.
    Hidden keys and queries of padding weigh 0."""
    labels: tuple[tuple[str, ...], ...]
    """What each token is called, a row of the batch each."""
    weights_are: str
    """normalised: rows sum to 1. signed: some are negative. unnormalised: rows sum to anything."""
    predicts: tuple[tuple[str, ...], ...] = ()
    """The label that stands next after each query, which is what its position is to predict; "" where nothing does:
    at the end of a text, at padding, and in a model that reads both ways, whose positions predict no next token."""

    def __repr__(self) -> str:
        shapes = f"{len(self.weights)} layers of {list(self.weights[0].shape)}"
        return f"Patterns({shapes} [batch, head, query, key], {self.weights_are})"

    def _repr_html_(self) -> str:
        """Give every map, to be looked at head by head, as one element for a notebook; of a batch its first texts."""
        from headstock.instruments.viewer.inspecting import views_of
        from headstock.instruments.viewer.page import as_fragment

        return as_fragment(views_of(self))

    def draw(self, layer: int = -1, head: int | None = None, *, row: int = 0) -> Picture:
        """Draw one head's weights on one row of the batch, queries down and keys across; the heads' mean where none.

        Negative layers are counted from the end. Raises UserError for a layer, head or row that there is not, and
        for more than 128 tokens, which no picture of fixed size can show.
        """
        layer = place(layer, len(self.weights), "layer")
        row = place(row, len(self.labels), "row")
        maps_hqk = self.weights[layer][row]
        if head is None:
            map_qk, whose = maps_hqk.mean(0), f"mean of {len(maps_hqk)} heads"
        else:
            head = place(head, len(maps_hqk), "head")
            map_qk, whose = maps_hqk[head], f"head {head}"
        return heat(
            map_qk.tolist(),
            position_labels(len(map_qk), self.labels[row]),
            position_labels(len(map_qk), self.labels[row]),
            title=f"Layer {layer}, {whose}: {_finding(map_qk)}",
            rows="query",
            columns="key",
            unit="weight",
            signed=self.weights_are == "signed",
            root=True,
            caption=f"{_FACTS[self.weights_are]} A query predicts the token after it.",
            name=f"pattern-{layer}-{'mean' if head is None else head}",
        )


def attention_patterns(
    model: Transformer,
    ids: Tensor,
    *,
    labels: Sequence[str] | Sequence[Sequence[str]] | None = None,
    real: Tensor | None = None,
    documents: Tensor | None = None,
) -> Patterns:
    """Give where each head looks: every weight of every layer, with what the tokens are called.

    ids: (batch, time). labels: what the tokens are called, one sequence a row, or a single one for a single row; the
    ids where not given. real and documents: as `Transformer.forward` takes them. All maps are kept: 4 · layers · batch
    · heads · time² bytes in float32. Raises UserError where the mixer has no weights, and for labels that do not fit.
    """
    weights: list[Tensor] = []
    look_at_weights(model, ids, lambda w_bhqk, _: weights.append(kept(w_bhqk)), real=real, documents=documents)
    named = _labels(labels, ids)
    nexts = places_after(ids, real, documents) if model.config.causal else torch.full_like(ids, -1)
    predicts = tuple(
        tuple(row[place] if place >= 0 else NOTHING for place in places)
        for row, places in zip(named, nexts.tolist(), strict=True)
    )
    return Patterns(tuple(weights), named, weights_are(model), predicts)


def place(asked: int, count: int, what: str) -> int:
    """Give a place from 0, a negative one counted from the end. Raises UserError where there is none."""
    if not -count <= asked < count:
        raise UserError(f"there is no {what} {asked}: choose from 0 to {count - 1}.")
    return asked % count


def _labels(given: Sequence[str] | Sequence[Sequence[str]] | None, ids: Tensor) -> tuple[tuple[str, ...], ...]:
    if given is None:
        return tuple(tuple(map(str, row)) for row in ids.tolist())
    if isinstance(given, str):
        raise UserError("labels are one string: give a label for each token, such as list(text) for characters.")
    rows = [given] if given and all(isinstance(label, str) for label in given) else given
    found = tuple(tuple(map(str, row)) for row in rows)
    lengths = sorted({len(row) for row in found})
    if len(found) != len(ids) or lengths != [ids.shape[1]]:
        raise UserError(
            f"labels are {len(found)} rows of {' or '.join(map(str, lengths)) or 'no'} labels, but ids are "
            f"{len(ids)} rows of {ids.shape[1]}: give each token one."
        )
    return found


def places_after(ids: Tensor, real: Tensor | None, documents: Tensor | None) -> Tensor:
    """Give the place of the next real token of the same document, −1 where there is none."""
    nexts = torch.full_like(ids, -1, dtype=torch.int64, device="cpu")
    for row in range(len(ids)):
        last: dict[int, int] = {}
        for position in range(ids.shape[1] - 1, -1, -1):
            if real is not None and not real[row, position]:
                continue
            document = 0 if documents is None else int(documents[row, position])
            nexts[row, position] = last.get(document, -1)
            last[document] = position
    return nexts


def _finding(map_qk: Tensor) -> str:
    """Say over how many tokens a query's weights are spread, exp of the entropy of |w|, on average."""
    share = map_qk.abs()[map_qk.abs().sum(-1) > 0]
    if not len(share):
        return "no query weighs anything"
    share = share / share.sum(-1, keepdim=True)
    spread = torch.exp(-torch.xlogy(share, share).sum(-1)).mean()
    return f"a query's weights spread over {spread:.1f} tokens"
