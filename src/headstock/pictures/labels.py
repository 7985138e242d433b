"""Labels made to fit: shortened so that they stay apart, and moved so that they do not lie on one another.

Knows nothing of what a label names, nor of how it is drawn; lengths are letters or any unit that a caller keeps to.
"""

import re
import textwrap
from collections.abc import Sequence

ELLIPSIS = "…"
TERMINAL = 100
"""Columns of a page of plain text."""
_UNSHOWN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def showable(text: str) -> str:
    """Replace what neither a page nor a terminal may show: control characters but line ends, and half characters."""
    return _UNSHOWN.sub("\N{REPLACEMENT CHARACTER}", text)


def elided(label: str, length: int) -> str:
    """Shorten a label to so many letters: a path first loses its folders, then the middle goes, ends stay."""
    label = showable(" ".join(label.split()))
    if len(label) <= length:
        return label
    path, colon, rest = label.rpartition(":") if ".py:" in label else ("", "", label)
    if "/" in path:
        label = f"{ELLIPSIS}/{path.rpartition('/')[2]}{colon}{rest}"
        if len(label) <= length:
            return label
    if length < 3:
        return label[:length]
    tail = (length - 1) // 2
    return label[: length - 1 - tail] + ELLIPSIS + label[len(label) - tail :]


def elided_apart(labels: Sequence[str], length: int) -> list[str]:
    """Shorten labels to so many letters, with a number before those that would come out alike."""
    short = [elided(label, length) for label in labels]
    if len(set(short)) == len(set(labels)):
        return short
    return [
        one if short.count(one) == 1 else f"{place} {elided(label, max(1, length - len(str(place)) - 1))}"
        for place, (label, one) in enumerate(zip(labels, short, strict=True), start=1)
    ]


def without_shared_end(labels: Sequence[str]) -> dict[str, str]:
    """Shorten labels by the words after a hyphen that all end with: a-x and b-c-x to a and b-c. Gives old to new."""
    words = [label.split("-") for label in labels]
    shared = 0
    while (
        len(labels) > 1 and len({tuple(label[-shared - 1 :]) for label in words}) == 1 < min(map(len, words)) - shared
    ):
        shared += 1
    return {label: "-".join(own[: len(own) - shared]) for label, own in zip(labels, words, strict=True)}


def moved_apart(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Give new places, `gap` apart or more and between `low` and `high`, moved as little as can be; order is kept.

    The sum of squared moves is least (pooling adjacent violators). Where not all fit, they share the room evenly.
    """
    if not places:
        return []
    gap = min(gap, (high - low) / max(1, len(places) - 1))
    order = sorted(range(len(places)), key=lambda index: places[index])
    pools: list[tuple[float, int]] = []  # mean of the members' places less their share of gaps, and how many
    for rank, index in enumerate(order):
        mean, size = places[index] - rank * gap, 1
        while pools and pools[-1][0] >= mean:
            before, members = pools.pop()
            mean, size = (before * members + mean * size) / (members + size), members + size
        pools.append((mean, size))
    ceiling = high - (len(places) - 1) * gap
    shifts = [min(max(mean, low), ceiling) for mean, size in pools for _ in range(size)]
    moved = [0.0] * len(places)
    for rank, (index, shift) in enumerate(zip(order, shifts, strict=True)):
        moved[index] = shift + rank * gap
    return moved


def wrapped(sentences: Sequence[str], first: str = "", rest: str | None = None) -> str:
    """Fill sentences to the width of a page, each on lines of its own; a word is never broken, even one too long."""
    wrapper = textwrap.TextWrapper(
        TERMINAL,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(line for sentence in sentences for line in wrapper.wrap(sentence))
