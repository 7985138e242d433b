"""Sums of two numbers, a digit a token: say the digits of the answer, one after another.

    4 7 5 + 3 6 8 = [3] [4] [8] [0]      reversed: 475 + 368 = 0843, from the ones on

Knows nothing of the program `addition`, whose rows are another form of sums.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from headstock.errors import UserError
from headstock.tasks.base import DataCard, Metric
from headstock.tasks.drawing import draw
from headstock.tasks.drawn import DrawnTask, Rows
from headstock.tasks.example import in_brackets
from headstock.tasks.tokenizers import CharTokenizer
from headstock.training.batch import Probe

PLUS, EQUALS = "+", "="


MOST_DIGITS = 100
"""Pairs of longer numbers are more than float64 tells apart from infinitely many."""


class Addition(DrawnTask):
    """Sums of two numbers of `digits` digits, trained and scored on the digits of the answer."""

    name = "addition"
    primary = Metric("accuracy", "higher", "of the answers' digits")
    steps: ClassVar = {"quick": 2000, "full": 6000}

    def __init__(self, *, digits: int, reversed: str) -> None:
        """Make it; `reversed` is "true" where the answer is written from the ones on."""
        if digits > MOST_DIGITS:
            raise UserError(
                f"sums of {digits} digits are too many to be counted by carries: choose {MOST_DIGITS} or less."
            )
        self.digits, self.reversed = digits, reversed == "true"
        self.tokenizer = CharTokenizer([*map(str, range(10)), PLUS, EQUALS])
        self.vocab_size = self.tokenizer.vocab_size
        self.context = 3 * digits + 2
        self.finish()

    def options(self) -> dict[str, str | int | float]:
        """Give the number of digits and how the answer is written."""
        return {"digits": self.digits, "reversed": str(self.reversed).lower()}

    def draw(self, size: int, *purpose: str | int, **at: Any) -> Rows:
        """Draw sums; `at` may say how many `carries` there are, else both numbers are drawn evenly."""
        if "carries" in at:
            x_bn, y_bn = self._with_carries(size, int(at["carries"]), *purpose)
        else:
            x_bn, y_bn = draw(10, 2 * size * self.digits, *purpose).view(2, size, self.digits)
        sum_bn = _sums(x_bn, y_bn)
        if not self.reversed:
            sum_bn = sum_bn.flip(1)
        digit_id, plus, equals = self._ids[:10], self._ids[10].expand(size, 1), self._ids[11].expand(size, 1)
        tokens = torch.cat([digit_id[x_bn.flip(1)], plus, digit_id[y_bn.flip(1)], equals, digit_id[sum_bn]], dim=1)
        place_q = torch.arange(self.context)
        first = 2 * self.digits + 1
        # The first digit asked for is that of the ones, or the carry out of the highest place.
        deciding = self.digits - 1 if self.reversed else 0
        answer_q = (place_q == deciding) | (place_q == self.digits + 1 + deciding)
        sign_q = (place_q == self.digits) | (place_q == first)
        spans = {"answer": answer_q, "other digits": ~answer_q & ~sign_q & (place_q < first), "signs": sign_q}
        return Rows(
            tokens[:, :-1].contiguous(),
            tokens[:, 1:].contiguous(),
            (place_q >= first).expand(size, -1),
            {name: span_q.expand(size, -1) for name, span_q in spans.items()},
        )

    def identity(self, rows: Rows) -> Tensor:
        """Give the digits of the larger number and then the smaller's: both orders of a sum are held out together."""
        x_bn, y_bn = rows.inputs[:, : self.digits], rows.inputs[:, self.digits + 1 : 2 * self.digits + 1]
        differs_bn = x_bn != y_bn
        first_b1 = differs_bn.int().argmax(1, keepdim=True)
        larger_b1 = x_bn.gather(1, first_b1) >= y_bn.gather(1, first_b1)
        return torch.cat([torch.where(larger_b1, x_bn, y_bn), torch.where(larger_b1, y_bn, x_bn)], dim=1)

    def probes(self) -> Iterator[Probe]:
        """Give sums with no carry, with one, ..., with one out of every place."""
        for carries in range(self.digits + 1):
            yield self.probe(carries=carries)

    def card(self) -> DataCard:
        """Give the card, a held-out sum as its example."""
        rows = self._scored["held-out"]
        order = "from the ones on (reversed)" if self.reversed else "from the highest on"
        return DataCard(
            title=self.name,
            what_is_asked=f"Say the sum of two numbers of {self.digits} digits, {order}, a digit a token, each after "
            "those before it.",
            example=in_brackets(rows, self.token_labels),
            primary=self.primary,
            chance=f"{self.guessing():.1%} for the digit that is commonest at each place of an answer in training: the "
            "highest is 0 or 1, the others are any; 10.0% for a digit at random.",
            solved=f"{self.solved_at:.0%} of the answers' digits, so that at most {self.wrong_at_most()} of "
            f"{self.n_scored:,} are wrong.",
            held_out=f"{len(rows)} sums of the one in eight, by a hash of the two numbers in either order, that is "
            "never trained on. Every digit at every place is in training, with others beside it.",
            facts={
                "numbers": f"{self.digits} digits each, zeros in front kept, evenly drawn",
                "answer": f"{self.digits + 1} digits, a zero in front kept, {order}",
                "tokens in a row": f"{self.context}: all but the last digit of the answer, which is only asked for",
                "scored": f"every digit of the answer: {self.n_scored:,} in the held-out set",
                "beside the program": "program,name=addition has numbers of any length and no order but the usual, "
                "ends with a full stop, and is solved by the compiled model; here rows are all of one form, so that "
                "learned positions tell a digit's place",
            },
            source='Lee et al., "Teaching Arithmetic to Small Transformers" (2023), whose plain and reversed forms '
            "these are; they train on a fixed set balanced by digits and carries, here every row is drawn evenly and "
            "without end.",
            content_hash=self.content_hash,
        )

    def guessing(self) -> float:
        """Give the held-out accuracy of saying at each place the digit that is commonest there in training."""
        training, held_out = self._scored["train"], self._scored["held-out"]
        common_q = training.targets.mode(0).values
        return float((held_out.targets == common_q)[held_out.mask].double().mean())

    @cached_property
    def _ids(self) -> Tensor:
        """Give the ids of the digits, of plus and of equals."""
        return torch.tensor(self.encode("0123456789" + PLUS + EQUALS))

    def _with_carries(self, size: int, carries: int, *purpose: str | int) -> tuple[Tensor, Tensor]:
        """Draw numbers whose sum has so many carries, every pair of such numbers as likely; ones first.

        From the ones on, a place carries with the share that pairs which do so have of all that can still be gone on
        with to the right number of carries.
        """
        ways = _ways(self.digits, carries)
        carry_b = torch.zeros(size, dtype=torch.int64)
        left_b = torch.full((size,), carries)
        columns = []
        for place in range(self.digits):
            after = ways[self.digits - place - 1]
            on_b = _PAIRS[carry_b, 1] * torch.where(left_b > 0, after[1, (left_b - 1).clamp(min=0)], 0)
            off_b = _PAIRS[carry_b, 0] * after[0, left_b]
            even_b = draw(2**53, size, *purpose, "carries", place).double() / 2**53
            next_b = (even_b * (on_b + off_b) < on_b).long()
            which_b = draw(2**62, size, *purpose, "digits", place)
            columns.append(_pair(carry_b, next_b, which_b))
            carry_b, left_b = next_b, left_b - next_b
        x_bn, y_bn = torch.stack(columns, dim=2)
        return x_bn, y_bn


