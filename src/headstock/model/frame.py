"""What every block of one forward pass shares: decided once by the model, read by each mixer."""

from dataclasses import dataclass

from headstock.model.cache import BlockCache
from headstock.model.dropout import DropoutDraws
from headstock.model.positions import Rotation
from headstock.model.visibility import Visible


@dataclass(frozen=True)
class Frame:
    """One forward pass as a mixer sees it."""

    visible: Visible
    rotation: Rotation | None
    """Turns the queries and keys of the tokens being read; None without RoPE."""
    caches: list[BlockCache] | None
    """One a block, or None where nothing is remembered."""
    draws: DropoutDraws | None
    plain: bool
    """Take the plain evaluation even where a mixer has a fast one."""
