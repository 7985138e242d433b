"""How sharp attention is: the spread of scores, entropy, saturated rows, sinks, and weights below zero."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from headstock.errors import UserError, near_name
from headstock.instruments.passes import PATTERN, Look, lists, look_at_weights, visible_to
from headstock.instruments.tables import cells, head_labels, layer_labels
from headstock.model.attention import wide
from headstock.model.transformer import Transformer
from headstock.pictures.grid import heat
from headstock.pictures.picture import Picture

SATURATED = 0.99
"""A row is saturated where one key has more than this share of its weight."""
FROZEN = 0.01
"""A row is frozen where the trace of its Jacobian is less than this."""
SCORES = "attn.hook_attn_scores"
FAR_BELOW = 0.01
"""A weight is far below uniform below this part of a uniform average's."""


@dataclass(frozen=True)
class MapStatistics:
    """Statistics of one map a head, each (layer, head), float64, over the rows counted.

    Counted are queries that see two keys or more: with one to choose from a row is sharp whatever the scores are.
    Shares are |w| / Σ|w|; of weights that are no probabilities, entropy, effective tokens and saturation are those of
    the shares, over rows that weigh anything.
    """

    score_std: Tensor
    """Standard deviation of all visible scores together, as `hook_attn_scores` shows them; not a number where a map
    has no scores of its own, as the difference of two maps, or what is read from a state."""
    row_score_std: Tensor
    """The same within a row, mean of the rows: softmax sees no more, for what a row's scores have in common cancels."""
    entropy: Tensor
    """Of the shares, in nats."""
    effective_tokens: Tensor
    """exp of a row's entropy, mean of the rows."""
    saturated: Tensor
    """Part of the rows, 0 to 1, in which one key has more than 0.99 of the weight."""
    trace: Tensor
    """Σ w(1 − w) of a row, mean of the rows: the trace of the Jacobian of softmax, and of what is softmax with more in
    the denominator, or a sigmoid. Of another map of scores, such as entmax15, it is a measure of spread and no
    derivative. Not a number where there are no scores to derive by."""
    frozen: Tensor
    """Part of the rows whose trace is less than 0.01: hardly any gradient reaches the scores."""
    sink: Tensor
    """Weight on the first key that a query sees, mean of the rows."""
    positive: Tensor
    """Sum of the weights above zero in a row, mean of the rows."""
    negative: Tensor
    """Sum of |w| of the weights below zero in a row, mean of the rows."""
    far_below_uniform: Tensor
    """Part of the visible keys whose |w| is less than a hundredth of 1/n, n being the keys that the query sees."""
    empty: Tensor
    """Part of the rows that weigh nothing at all."""

    @property
    def row_sum(self) -> Tensor:
        """Sum of a row's weights, mean of the rows."""
        return self.positive - self.negative


