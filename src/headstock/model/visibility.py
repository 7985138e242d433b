"""Who may see whom: causality, padding and packed documents, decided once a forward pass and shared by every block.

Knows nothing of scores or values. A mask stays boolean, True = may attend, until the last moment.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import pad

from headstock.model.shapes import VisibleTensor


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
    """bool (batch, key): False where a key is padding; a padding query sees nothing either."""
    document_bk: Tensor | None = None
    """int (batch, key): keys and queries of different documents do not see each other."""
    slopes_h: Tensor | None = None
    """ALiBi's slope a head: a score loses slope × distance."""
    leading: int = 0
    """Extra keys in front, without a place in time, that every query sees at no distance."""

    def with_leading_key(self) -> "Visible":
        """Give the same with one more key in front that every query sees."""
        return replace(self, n_keys=self.n_keys + 1, leading=self.leading + 1)

    @property
    def is_plain_causal(self) -> bool:
        """Whether the lower triangle of a square is all there is to say."""
        return self.causal and self._masks_nothing and self.n_queries == self.n_keys and not self.leading

    @property
    def is_everything(self) -> bool:
        """Whether every query sees every key, as one token decoded after a cache does."""
        return self._masks_nothing and (not self.causal or self.n_queries == 1)

    @property
    def _masks_nothing(self) -> bool:
        return self.real_bk is None and self.document_bk is None

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
        if self.real_bk is not None:
            visible = visible & self.real_bk[:, None, :] & self.real_bk[:, self._past :, None]
        if self.document_bk is not None:
            visible = visible & (self.document_bk[:, None, :] == self.document_bk[:, self._past :, None])
        return pad(visible, (self.leading, 0), value=True)[:, None]

    @cached_property
    def key_positions(self) -> Tensor:
        """int (key) or (batch, key): places counted from 0 within each document, padding left out."""
        if self._masks_nothing:
            return torch.arange(self.n_keys - self.leading, device=self.device)
        if self.document_bk is None:
            assert self.real_bk is not None
            return (self.real_bk.cumsum(-1) - 1).clamp(min=0)
        same = (self.document_bk[:, :, None] == self.document_bk[:, None, :]).tril()
        if self.real_bk is not None:
            same = same & self.real_bk[:, None, :]
        return (same.sum(-1) - 1).clamp(min=0)

    @property
    def query_positions(self) -> Tensor:
        """int (query) or (batch, query)."""
        return self.key_positions[..., self._past :]

    @cached_property
    def penalty_bhqk(self) -> Tensor | None:
        """float (batch or 1, head, query, key): what ALiBi adds to a score, −slope × distance; None without ALiBi."""
        if self.slopes_h is None:
            return None
        distance = (self.query_positions[..., :, None] - self.key_positions[..., None, :]).abs()
        distance = distance.view(-1, 1, *distance.shape[-2:]).to(self.slopes_h.dtype)
        return pad(-self.slopes_h[:, None, None] * distance, (self.leading, 0))
