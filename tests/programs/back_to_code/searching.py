"""Oracles that know nothing of classes and trees: they try every machine, and every table, of a size."""

from collections.abc import Iterator
from itertools import combinations, product

Ids = tuple[int, ...]


def fewest_states(table: dict[Ids, int], base: int) -> int:
    """Give the least number of states of a machine that answers every sequence of the table, by trying."""
    states = 1
    while not _fits(sorted(table, key=lambda ids: (len(ids), ids)), table, base, states):
        states += 1
    return states


def _fits(order: list[Ids], table: dict[Ids, int], base: int, states: int) -> bool:
    """Read the sequences in turn; where a step or an answer is missing, try every one that adds no more states."""

    def search(at: int, steps: dict[tuple[int, int], int], answers: dict[int, int]) -> bool:
        for place in range(at, len(order)):
            state = 0
            for ident in order[place]:
                if (state, ident) not in steps:
                    used = 1 + max([0, *steps.values()])
                    return any(
                        search(place, steps | {(state, ident): after}, answers)
                        for after in range(min(used + 1, states))
                    )
                state = steps[state, ident]
            if answers.setdefault(state, table[order[place]]) != table[order[place]]:
                return False
        return True

    return search(0, {}, {})


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