@dataclass(frozen=True)
class ScoreStatistics(MapStatistics):
    """Statistics of each head's weights, with those of both maps of a differential pair beside them."""

    first: MapStatistics | None
    """Of the first map of each differential pair, from whose scores it comes; None for every other mixer."""
    second: MapStatistics | None
    """Of the map that is subtracted."""
    rows: int
    """Queries that were counted."""
    visible_keys: float
    """How many keys a counted query sees on average: what effective tokens cannot exceed."""
    uniform_sink: float
    """What a uniform average would put on the first key."""

    def __repr__(self) -> str:
        layers, heads = self.entropy.shape
        return f"ScoreStatistics({layers} layers × {heads} heads, {self.rows} rows)"

    def draw(self, what: str = "effective_tokens") -> Picture:
        """Draw one of the statistics as a grid, layers down and heads across.

        Raises UserError for an unknown one, and for one that is no number anywhere, as all where no query sees two
        keys.
        """
        if what not in _UNITS:
            raise UserError(f"there is no statistic {what!r}: {near_name(what, _UNITS)}")
        values: Tensor = getattr(self, what)
        if not self.rows:
            raise UserError("no query sees two keys or more, so there is nothing to draw: give a longer text.")
        if not bool(values.isfinite().any()):
            instead = "draw another statistic" if self.first is None else "its two maps have theirs in .first, .second"
            raise UserError(f"what these heads average by has no {what}: {instead}.")
        low, high = (float(end) for end in (values.nan_to_num(math.inf).min(), values.nan_to_num(-math.inf).max()))
        beside = {
            "effective_tokens": f" of {self.visible_keys:.3g} that a query sees",
            "sink": f", {self.uniform_sink:.2g} in a uniform average",
        }.get(what, "")
        return heat(
            cells(values),
            layer_labels(len(values)),
            head_labels(values.shape[1]),
            title=f"{_UNITS[what][0].upper()}{_UNITS[what][1:]}: {low:.3g} to {high:.3g}{beside}",
            rows="layer",
            columns="head",
            unit=_UNITS[what],
            signed=what == "row_sum" and low < 0,
            caption=f"Over {self.rows} queries that see two keys or more.",
            name=what.replace("_", "-"),
        )

    def _repr_html_(self) -> str | None:
        """Give the picture; None, with which a notebook shows the values as text, where there is nothing to draw."""
        return self.draw()._repr_html_() if bool(self.effective_tokens.isfinite().any()) else None


_UNITS = {
    "score_std": "standard deviation of scores",
    "row_score_std": "standard deviation of a row's scores",
    "entropy": "entropy, nats",
    "effective_tokens": "effective tokens",
    "saturated": "part of rows with one key above 0.99",
    "trace": "Σ w(1 − w)",
    "frozen": "part of rows with Σ w(1 − w) below 0.01",
    "sink": "weight on the first key",
    "positive": "sum of weights above zero",
    "negative": "sum of weights below zero",
    "far_below_uniform": "part of weights below a hundredth of uniform",
    "empty": "part of rows without weight",
    "row_sum": "sum of a row's weights",
}


def score_statistics(
    model: Transformer, ids: Tensor, *, real: Tensor | None = None, documents: Tensor | None = None
) -> ScoreStatistics:
    """Give how sharp each head's weights are: spread of scores, entropy, saturation, sinks, signs.

    ids: (batch, time). Queries that see one key or none are left out: see MapStatistics. real and documents: as
    `Transformer.forward` takes them. Entropy as effective tokens, saturation, and the Jacobian's trace say whether
    softmax still learns (Vaswani et al., 2017, on dividing by √d); weight on the first token: Xiao et al., "Efficient
    Streaming Language Models with Attention Sinks" (2023). Raises UserError where the mixer has no weights, and for
    ids without a token.
    """
    rows = _Rows(visible_to(model, ids, real, documents), len(ids))
    found: dict[str, list[dict[str, Tensor]]] = {which: [] for which in ("", "_1", "_2")}
    of_scores: dict[str, dict[str, Tensor]] = {}  # of the layer being read; its weights come after them

    def scores_look(which: str) -> Look:
        def at_scores(scores_bhqk: Tensor, _: int) -> None:
            of_scores[which] = rows.of_scores(scores_bhqk)

        return at_scores

    def weights_look(which: str) -> Look:
        def at_weights(w_bhqk: Tensor, _: int) -> None:
            of_weights = rows.of_weights(w_bhqk)
            found[which].append({**of_weights, **of_scores.pop(which, _no_scores(of_weights))})

        return at_weights

    at = {SCORES + which: scores_look(which) for which in found if lists(model, SCORES + which)}
    at |= {PATTERN + which: weights_look(which) for which in found if which and lists(model, PATTERN + which)}
    look_at_weights(model, ids, weights_look(""), at, real=real, documents=documents)
    first, second = (MapStatistics(**_stacked(found[which])) if found[which] else None for which in ("_1", "_2"))
    seen = rows.seen_b1q[rows.counted_b1q].double()
    return ScoreStatistics(
        **_stacked(found[""]),
        first=first,
        second=second,
        rows=len(seen),
        visible_keys=float(seen.mean()),
        uniform_sink=float((1 / seen).mean()),
    )


