"""Reading a function on its whole domain, twice and by two paths: once to learn it, once to check what was learnt."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headstock.errors import UserError
from headstock.programs.back_to_code.domain import Domain, Token
from headstock.programs.back_to_code.function import Function

Answers = NDArray[np.int64]
Ties = Literal["refuse", "lowest"]
TOKENS = 1 << 16
"""Tokens of a batch."""


@dataclass(frozen=True)
class Told:
    """What a function answers on every sequence of a domain: the likeliest next token."""

    by_length: Mapping[int, Answers]
    """Ids, one a sequence, in the order of their numbers, by length."""
    margin: float
    """The least by which the likeliest token's logit stands above the next one's; inf where there is one token."""
    closest: str
    """The sequence where it does."""
    verified: int
    """Sequences that were read a second time, by another path, with the same answer: all of the domain."""

    def refuse_other(self, claimed: Mapping[int, Answers]) -> None:
        """Raise RuntimeError where what was extracted answers any sequence of the domain in another way."""
        for length, answers in self.by_length.items():
            if not np.array_equal(claimed[length], answers):
                raise RuntimeError(f"what was extracted differs from the model on {length} tokens: this is a defect.")


def read(function: Function, domain: Domain, ties: Ties = "refuse") -> Told:
    """Ask for the token after every sequence, each read on its own, as `generate` reads it; then for all once more.

    The second time each longest sequence is read whole, and its rows answer all of its beginnings. So a model that
    looks ahead, or whose answer hangs on rounding, is met here.

    ties: what becomes of a sequence whose two likeliest tokens have one logit: refuse, or take the lowest id, as
    greedy generation does.

    Raises UserError for such a tie, for logits that are no numbers, and for a sequence with two answers.
    """
    deciding, by_length = Deciding(ties), {}
    with function.being_read():
        for length in domain.lengths:
            found = [
                deciding.likeliest(
                    function.last(domain.ids(length, numbers_b)), partial(_sequence_of_row, domain, length, numbers_b)
                )
                for numbers_b in domain.batches(length, TOKENS)
            ]
            by_length[length] = torch.cat(found).numpy()
        deciding.refuse_ties()
        seen = {length: np.zeros(domain.base**length, dtype=bool) for length in domain.lengths}
        for length, numbers, answers in _again(function, domain):
            before = by_length[length][numbers]
            wrong = before != answers
            if wrong.any():
                at = int(wrong.argmax())
                one, other = (domain.token(int(found[at])) for found in (before, answers))
                raise unsteady(domain.said(length, int(numbers[at])), one, other, deciding.margin)
            seen[length][numbers] = True
    verified = sum(int(mask.sum()) for mask in seen.values())
    assert verified == domain.size
    return Told(by_length, deciding.margin, deciding.closest, verified)


@dataclass
class Deciding:
    """Takes the likeliest tokens, and remembers by how little any was ahead. Raises UserError for an unknown choice."""

    ties: Ties
    margin: float = math.inf
    """The least gap so far."""
    closest: str = ""
    """The sequence where it was."""

    def __post_init__(self) -> None:
        if self.ties not in get_args(Ties):
            raise UserError(f"ties is {self.ties!r}: choose 'refuse' or 'lowest'.")

    def likeliest(self, logits_bv: Tensor, said: Callable[[int], str]) -> Tensor:
        """Give the id (batch,) of the highest logit, the lowest id of equal ones; `said` shows a row's sequence.

        Raises UserError where a logit is not a number.
        """
        logits_bv = logits_bv.cpu()
        unknown_b = logits_bv.isnan().any(1)
        if bool(unknown_b.any()):
            after = said(int(unknown_b.int().argmax()))
            raise UserError(f"the logits after {after} are not numbers: mend the model before extracting it.")
        gap_b = gaps(logits_bv)
        if float(gap_b.min()) < self.margin:
            self.margin, self.closest = float(gap_b.min()), said(int(gap_b.argmin()))
        return lowest_of_highest(logits_bv)

    def refuse_ties(self) -> None:
        """Raise UserError where two tokens were equally likely and that was to be refused."""
        if self.margin == 0 and self.ties == "refuse":
            raise UserError(
                f"after {self.closest} two tokens are equally likely, so the model decides for none: choose "
                "ties='lowest' to take the lowest id, as greedy generation does."
            )


def _sequence_of_row(domain: Domain, length: int, numbers_b: Tensor, row: int) -> str:
    return domain.said(length, int(numbers_b[row]))


def lowest_of_highest(logits_bv: Tensor) -> Tensor:
    """Give the lowest id of the highest logit, (…,) for (…, vocabulary); argmax of ties is torch's own affair."""
    ids = torch.arange(logits_bv.shape[-1], device=logits_bv.device)
    return torch.where(logits_bv == logits_bv.amax(-1, keepdim=True), ids, len(ids)).amin(-1)


def gaps(logits_bv: Tensor) -> Tensor:
    """Give how far the highest of each row stands above the second, float64 (batch,); 0 where both are infinite."""
    if logits_bv.shape[1] < 2:
        return torch.full((len(logits_bv),), float("inf"), dtype=torch.float64)
    first_b, second_b = logits_bv.double().topk(2, dim=-1).values.unbind(-1)
    return torch.where(first_b == second_b, 0.0, first_b - second_b)


def unsteady(after: str, one: Token, other: Token, margin: float) -> UserError:
    """Give the refusal of a model that answers one sequence in two ways."""
    return UserError(
        f"after {after} the model says {one} in one batch and {other} in another: it looks ahead, or its two likeliest "
        f"tokens are within rounding (the least gap is {margin:.3g}); train it on, or extract it in float64."
    )


def _again(function: Function, domain: Domain) -> Iterator[tuple[int, Answers, Answers]]:
    """Give (length, numbers, answers) until every sequence of the domain has been read by the second path."""
    before = 0 if domain.start is None else 1
    whole = domain.longest if domain.longest + before <= domain.context else domain.longest - 1
    alone = [length for length in domain.lengths if length > whole]
    if function.causal and whole:
        for numbers_b in domain.batches(whole, TOKENS):
            answers_bq = lowest_of_highest(function.rows(domain.ids(whole, numbers_b))).cpu().numpy()
            for length in domain.lengths[: len(domain.lengths) - len(alone)]:
                numbers = numbers_b.numpy() // domain.base ** (whole - length)
                yield length, numbers, answers_bq[:, length + before - 1]
    else:
        alone = list(domain.lengths)
    for length in alone:
        for numbers_b in domain.batches(length, TOKENS // 3):
            answers_b = lowest_of_highest(function.rows(domain.ids(length, numbers_b))[:, -1]).cpu().numpy()
            yield length, numbers_b.numpy(), answers_b