_PAIRS = torch.tensor([[55.0, 45.0], [45.0, 55.0]], dtype=torch.float64)
"""Pairs of digits by whether a carry comes in, and whether one goes out."""


def _pair(in_b: Tensor, out_b: Tensor, which_b: Tensor) -> Tensor:
    """Give of the pairs of digits with such carries the one that a number names: int64 (2, row)."""
    pair = torch.arange(100)
    goes_out_ip = (pair // 10 + pair % 10 + torch.arange(2)[:, None] >= 10).long()
    in_order_iop = torch.stack([(goes_out_ip != out).long().argsort(dim=1, stable=True) for out in (0, 1)], dim=1)
    chosen_b = in_order_iop[in_b, out_b, which_b % _PAIRS[in_b, out_b].long()]
    return torch.stack([chosen_b // 10, chosen_b % 10])


def _ways(digits: int, carries: int) -> list[Tensor]:
    """Give for 0 … digits places still to come the pairs of numbers by (carry in, carries to come), float64."""
    ways = [torch.zeros(2, carries + 1, dtype=torch.float64)]
    ways[0][:, 0] = 1
    for _ in range(digits):
        last = ways[-1]
        one_more = torch.cat([torch.zeros(1, dtype=torch.float64), last[1, :-1]])
        ways.append(_PAIRS[:, :1] * last[0] + _PAIRS[:, 1:] * one_more)
    return ways


def _sums(x_bn: Tensor, y_bn: Tensor) -> Tensor:
    """Give the digits of sums, ones first, one more than the numbers have: int64 (row, n + 1)."""
    carry_b = torch.zeros(len(x_bn), dtype=torch.int64)
    digits = []
    for x_b, y_b in zip(x_bn.unbind(1), y_bn.unbind(1), strict=True):
        total_b = x_b + y_b + carry_b
        digits.append(total_b % 10)
        carry_b = total_b // 10
    return torch.stack([*digits, carry_b], dim=1)