def _stacked(layers: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([layer[name] for layer in layers]) for name in layers[0]}


def _no_scores(of_weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Say that there is nothing to derive by."""
    none = torch.full_like(of_weights["entropy"], math.nan)
    return {"score_std": none, "row_score_std": none, "trace": none, "frozen": none}


class _Rows:
    """The rows that count, and means over them."""

    def __init__(self, visible_b1qk: Tensor, batch: int) -> None:
        self.visible = visible_b1qk
        self.seen_b1q = visible_b1qk.sum(-1).expand(batch, -1, -1)
        self.counted_b1q = self.seen_b1q >= 2
        self.first_b1q1 = visible_b1qk.int().argmax(-1, keepdim=True)

    def mean(self, x_bhq: Tensor, of_bhq: Tensor | None = None) -> Tensor:
        """Give the mean over the rows counted, or those of them that are named, (head,)."""
        counted = (self.counted_b1q if of_bhq is None else self.counted_b1q & of_bhq).expand_as(x_bhq)
        return (x_bhq.double().masked_fill(~counted, 0.0).sum((0, 2)) / counted.sum((0, 2))).cpu()

    def mean_of_keys(self, sums_bhq: Tensor) -> Tensor:
        """Give the mean over the visible keys of all rows counted, of sums over those of a row, (head,)."""
        counted = sums_bhq.double().masked_fill(~self.counted_b1q, 0.0)
        return (counted.sum((0, 2)) / self.seen_b1q[self.counted_b1q].sum()).cpu()

    def of_scores(self, scores_bhqk: Tensor) -> dict[str, Tensor]:
        """Give the statistics of scores, which stand at −inf where hidden: rows first, for they need no other pass."""
        seen = self.seen_b1q.clamp(min=1)
        row_mean = scores_bhqk.masked_fill(~self.visible, 0.0).sum(-1) / seen
        apart = (scores_bhqk - row_mean[..., None]).masked_fill(~self.visible, 0.0)
        squares = apart.square().sum(-1).double()
        overall = self.mean_of_keys(row_mean * seen).to(squares)[:, None]
        return {
            "score_std": self.mean_of_keys(squares + seen * (row_mean - overall).square()).sqrt(),
            "row_score_std": self.mean((squares / seen).sqrt()),
        }

    def of_weights(self, w_bhqk: Tensor) -> dict[str, Tensor]:
        """Give all else."""
        w = wide(w_bhqk)
        size = w.abs()
        total = size.sum(-1)
        weighs = total > 0
        some = total.where(weighs, 1.0)
        # Σ p log p of the shares p = |w| / total, without dividing every weight
        entropy = some.log() - torch.xlogy(size, size).sum(-1) / some
        trace = (w - w.square()).sum(-1)
        far_below = size < (FAR_BELOW / self.seen_b1q.clamp(min=1)).to(size)[..., None]
        return {
            "entropy": self.mean(entropy, weighs),
            "effective_tokens": self.mean(entropy.exp(), weighs),
            "saturated": self.mean(size.amax(-1) > SATURATED * some, weighs),
            "trace": self.mean(trace),
            "frozen": self.mean(trace < FROZEN),
            "sink": self.mean(w.gather(-1, self.first_b1q1.expand(*w.shape[:3], 1))[..., 0]),
            "positive": self.mean(w.clamp(min=0).sum(-1)),
            "negative": self.mean(-w.clamp(max=0).sum(-1)),
            "far_below_uniform": self.mean_of_keys((far_below & self.visible).sum(-1)),
            "empty": self.mean(~weighs),
        }
