"""Nested brackets of several kinds and bounded depth: say which one closes, wherever one does.

(0 (1 [1)] (0 [0)] [0)]
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.tasks.base import DataCard, Marks, Metric
from headstock.tasks.drawing import draw
from headstock.tasks.drawn import SCORED_ROWS, DrawnTask, Rows
from headstock.tasks.example import in_brackets
from headstock.tasks.tokenizers import WordTokenizer
from headstock.training.batch import Probe

DISTANCES = {"1": (1, 1), "3 to 7": (3, 7), "9 or more": (9, 2**62)}
"""By how many tokens after its opening bracket a closing one stands, which is an odd number."""
LONGER = (1, 2)
"""Times the trained length that is probed."""


class Dyck(DrawnTask):
    """Rows of nested brackets, trained and scored where the next one closes."""

    name = "dyck"
    primary = Metric("accuracy", "higher", "of the closing brackets")
    steps: ClassVar = {"quick": 1200, "full": 4000}

    def __init__(self, *, kinds: int, depth: int, length: int) -> None:
        """Make it; `kinds` of brackets, at most `depth` of them open at once, `length` tokens in a row."""
        if length % 2:
            raise UserError(f"{length} brackets cannot all be closed: choose an even length.")
        if length < 2 * depth:
            raise UserError(
                f"{length} brackets are never {depth} deep: choose a length of {2 * depth} or more, or a smaller depth."
            )
        self.kinds, self.depth, self.length = kinds, depth, length
        digits = len(str(kinds - 1))
        names = [f"{kind:0{digits}}" for kind in range(kinds)]
        self.tokenizer = WordTokenizer([*(f"({name}" for name in names), *(f"{name})" for name in names)])
        self.vocab_size = 2 * kinds
        self.context = LONGER[-1] * length - 1
        self.finish()

    def options(self) -> dict[str, str | int | float]:
        """Give the kinds, the depth and the length."""
        return {"kinds": self.kinds, "depth": self.depth, "length": self.length}

    def draw(self, size: int, *purpose: str | int, **at: Any) -> Rows:
        """Draw rows; `at` may say another `length`."""
        length = at.get("length", self.length)
        depth_bq = self._depths(size, length, *purpose)
        opens_bq = depth_bq.diff(dim=1) > 0
        opening, closing = _pairs_of(depth_bq)
        kinds_bp = draw(self.kinds, size * (length // 2), *purpose, "kinds").view(size, -1)
        tokens = torch.empty(size, length, dtype=torch.int64)
        tokens.scatter_(1, opening, kinds_bp).scatter_(1, closing, self.kinds + kinds_bp)
        return Rows(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), ~opens_bq[:, 1:])

    def distances(self, rows: Rows) -> Tensor:
        """Give how far before each target its opening bracket stands, 0 where it is itself one: int64 (row, time)."""
        tokens = _whole(rows)
        depth_bq = torch.where(tokens < self.kinds, 1, -1).cumsum(1)
        opening, closing = _pairs_of(torch.cat([torch.zeros_like(depth_bq[:, :1]), depth_bq], dim=1))
        return torch.zeros_like(tokens).scatter(1, closing, closing - opening)[:, 1:]

    def probes(self) -> Iterator[Probe]:
        """Give for the trained length and twice as many tokens the same rows, scored at each distance that is there."""
        for length in (longer * self.length for longer in LONGER):
            rows = self.different_rows(SCORED_ROWS, "held-out", "probe", length, length=length)
            distance_bq = self.distances(rows)
            for name, (least, most) in DISTANCES.items():
                at = replace(rows, mask=(least <= distance_bq) & (distance_bq <= most))
                if at.mask.any():
                    yield Probe({"distance": name, "length": length}, at[at.mask.any(1)].batches())

    def marks(self) -> Marks:
        """Give of each held-out row the bracket that closes furthest from its opening, and what stands between."""
        rows = self._scored["held-out"]
        queries_b = self.distances(rows).argmax(1)
        opened_b1 = (queries_b + 1 - self.distances(rows).amax(1))[:, None]
        place_q = torch.arange(rows.inputs.shape[1])
        before_bq = place_q <= queries_b[:, None]
        answer_bq = place_q == opened_b1
        spans = {
            "answer": answer_bq,
            "brackets inside": before_bq & (place_q > opened_b1),
            "brackets before": place_q < opened_b1,
        }
        return Marks(rows.inputs.clone(), queries_b, spans)

    def card(self) -> DataCard:
        """Give the card, a held-out row as its example."""
        rows = self._scored["held-out"]
        distances = self.distances(rows)[rows.mask]
        return DataCard(
            title=self.name,
            what_is_asked=f"Say which of {self.kinds} kinds of bracket closes, wherever one does, in nested brackets "
            f"of which at most {self.depth} are open at once: that of the last one still open.",
            example=in_brackets(rows, self.token_labels),
            primary=self.primary,
            chance=f"{1 / self.kinds:.1%} for one of {self.kinds} kinds; {self.guessing(bag=False):.1%} where the last "
            f"token alone is seen, which tells the kind if it opens; {self.guessing(bag=True):.1%} where the tokens "
            "before are also seen as a bag, and the kind with most brackets open is said.",
            solved=f"{self.solved_at:.0%} of the closing brackets, so that at most {self.wrong_at_most()} of "
            f"{self.n_scored:,} are wrong.",
            held_out=f"{len(rows)} rows of the one in eight, by a hash of the whole row, that is never trained on; "
            "their beginnings and parts come in training too.",
            facts={
                "vocabulary": f"{self.kinds} opening brackets and as many closing ones",
                "tokens in a row": f"{self.length}, and {2 * self.length} in half of the probes; the last is only "
                "asked for",
                "depth": f"a walk that goes up or down evenly, turned back at 0 and {self.depth}; at the end what is "
                "open is closed",
                "scored": f"every closing bracket: {self.n_scored:,} in the held-out set",
                "distance": f"{float((distances == 1).double().mean()):.0%} close what the token before opened, "
                f"{float((distances >= 9).double().mean()):.0%} what was opened 9 or more tokens before",
            },
            source='Hewitt et al., "RNNs Can Generate Bounded Hierarchical Languages with Optimal Memory" (2020): the '
            "language Dyck-(k, m). They train on every token of rows of many lengths, and count a closing bracket that "
            "has 80% of the closing ones' probability; here rows are of one length, training is on closing brackets, "
            "and the figure is how many of them are the likeliest of all tokens.",
            content_hash=self.content_hash,
        )

    def guessing(self, *, bag: bool) -> float:
        """Give the held-out accuracy of a guess without attention: from the last token, or from a bag of all beside it.

        A last token that opens tells the kind. Else the guess is the kind with most brackets open in the bag, or the
        first kind.
        """
        rows = self._scored["held-out"]
        kind_bq, opens_bq = rows.inputs % self.kinds, rows.inputs < self.kinds
        guess_bq = torch.zeros_like(kind_bq)
        if bag:
            signed_bqn = torch.zeros(*kind_bq.shape, self.kinds, dtype=torch.int64)
            signed_bqn.scatter_(2, kind_bq[..., None], torch.where(opens_bq, 1, -1)[..., None])
            guess_bq = signed_bqn.cumsum(1).argmax(2)
        guess_bq = torch.where(opens_bq, kind_bq, guess_bq)
        return float((rows.targets - self.kinds == guess_bq)[rows.mask].double().mean())

    def _depths(self, size: int, length: int, *purpose: str | int) -> Tensor:
        """Draw how many brackets are open before each token and at the end: int64 (row, length + 1).

        A walk of even steps, folded into 0 … depth, goes on by one up or down there too, and so does the lower of two
        such walks whose places are even together: the second one comes down to 0 at the end.
        """
        steps_bq = 2 * draw(2, size * length, *purpose, "walk").view(size, length) - 1
        walk_bq = torch.cat([torch.zeros(size, 1, dtype=torch.int64), steps_bq.cumsum(1)], dim=1)
        folded_bq = self.depth - (walk_bq % (2 * self.depth) - self.depth).abs()
        return torch.minimum(folded_bq, torch.arange(length, -1, -1))


def _pairs_of(depth_bq: Tensor) -> tuple[Tensor, Tensor]:
    """Give the places of the opening brackets and of those that close them, int64 (row, pair) each.

    At any one level brackets open and close in turn, so in the order of levels each is beside its other.
    """
    level_bq = torch.maximum(depth_bq[:, 1:], depth_bq[:, :-1])
    in_order = level_bq.argsort(dim=1, stable=True)
    return in_order[:, 0::2], in_order[:, 1::2]


def _whole(rows: Rows) -> Tensor:
    return torch.cat([rows.inputs, rows.targets[:, -1:]], dim=1)
