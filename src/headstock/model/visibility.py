"""Who may see whom: causality, windows, padding and packed documents, decided once a forward pass for every block.

Knows nothing of scores or values. A mask stays boolean, True = may attend, until the last moment.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import pad

from headstock.model.shapes import VisibleTensor


def hides_most(window: int | None, n_keys: int) -> bool:
    """Say whether a window hides so many keys that a kernel is better called on a block of queries at a time."""
    return window is not None and 4 * window <= n_keys


@dataclass(frozen=True)
class Visible:
    """What each query may attend to, and the distance at which it sees it.

    The last query stands at the last key (bottom-right), so a piece read after a cache needs nothing said.
    """

    n_queries: int
    n_keys: int
    device: torch.device
    causal: bool = True
    real_bk: Tensor | None = None
    """bool (batch, before + key): False where a key is padding; a padding query sees nothing either."""
    document_bk: Tensor | None = None
    """int (batch, before + key): keys and queries of different documents do not see each other."""
    slopes_h: Tensor | None = None
    """ALiBi's slope a head: a score loses slope × distance."""
    leading: int = 0
    """Extra keys in front, without a place in time, that every query sees at no distance."""
    window: int | None = None
    """Keys that a query sees at most, its own included."""
    before: int = 0
    """Tokens that stand before the first key and that no query sees any more."""
    elsewhere: bool = False
    """The keys are those of another sequence: queries and keys have no common places."""
    places_bk: Tensor | None = None
    """int (before + key) or (batch, before + key): the places of keys, where they are known already."""

    @classmethod
    def across(cls, n_queries: int, n_keys: int, device: torch.device, real_bk: Tensor | None = None) -> "Visible":
        """Let every query see every real key of another sequence, as in cross attention."""
        return cls(n_queries, n_keys, device, causal=False, real_bk=real_bk, elsewhere=True)

    def with_leading_key(self) -> "Visible":
        """Give the same with one more key in front that every query sees."""
        return replace(self, n_keys=self.n_keys + 1, leading=self.leading + 1)

    def block(self, start: int, stop: int) -> tuple["Visible", slice]:
        """Give what queries start to stop see, and which keys that concerns: none that all of them are blind to.

        For causal attention without leading keys.
        """
        assert self.causal
        assert not self.leading
        last = self._past + stop
        first = max(0, self._past + start - self.window + 1) if self.window and self.masks_nothing else 0
        until = self.before + last
        part = replace(
            self,
            n_queries=stop - start,
            n_keys=last - first,
            before=self.before + first,
            real_bk=None if self.real_bk is None else self.real_bk[:, :until],
            document_bk=None if self.document_bk is None else self.document_bk[:, :until],
            places_bk=self._all_places[..., :until],
        )
        return part, slice(first, last)

    @property
    def masks_nothing(self) -> bool:
        """Whether there is neither padding nor more than one document."""
        return self.real_bk is None and self.document_bk is None

    @property
    def is_plain_causal(self) -> bool:
        """Whether the lower triangle of a square is all there is to say."""
        return not self.leading and self.is_causal_after_leading

    @property
    def is_causal_after_leading(self) -> bool:
        """Whether it would be, were there a query that stands at each leading key."""
        square = self.n_queries == self.n_keys - self.leading
        return self.causal and self.masks_nothing and self._window_hides_nothing and square

    @property
    def is_everything(self) -> bool:
        """Whether every query sees every key, as one token decoded after a cache does."""
        return self.masks_nothing and self._window_hides_nothing and (not self.causal or self.n_queries == 1)

    @property
    def is_band(self) -> bool:
        """Whether a window hides most keys from a query, and those it leaves stand side by side."""
        return self.real_bk is None and hides_most(self.window, self.n_keys - self.leading)

    @property
    def _window_hides_nothing(self) -> bool:
        return self.window is None or self.n_keys - self.leading <= self.window

    @property
    def _past(self) -> int:
        """Keys with a place in time that stand before the first query."""
        return self.n_keys - self.leading - self.n_queries

    @cached_property
    def dense(self) -> VisibleTensor:
        """bool (batch or 1, 1, query, key), True = may attend."""
        visible = torch.ones(1, self.n_queries, self.n_keys - self.leading, dtype=torch.bool, device=self.device)
        if self.causal:
            visible = visible.tril(self._past)
        if self.window is not None and self.masks_nothing:
            visible = visible.triu(self._past - self.window + 1)
        elif self.window is not None:
            distance = self.query_positions[..., :, None] - self.key_positions[..., None, :]
            visible = visible & (distance < self.window)
        if self.real_bk is not None:
            real_bk = self.real_bk[:, self.before :]
            visible = visible & real_bk[:, None, :]
            if not self.elsewhere:
                visible = visible & real_bk[:, self._past :, None]
        if self.document_bk is not None:
            document_bk = self.document_bk[:, self.before :]
            visible = visible & (document_bk[:, None, :] == document_bk[:, self._past :, None])
        return pad(visible, (self.leading, 0), value=True)[:, None]

    @cached_property
    def _all_places(self) -> Tensor:
        if self.places_bk is not None:
            return self.places_bk
        if self.masks_nothing:
            return torch.arange(self.before + self.n_keys - self.leading, device=self.device)
        real_bk, document_bk = self.real_bk, self.document_bk
        if document_bk is None:
            assert real_bk is not None
            return (real_bk.cumsum(-1) - 1).clamp(min=0)
        order = document_bk.argsort(dim=1, stable=True)  # document by document, each in its own order
        document_bk = document_bk.gather(1, order)
        counted = torch.ones_like(order) if real_bk is None else real_bk.gather(1, order).long()
        so_far = counted.cumsum(1)
        begins = pad(document_bk[:, 1:] != document_bk[:, :-1], (1, 0), value=True)
        before_document = ((so_far - counted) * begins).cummax(1).values
        places = (so_far - before_document - 1).clamp(min=0)
        return torch.empty_like(places).scatter(1, order, places)

    @property
    def key_positions(self) -> Tensor:
        """int (key) or (batch, key): places counted from 0 within each document, padding left out."""
        return self._all_places[..., self.before :]

    @property
    def query_positions(self) -> Tensor:
        """int (query) or (batch, query)."""
        assert not self.elsewhere
        return self.key_positions[..., self._past :]

    @cached_property
    def penalty_bhqk(self) -> Tensor | None:
        """float (batch or 1, head, query, key): what ALiBi adds to a score, −slope × distance; None without ALiBi."""
        if self.slopes_h is None:
            return None
        distance = (self.query_positions[..., :, None] - self.key_positions[..., None, :]).abs()
        distance = (distance if distance.ndim == 3 else distance[None]).to(self.slopes_h.dtype)
        return pad(-self.slopes_h[:, None, None] * distance[:, None], (self.leading, 0))
