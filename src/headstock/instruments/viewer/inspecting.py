"""Reading one text with a model, and keeping what the page shows of it: layer by layer, so that no more is ever held.

Knows nothing of tokenizers: what a token is called, it is told.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.instruments.passes import PATTERN, Look, lists, look, look_at_weights, undisturbed, weights_are
from headstock.instruments.patterns import Patterns
from headstock.instruments.viewer.encoding import EncodedMap, encoded, width_for
from headstock.instruments.viewer.heads import HeadSummary, summaries
from headstock.instruments.viewer.predictions import Prediction, predictions
from headstock.instruments.viewer.view import MOST_IN_A_NOTEBOOK, Layer, View
from headstock.model.transformer import Transformer

MOST_WITH_PAIRS = 6_000_000
"""Weights of a page, up to which both maps of a difference are kept beside it."""
MOST_TEXTS = 4
"""Texts of a batch that are drawn one under the other."""
MAPS_OF_A_PAIR = ("attn.hook_pattern_1", "attn.hook_pattern_2")
SHARE = "attn.hook_lambda"


def inspected(
    model: Transformer,
    ids: Tensor | Sequence[int],
    *,
    label: Callable[[int], str] = str,
    top: int = 5,
    maps: bool = True,
    title: str = "",
) -> View:
    """Read one text and give all that the page shows of it; the model is left as it was.

    ids: one text's tokens, (time,) or (1, time). label: what a token is called, such as `tokenizer.label`; its number
    where not given. top: how many of the likeliest next tokens are kept. maps: whether maps are kept, or only what
    each head's numbers are. A map is rounded when its layer has been read, so that one layer's are held at a time.

    Raises UserError for more than one text, and for an empty one.
    """
    try:
        ids_q = ids if isinstance(ids, Tensor) else torch.tensor(ids)
    except (TypeError, ValueError):
        raise UserError("ids are no numbers: give a text's tokens, such as tokenizer.encode(text).") from None
    if ids_q.numel() and ids_q.dtype not in (torch.int64, torch.int32):
        raise UserError(f"ids are {str(ids_q.dtype).removeprefix('torch.')}: give whole numbers.")
    ids_q = ids_q.long()
    ids_1q = (ids_q if ids_q.ndim == 2 else ids_q[None]).to(model.embed.weight.device)
    if ids_1q.ndim != 2 or len(ids_1q) != 1 or not ids_1q.shape[1]:
        raise UserError(f"ids have the shape {list(ids_q.shape)}: give one text of one token or more.")
    reader = _Reader.of(model, ids_1q, maps)
    notes = list(reader.notes)
    logits_qv = _read(model, ids_1q, reader)
    tokens = ids_1q[0].tolist()
    found: tuple[Prediction, ...] = ()
    if model.config.causal:
        found = predictions(logits_qv, tokens, label, top)
    else:
        notes.append("No predictions: causal=false sees the very tokens that it would be asked for.")
    return View(
        title=title or model.described,
        labels=tuple(label(token) for token in tokens),
        layers=tuple(reader.layers),
        heads=tuple(reader.heads),
        predictions=found,
        weights_are=weights_are(model),
        width=reader.width,
        notes=tuple(notes),
    )


def _read(model: Transformer, ids_1q: Tensor, reader: "_Reader") -> Tensor:
    """Let the reader see every layer, and give the logits (time, vocabulary), of the same pass where that can be."""
    with undisturbed(model):
        if reader.has_maps and lists(model, PATTERN):
            return model.logits(look(model, ids_1q, {**reader.beside(), PATTERN: reader.read}))[0]
        if reader.has_maps:
            look_at_weights(model, ids_1q, reader.read)
        logits_1qv: Tensor = model(ids_1q)
        return logits_1qv[0]


def views_of(patterns: Patterns) -> list[View]:
    """Give what the page shows of maps that are there already, without predictions: a view for each of the first rows.

    There are as many as a notebook holds, four at most and one at least; the last one says that there are more.
    """
    made: list[View] = []
    a_row = sum(weights_bhqk[0].numel() for weights_bhqk in patterns.weights)
    shown = min(len(patterns.labels), MOST_TEXTS, max(1, MOST_IN_A_NOTEBOOK // max(1, a_row)))
    for row in range(shown):
        maps = [weights_bhqk[row] for weights_bhqk in patterns.weights]
        width = width_for(sum(map(torch.Tensor.numel, maps)) // 2)
        of = f" on text {row + 1} of {len(patterns.labels)}" if len(patterns.labels) > 1 else ""
        made.append(
            View(
                title=f"Attention{of}",
                labels=patterns.labels[row],
                layers=tuple(Layer(tuple(encoded(weights_hqk, width))) for weights_hqk in maps),
                heads=tuple(one for layer, weights_hqk in enumerate(maps) for one in summaries(weights_hqk, layer)),
                predictions=(),
                weights_are=patterns.weights_are,
                width=width,
                notes=_left_out(shown, len(patterns.labels)) if row == shown - 1 else (),
            )
        )
    return made


@dataclass
class _Reader:
    """Takes in one layer after the other."""

    keeps: bool
    width: int
    has_maps: bool
    pairs: bool
    notes: list[str]
    layers: list[Layer] = field(default_factory=list)
    heads: list[HeadSummary] = field(default_factory=list)
    _waiting: dict[str, list[EncodedMap]] = field(default_factory=dict)
    _shares: Tensor | None = None

    @classmethod
    def of(cls, model: Transformer, ids_1q: Tensor, keeps: bool) -> "_Reader":
        length, n_layers, notes = ids_1q.shape[1], len(model.blocks), []
        has_maps = n_layers > 0 and weights_are(model) != "none"
        if not n_layers:
            notes.append("No maps: the model has no blocks, so no token sees another.")
        elif not has_maps:
            notes.append(
                f"No maps: {model.config.mixer} keeps what it has read in a state, and what it gives is no average of "
                f"earlier tokens, so there are no weights to draw."
            )
        each = length * (length + 1) // 2 if model.config.causal else length * length
        n_weights = each * n_layers * max(1, model.config.n_heads)
        pairs = keeps and has_maps and all(lists(model, name) for name in (*MAPS_OF_A_PAIR, SHARE))
        if pairs and 3 * n_weights > MOST_WITH_PAIRS:
            pairs = False
            notes.append("Of each difference the two maps are left out: they would make the page three times as large.")
        return cls(keeps, width_for(n_weights * (3 if pairs else 1)), has_maps, pairs, notes)

    def beside(self) -> Mapping[str, Look]:
        """Give what else is read of a block, before its weights are."""
        if not self.pairs:
            return {}
        found: dict[str, Look] = {name: self._map_of_a_pair(name) for name in MAPS_OF_A_PAIR}
        return {**found, SHARE: self._share}

    def read(self, weights_1hqk: Tensor, layer: int) -> None:
        """Take in the weights of a layer."""
        weights_hqk = weights_1hqk[0]
        self.heads += summaries(weights_hqk, layer)
        if not self.keeps:
            return
        pairs = tuple(zip(*(self._waiting.pop(name) for name in MAPS_OF_A_PAIR), strict=True)) if self.pairs else ()
        self.layers.append(Layer(tuple(encoded(weights_hqk, self.width)), pairs, self._shares_of(len(weights_hqk))))

    def _map_of_a_pair(self, name: str) -> Look:
        def take(maps_1hqk: Tensor, layer: int) -> None:
            self._waiting[name] = encoded(maps_1hqk[0], self.width)

        return take

    def _share(self, share: Tensor, layer: int) -> None:
        self._shares = share.detach().float().cpu()

    def _shares_of(self, n_heads: int) -> tuple[tuple[float, ...], ...]:
        """Give λ by head: of version 1 a scalar or (head,), of version 2 (1, query, head)."""
        if self._shares is None:
            return ()
        share, self._shares = self._shares, None
        if share.ndim < 2:
            return tuple((one,) for one in share.expand(n_heads).tolist())
        return tuple(tuple(row) for row in share[0].T.tolist())


def _left_out(shown: int, of: int) -> tuple[str, ...]:
    which = "the first text alone is" if shown == 1 else f"the first {shown} texts are"
    return (f"Of {of} texts {which} drawn.",) if shown < of else ()
