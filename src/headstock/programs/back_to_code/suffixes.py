"""The smallest table of endings in which the longest one that fits decides. Exact, not a heuristic.

A row is an ending of the sequence, written out, or a whole sequence (marked as beginning at the start), and an answer.
All endings form a tree, longer ones below; each sequence of the domain is a leaf, answered by the nearest row above it.
Fewest rows is then fewest changes of answer along the tree's branches: each ending keeps the answers that serve most of
its extensions, from the leaves up, and answers are chosen from the top down (Hartigan, "Minimum mutation fits to a
given tree", 1973; the same as the smallest routing table of Draves et al., 1999).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from headstock.programs.back_to_code.domain import Domain

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Ending:
    """A row by numbers."""

    length: int
    """Tokens that are compared."""
    number: int
    """The sequence of these tokens, as the domain numbers it."""
    whole: bool
    """Fits a sequence of just these tokens, and not one that merely ends in them."""
    answer: int
    """Id of the next token."""


def fewest_endings(by_length: Mapping[int, Numbers], domain: Domain) -> list[Ending]:
    """Give the rows, shorter endings first; the first one is the empty ending, which fits everything."""
    said = np.unique(np.concatenate([by_length[length] for length in domain.lengths]))
    levels = {length: np.searchsorted(said, by_length[length]) for length in domain.lengths}
    serves = _serving(levels, domain, len(said))
    label = np.array([int(serves[0][0].argmax())])
    rows = [Ending(0, 0, False, int(said[label[0]]))]
    for length in range(domain.longest):
        if length in levels:  # the sequences that have no more tokens than these
            differ = np.flatnonzero(levels[length] != label)
            rows += [Ending(length, int(n), True, int(said[levels[length][n]])) for n in differ]
        inherited = np.tile(label, domain.base)
        if length + 1 == domain.longest:
            chosen = levels[length + 1]
        else:
            fits = serves[length + 1][np.arange(len(inherited)), inherited]
            chosen = np.where(fits, inherited, serves[length + 1].argmax(1))
        differ = np.flatnonzero(chosen != inherited)
        rows += [Ending(length + 1, int(n), False, int(said[chosen[n]])) for n in differ]
        label = chosen
    return rows


def _serving(levels: Mapping[int, Numbers], domain: Domain, n_answers: int) -> list[NDArray[np.bool_]]:
    """Say by length below the longest, (ending, answer): may the ending hold the answer in a smallest table?"""
    serves: list[NDArray[np.bool_]] = []
    for length in reversed(range(domain.longest)):
        endings = domain.base**length
        served = np.zeros((endings, n_answers), dtype=np.int64)
        if length + 1 == domain.longest:
            for answers in levels[length + 1].reshape(domain.base, endings):
                served[np.arange(endings), answers] += 1
        else:
            served += serves[0].reshape(domain.base, endings, n_answers).sum(0)
        if length in levels:
            served[np.arange(endings), levels[length]] += 1
        serves.insert(0, served == served.max(1, keepdims=True))
    return serves


def window_of(by_length: Mapping[int, Numbers], domain: Domain) -> int:
    """Give the fewest last tokens that decide on every sequence of at least as many."""
    for window in range(domain.longest):
        lengths = [length for length in domain.lengths if length >= window]
        rows = np.concatenate([by_length[length].reshape(-1, domain.base**window) for length in lengths])
        if (rows == rows[0]).all():
            return window
    return domain.longest


def answered(endings: list[Ending], domain: Domain) -> dict[int, Numbers]:
    """Look every sequence of the domain up, and give the answers by length."""
    answers = {length: np.full(domain.base**length, endings[0].answer) for length in domain.lengths}
    for (compared, whole), rows in groupby(endings[1:], key=lambda ending: (ending.length, ending.whole)):
        numbers, says = np.array([(row.number, row.answer) for row in rows]).T
        for length in domain.lengths:
            if length == compared or (length > compared and not whole):
                answers[length].reshape(-1, domain.base**compared)[:, numbers] = says
    return answers
