"""Oracles that know nothing of classes and trees: every machine, and every table of endings, of a size is tried."""

from collections.abc import Iterator
from functools import cache
from itertools import combinations, product

import numpy as np

Ids = tuple[int, ...]


MOST = 4
"""States of the largest machines that are tried."""


def fewest_states(table: dict[Ids, int]) -> int:
    """Give the least states of a machine that answers a table of 0 and 1 over two tokens; MOST + 1 where more."""
    ids = sorted(table, key=lambda ids: (len(ids), ids))
    number = sum(table[one] << at for at, one in enumerate(ids))
    for states in range(1, MOST + 1):
        if number in answered_by(states, len(ids[0]), len(ids[-1])):
            return states
    return MOST + 1


@cache
def answered_by(states: int, shortest: int, longest: int) -> frozenset[int]:
    """Give the tables, as numbers with a bit a sequence, that any machine of so many states answers."""
    steps = np.array(list(product(range(states), repeat=2 * states))).reshape(-1, states, 2)
    ends = [np.zeros((len(steps), 1), dtype=int)]
    for _ in range(longest):
        ends.append(steps[np.arange(len(steps))[:, None], ends[-1]].reshape(len(steps), -1))
    at = np.concatenate(ends[shortest:], axis=1)
    bits = 1 << np.arange(at.shape[1], dtype=np.uint64)
    tables = [
        np.unique((np.array(says)[at] * bits).sum(1)) for says in product(np.arange(2, dtype=np.uint64), repeat=states)
    ]
    return frozenset(np.concatenate(tables).tolist())


def fewest_rows(table: dict[Ids, int], base: int, longest: int) -> int:
    """Give the least number of rows of a table of endings, longest first, by trying."""
    endings = [(ids, whole) for ids in _up_to(base, longest) for whole in (False, True) if ids or not whole]
    said = sorted(set(table.values()))
    for size in range(1, len(endings) + 1):
        for chosen in combinations(endings, size):
            for labels in product(said, repeat=size):
                rows = dict(zip(chosen, labels, strict=True))
                if all(_looked_up(rows, ids) == answer for ids, answer in table.items()):
                    return size
    raise AssertionError


def _looked_up(rows: dict[tuple[Ids, bool], int], ids: Ids) -> int | None:
    for length in range(len(ids), -1, -1):
        ending = ids[len(ids) - length :]
        if length == len(ids) and (ending, True) in rows:
            return rows[ending, True]
        if (ending, False) in rows:
            return rows[ending, False]
    return None


def _up_to(base: int, longest: int) -> Iterator[Ids]:
    for length in range(longest + 1):
        yield from product(range(base), repeat=length)
