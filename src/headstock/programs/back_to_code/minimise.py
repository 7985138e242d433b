"""The smallest machine that answers as a function does on a whole domain. Exact in both cases, not a heuristic.

A machine reads tokens one by one and answers in each state (Moore, "Gedanken-experiments on sequential machines",
1956). What it would answer before any token is nobody's concern unless a start token makes it one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headstock.programs.back_to_code.domain import Domain

Numbers = NDArray[np.int64]
NOWHERE = -1
"""A step that no sequence of the domain takes, or an answer that none asks for."""


@dataclass(frozen=True)
class States:
    """A machine as arrays; state 0 is the one before any token, the others in the order in which they are reached."""

    answers: Numbers
    """(state,) id, or NOWHERE in a first state that no sequence comes back to."""
    steps: Numbers
    """(state, place in the alphabet) the state after, or NOWHERE."""


def smallest(by_length: Mapping[int, Numbers], domain: Domain) -> States:
    """Give a machine with as few states as any that answers so on the whole domain."""
    known = dict(by_length)
    if 0 not in known:
        known[0] = np.array([NOWHERE])
    levels = [known[length] for length in range(domain.longest + 1)]
    states = _in_order((_of_endless if domain.endless else _of_bounded)(levels, domain.base))
    if 0 not in by_length and not (states.steps == 0).any():
        states.answers[0] = NOWHERE  # nothing comes back to it, so nothing asks for its answer
    return states


def _of_endless(levels: list[Numbers], base: int) -> States:
    """Machine of all sequences, where the last `longest` tokens decide: classes that no continuation tells apart.

    Sequences up to the window are the states to start from, and a full window slides. Classes are split by answer,
    then by where their steps lead, until nothing splits. A window forgets, so that takes no more rounds than it is
    long. The state before any token is entered by no step; without an answer it may be any class that steps alike,
    and since no other state has a choice, that is the smallest machine.
    """
    sizes = [len(level) for level in levels]
    firsts = np.cumsum([0, *sizes])
    full = len(levels) - 1
    steps = np.concatenate(
        [firsts[n + 1] + np.arange(sizes[n] * base).reshape(-1, base) for n in range(full)]
        + [firsts[full] + (np.arange(sizes[full])[:, None] * base + np.arange(base)) % sizes[full]]
    )
    answers = np.concatenate(levels)
    kept, (class_n, count) = steps[1:] - 1, numbered(answers[1:])
    while True:
        finer_n, more = numbered(class_n, *(class_n[kept[:, at]] for at in range(base)))
        if more == count:
            break
        class_n, count = finer_n, more
    _, member = np.unique(class_n, return_index=True)
    class_answers, class_steps = answers[1:][member], class_n[kept[member]]
    first_steps = class_n[steps[0] - 1]
    alike = (class_steps == first_steps).all(1)
    if answers[0] != NOWHERE:
        alike &= class_answers == answers[0]
    if alike.any():
        first = int(alike.argmax())
        order = np.array([first, *(n for n in range(count) if n != first)])
        place = np.argsort(order)
        return States(class_answers[order], place[class_steps[order]])
    return States(np.concatenate([answers[:1], class_answers]), np.concatenate([first_steps[None], class_steps]) + 1)


def _of_bounded(levels: list[Numbers], base: int) -> States:
    """Machine of sequences up to `longest` tokens, where longer ones may be answered in any way.

    Two sequences may share a state where no continuation that keeps both inside the domain tells them apart. That is
    no equivalence, yet taking sequences by length, and giving each the state of an earlier one that it is like,
    yields as few states as can be: those kept are pairwise unlike (Câmpeanu, Sântean & Yu, "Minimal cover-automata
    for finite languages", 1998, there for two answers). Where nothing is said before any token, every answer is
    tried there.
    """
    likeness = _likeness(levels, base)
    if levels[0][0] != NOWHERE:
        return _kept(levels, likeness, base)
    machines = []
    for answer in np.unique(np.concatenate(levels[1:])):
        likeness_here = [_with_first(answer, height, likeness, levels, base) for height in range(len(levels))]
        machines.append(_kept([np.array([answer]), *levels[1:]], likeness_here, base))
    return min(machines, key=lambda machine: len(machine.answers))


def _likeness(levels: list[Numbers], base: int) -> list[list[Numbers]]:
    """Give, by height h and length n ≤ longest − h, a number a sequence: equal where h more tokens tell nothing apart.

    Numbers of one height can be compared across lengths.
    """
    longest = len(levels) - 1
    likeness = [[level.copy() for level in levels]]
    for height in range(1, longest + 1):
        below, lengths = likeness[-1], range(longest - height + 1)
        answers = np.concatenate([levels[n] for n in lengths])
        after = np.concatenate([below[n + 1].reshape(-1, base) for n in lengths])
        numbers, _ = numbered(answers, *after.T)
        likeness.append(np.split(numbers, np.cumsum([len(levels[n]) for n in lengths])[:-1]))
    return likeness


def _with_first(
    answer: int, height: int, likeness: list[list[Numbers]], levels: list[Numbers], base: int
) -> list[Numbers]:
    """Give one height's numbers, the empty sequence's renewed as if it had this answer."""
    longest = len(levels) - 1
    if height == 0:
        return [np.array([answer]), *likeness[0][1:]]
    after = likeness[height - 1][1]
    for n in range(1, longest - height + 1):
        like = (levels[n] == answer) & (likeness[height - 1][n + 1].reshape(-1, base) == after).all(1)
        if like.any():
            return [likeness[height][n][like][:1], *likeness[height][1:]]
    return [np.array([NOWHERE]), *likeness[height][1:]]


def _kept(levels: list[Numbers], likeness: list[list[Numbers]], base: int) -> States:
    """Keep a sequence a state, the shortest of those that are like it, and step from each to what its child is like."""
    longest = len(levels) - 1
    kept: list[tuple[int, int]] = []
    state_of: list[dict[int, int]] = []
    for length in range(longest + 1):
        numbers = likeness[longest - length]
        taken: dict[int, int] = {}
        for state, (n, at) in enumerate(kept):
            taken.setdefault(int(numbers[n][at]), state)
        for like, at in zip(*np.unique(numbers[length], return_index=True), strict=True):
            if int(like) not in taken:
                taken[int(like)] = len(kept)
                kept.append((length, int(at)))
        state_of.append(taken)
    answers = np.array([levels[n][at] for n, at in kept])
    steps = np.full((len(kept), base), NOWHERE)
    for state, (n, at) in enumerate(kept):
        if n < longest:
            after = likeness[longest - n - 1][n + 1][at * base : (at + 1) * base]
            steps[state] = [state_of[n + 1][int(like)] for like in after]
    return States(answers, steps)


def numbered(first: Numbers, *others: Numbers) -> tuple[Numbers, int]:
    """Number the different rows of some columns from 0, and count them."""
    _, numbers = np.unique(first, return_inverse=True)
    for other in others:
        values, places = np.unique(other, return_inverse=True)
        _, numbers = np.unique(numbers * len(values) + places, return_inverse=True)
    return numbers, int(numbers.max(initial=-1)) + 1


def _in_order(states: States) -> States:
    """Renumber states in the order in which reading meets them."""
    order, place = [0], {0: 0}
    for state in order:
        for after in states.steps[state].tolist():
            if after != NOWHERE and after not in place:
                place[after] = len(order)
                order.append(after)
    assert len(order) == len(states.answers)
    steps = np.array([[place.get(after, NOWHERE) for after in row] for row in states.steps[order].tolist()])
    return States(states.answers[order], steps)
