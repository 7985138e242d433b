"""What every block of one forward pass shares: decided once by the model, read by each mixer."""

from dataclasses import dataclass

from torch import Tensor

from headstock.model.cache import BlockCache
from headstock.model.dropout import DropoutDraws
from headstock.model.hooks import UNHOOKED, PassHooks
from headstock.model.positions import Rotation
from headstock.model.visibility import Visible


@dataclass(frozen=True)
class Frame:
    """One forward pass as a mixer sees it."""

    visible: Visible
    rotation: Rotation | None = None
    """Turns the queries and keys of the tokens being read; None without RoPE."""
    caches: list[BlockCache] | None = None
    """One a block, or None where nothing is remembered."""
    draws: DropoutDraws | None = None
    """What dropout draws from; torch's generator where not given."""
    plain: bool = False
    """Take the plain evaluation even where a mixer has a fast one."""
    memory_bkm: Tensor | None = None
    """The sequence whose keys and values are read, (batch, key, model); None where that is the queries' own."""
    hooks: PassHooks = UNHOOKED
    """Who waits for which inner value."""

    @classmethod
    def across(
        cls,
        memory_bkm: Tensor,
        n_queries: int,
        *,
        real_bk: Tensor | None = None,
        draws: DropoutDraws | None = None,
        plain: bool = False,
    ) -> "Frame":
        """Let n_queries tokens attend to another sequence, as a decoder to its encoder's output (Vaswani et al., 2017).

        real_bk: bool (batch, key), False where that sequence is padding. Positions play no part: the two sequences
        have no common ones.
        """
        visible = Visible.across(n_queries, memory_bkm.shape[1], memory_bkm.device, real_bk)
        return cls(visible, draws=draws, plain=plain, memory_bkm=memory_bkm)
