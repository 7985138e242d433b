"""What was proved of a compiled model, and how: margins, trials, and the whole domain where it is small.

Margins are a proof by itself: each bound is carried from the embedding through every head and unit to the logits. The
trials hold the proof to the model as it stands: they compare every number in the residual, not only the output.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from headstock.programs.compiler.domain import Domain
from headstock.programs.compiler.plan import Decision
from headstock.programs.values import Value, shown


@dataclass(frozen=True)
class Certificate:
    """A compiled model computes its program, exactly, on every sequence of the domain."""

    program: str
    domain: Domain
    decisions: tuple[Decision, ...]
    """Every place where rounding could have made a difference."""
    trials: int
    """Sequences on which every number of the model was compared with the program."""
    exhaustive: bool
    """Whether the output was compared on every sequence of the domain."""
    compared: int
    """Sequences on which the output was compared."""
    measured_error: float
    """The largest error of any code in the trials, which the bounds allow for."""

    @property
    def largest_error(self) -> float:
        """The largest bound on the error of any code; codes lie as far apart as values do, words 1."""
        return max((decision.error for decision in self.decisions), default=0.0)

    @property
    def smallest_margin(self) -> float:
        """What is there over what is needed, at the tightest place; 1 would just do, and infinite is: no noise."""
        return min((decision.margin for decision in self.decisions), default=math.inf)

    @property
    def tightest(self) -> str:
        """The expression at that place."""
        tight = min(self.decisions, key=lambda decision: decision.margin, default=None)
        return "" if tight is None else tight.expression

    def __str__(self) -> str:
        names = "".join(map(shown, self.domain.vocabulary))
        if any(len(shown(token)) > 1 for token in self.domain.vocabulary):
            names = " ".join(map(shown, self.domain.vocabulary))
        tried = (
            f"compared on all {self.compared:,} sequences"
            if self.exhaustive
            else f"compared on {self.compared:,} sequences drawn at random"
        )
        margin = (
            "nothing is noisy"
            if math.isinf(self.smallest_margin)
            else (f"smallest margin {self.smallest_margin:.2f} × what is needed, at {self.tightest}")
        )
        return (
            f"{self.program} over {names!r}, up to {self.domain.max_length} tokens, "
            f"{'causal' if self.domain.causal else 'bidirectional'}, {self.domain.dtype}\n"
            f"proved by bounds through {len(self.decisions)} decisions: "
            f"largest error {self.largest_error:.1e}, {margin}\n"
            f"{tried}; every inner number on {self.trials}, largest error {self.measured_error:.1e}"
        )


def every_sequence(domain: Domain) -> Iterator[tuple[Value, ...]]:
    """Give all sequences of a domain, the short ones first."""
    for length in range(1, domain.max_length + 1):
        yield from product(domain.vocabulary, repeat=length)
