"""Which heads look back, and where to: at the token before, at the same token, or at what followed it."""

import math
from dataclasses import dataclass, field
from numbers import Integral
from typing import Literal, get_args

import torch
from torch import Tensor

from headstock.errors import UserError, near_name
from headstock.instruments.passes import look_at_weights, visible_to
from headstock.instruments.tables import cells, head_labels, layer_labels
from headstock.model.transformer import Transformer
from headstock.pictures.grid import heat
from headstock.pictures.picture import Picture

Kind = Literal["previous", "duplicate", "induction"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LONGEST = 50
"""Tokens of a random sequence where no length is given; it stands there twice."""
_KEYS = {
    "previous": "the token before",
    "duplicate": "the same token earlier on",
    "induction": "the token after the same token earlier on",
}


@dataclass(frozen=True)
class HeadScores:
    """Mean weight of every head on three kinds of keys, all of them before the query.

    Each is a mean over the queries that see such a key. Weights are as the mixer declares them: where they are signed
    a score may be negative, where they are unnormalised it is no share.
    """

    previous: Tensor
    """float64 (layer, head): on the position before."""
    duplicate: Tensor
    """float64 (layer, head): on all earlier occurrences of the query's token."""
    induction: Tensor
    """float64 (layer, head): on all tokens that stand right after one of these."""
    chance: dict[str, float]
    """What the uniform average over the visible keys scores, by kind."""
    queries: dict[str, int]
    """How many queries see such a key, by kind; 0 makes all its scores not a number."""

    def best(self, kind: Kind = "induction") -> list[tuple[int, int]]:
        """Give (layer, head) of all heads, the highest score of that kind first."""
        scores = self.of(kind)
        order = scores.flatten().argsort(descending=True, stable=True)
        return [divmod(int(place), scores.shape[1]) for place in order]

    def of(self, kind: str) -> Tensor:
        """Give the scores of a kind. Raises UserError where there is no such kind."""
        if kind not in KINDS:
            raise UserError(f"there is no {kind!r} score: {near_name(kind, KINDS)}")
        return getattr(self, kind)  # type: ignore[no-any-return]

    def draw(self, kind: Kind = "induction") -> Picture:
        """Draw the scores of a kind, layers down and heads across."""
        scores = self.of(kind)
        layer, head = self.best(kind)[0]
        most = f"most in layer {layer}, head {head}" if self.queries[kind] else "no query sees such a key"
        return heat(
            cells(scores),
            layer_labels(len(scores)),
            head_labels(scores.shape[1]),
            title=f"Weight on {_KEYS[kind]}: {most}",
            rows="layer",
            columns="head",
            unit="mean weight",
            missing="no query sees such a key",
            caption=f"A uniform average scores {self.chance[kind]:.3g}." if self.queries[kind] else "",
            name=f"{kind}-scores",
        )

    def _repr_html_(self) -> str:
        return "".join(self.draw(kind)._repr_html_() for kind in KINDS)


def head_scores(
    model: Transformer,
    ids: Tensor | None = None,
    *,
    seed: int = 0,
    length: int | None = None,
    batch: int | None = None,
    real: Tensor | None = None,
    documents: Tensor | None = None,
) -> HeadScores:
    """Give each head's previous-token, duplicate-token and induction score.

    Without ids on random sequences given twice: `length` different tokens drawn from the seed (50 where context and
    vocabulary allow as many), then the same again, `batch` rows of them. There nothing but the repeat can be known,
    so a head that scores above chance on induction attends to what followed last time: an induction head (Elhage et
    al., 2021; Olsson et al., "In-context Learning and Induction Heads", 2022). With ids (batch, time), on those, with
    real and documents as `Transformer.forward` takes them.

    Weights are looked at layer by layer, and none are kept. Raises UserError where the mixer has no weights, and for
    a length that does not fit the context or the vocabulary.
    """
    if ids is None:
        if real is not None or documents is not None:
            raise UserError("real and documents describe ids, but none were given: give ids too.")
        ids = twice(model, seed, length, 16 if batch is None else batch)
    elif length is not None or batch is not None or seed:
        raise UserError("length, batch and seed draw sequences, and ids were given: leave them out, or leave out ids.")
    device = model.embed.weight.device
    ids = ids.to(device)
    real, documents = (None if x is None else x.to(device) for x in (real, documents))
    visible_bqk = visible_to(model, ids, real, documents).expand(len(ids), -1, -1, -1)[:, 0]
    keys = {kind: key_bqk & visible_bqk for kind, key_bqk in kinds_of_key(ids, real, documents).items()}
    tally = _Tally(keys)
    look_at_weights(model, ids, tally.add, real=real, documents=documents)
    uniform_bqk = visible_bqk.double() / visible_bqk.sum(-1, keepdim=True).clamp(min=1)
    chance: dict[str, float] = {kind: float(tally.score(kind, uniform_bqk[:, None])) for kind in KINDS}
    counted: dict[str, int] = {kind: int(tally.counts_bq(kind).sum()) for kind in KINDS}
    previous, duplicate, induction = (torch.stack(tally.scores[kind]) for kind in KINDS)
    return HeadScores(previous, duplicate, induction, chance, counted)


def twice(model: Transformer, seed: int = 0, length: int | None = None, batch: int = 16) -> Tensor:
    """Give random sequences of different tokens, each standing twice in its row, int64 (batch, 2 · length).

    Raises UserError where the context is too short for that or the vocabulary too small.
    """
    config = model.config
    if not isinstance(length, Integral | None):
        raise UserError(f"length is {length!r}: give a whole number of tokens.")
    most = min(config.context // 2, config.vocab_size)
    if length is None:
        length = min(most, LONGEST)
    if most < 2:
        raise UserError(
            f"no two different tokens can stand twice in a context of {config.context} over a vocabulary of "
            f"{config.vocab_size}: give ids."
        )
    if not 2 <= length <= most:
        raise UserError(
            f"length={length} different tokens cannot stand twice in a context of {config.context} over a vocabulary "
            f"of {config.vocab_size}: choose a length from 2 to {most}, or give ids."
        )
    if batch < 1:
        raise UserError(f"batch={batch} rows cannot be measured: choose at least 1.")
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randperm(config.vocab_size, generator=generator)[:length] for _ in range(batch)]
    return torch.stack(rows).repeat(1, 2)


def kinds_of_key(
    ids_bq: Tensor, real_bq: Tensor | None = None, documents_bq: Tensor | None = None
) -> dict[str, Tensor]:
    """Say of each key before a query whether it is of a kind, bool (batch, query, key) by kind."""
    time = ids_bq.shape[1]
    before_qk = torch.ones(time, time, dtype=torch.bool, device=ids_bq.device).tril(-1)
    same_bqk = ids_bq[:, :, None] == ids_bq[:, None, :]
    if real_bq is not None:  # padding is no token, so nothing stands after it either
        same_bqk = same_bqk & real_bq[:, None]
    after_same_bqk = torch.zeros_like(same_bqk)
    after_same_bqk[:, :, 1:] = same_bqk[:, :, :-1]
    previous_bqk = (before_qk & ~before_qk.tril(-2)).expand_as(same_bqk)
    if documents_bq is not None:  # what follows the last token of a document is another one's first
        follows_bk = documents_bq[:, 1:] == documents_bq[:, :-1]
        after_same_bqk[:, :, 1:] &= follows_bk[:, None]
    return {"previous": previous_bqk, "duplicate": same_bqk & before_qk, "induction": after_same_bqk & before_qk}


@dataclass
class _Tally:
    """Scores of the layers seen so far."""

    keys: dict[str, Tensor]
    scores: dict[str, list[Tensor]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def add(self, weights_bhqk: Tensor, layer: int) -> None:
        for kind in KINDS:
            self.scores[kind].append(self.score(kind, weights_bhqk).cpu())

    def score(self, kind: str, weights_bhqk: Tensor) -> Tensor:
        """float64 (head,), or (1,) for weights without heads."""
        counted_bq = self.counts_bq(kind)
        if not bool(counted_bq.any()):
            return torch.full((weights_bhqk.shape[1],), math.nan, dtype=torch.float64)
        on_keys_bhq = torch.where(self.keys[kind][:, None], weights_bhqk.double(), 0.0).sum(-1)
        return (on_keys_bhq * counted_bq[:, None]).sum((0, 2)) / counted_bq.sum()

    def counts_bq(self, kind: str) -> Tensor:
        """Say which queries see a key of the kind."""
        return self.keys[kind].any(-1)
