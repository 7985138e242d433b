"""What a mixer's heads read, as one value that can be cut into blocks of queries."""

from dataclasses import dataclass, replace

from torch import Tensor

from headstock.model.hooks import UNHOOKED, PassHooks
from headstock.model.shapes import Keys, Queries, Residual, Values
from headstock.model.visibility import Visible


@dataclass(frozen=True)
class Heads:
    """What a mixer's heads read in one forward pass: tokens being read as queries, and all that is seen as keys."""

    q_bhqd: Queries
    k_bhkd: Keys
    v_bhkd: Values
    gates_bhk: Tensor | None
    """(batch, gate, key), float32 or wider; (batch, gate, query) for a mixer that keeps no gates."""
    visible: Visible
    x_bqm: Residual
    """The tokens being read."""
    gates_are_kept: bool = False
    """Whether there is a gate a key, not a query."""
    hooks: PassHooks = UNHOOKED
    """Who waits for which of the mixer's inner values."""

    def block(self, start: int, stop: int) -> "Heads":
        """Give queries start to stop, with the keys that they may see."""
        visible, keys = self.visible.block(start, stop)
        gates = self.gates_bhk
        if gates is not None:
            gates = gates[:, :, keys if self.gates_are_kept else slice(start, stop)]
        return replace(
            self,
            q_bhqd=self.q_bhqd[:, :, start:stop],
            k_bhkd=self.k_bhkd[:, :, keys],
            v_bhkd=self.v_bhkd[:, :, keys],
            gates_bhk=gates,
            visible=visible,
            x_bqm=self.x_bqm[:, start:stop],
        )
