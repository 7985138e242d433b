"""Words for rows that a person reads: lists of names, and how many of them a task takes. Knows nothing of rows."""

from collections.abc import Sequence


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


CITIES = _words(
    "oslo rome lima cairo delhi tokyo paris quito accra sofia minsk dakar turin perth osaka hanoi "
    "basel lagos riga bergen milan tunis amman porto lyon kyoto malmo leeds split ghent boise davao"
)
NOISE = _words(
    "moss reed fern clay rain wind leaf dust snow bark sand foam mist root seed twig "
    "husk peat dew frost stem petal thorn pebble silt brook vine hail cloud loam spark shell"
)
PEOPLE = _words(
    "anna ben clara david emma felix greta hugo ida jonas kira liam mona nils olga paul "
    "rosa simon tara udo vera walt xenia yuri zoe adam bella carl dora erik flora gus"
)
FACTS = {
    "colour": _words("red blue green white black yellow pink brown"),
    "animal": _words("dog cat horse goat duck sheep fox owl"),
    "drink": _words("tea milk juice water wine cocoa beer soup"),
    "tree": _words("oak pine elm birch ash maple cedar larch"),
    "metal": _words("iron gold tin lead zinc brass steel silver"),
    "season": _words("spring summer autumn winter harvest lent yule monsoon"),
}
"""Attributes and what each may be; no word is in two lists, here or above."""


def named(words: Sequence[str], count: int, kind: str) -> list[str]:
    """Give so many words of a list, and beyond its end numbered ones of a kind: city33, city34, ..."""
    return [words[place] if place < len(words) else f"{kind}{place + 1}" for place in range(count)]


def numbered(letter: str, count: int) -> list[str]:
    """Give so many numbers from 0 on, all of one width, after a letter: v00, v01, ..."""
    return [f"{letter}{number:0{len(str(count - 1))}}" for number in range(count)]
