"""Programs with an input and the right answer, for everything that runs a program: interpreter and compiled model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from headstock.programs import Program, zoo

PARENTHESES = "()(()())(((())(()(()))))((())((()()))(()))))(())(("
"""The 50 brackets of the issue: balanced after positions 1, 7, 23 and 41, broken from 42."""


@dataclass(frozen=True)
class Case:
    """program(given) is right, in a mode, over a vocabulary that holds the input."""

    program: Callable[[], Program] | Program
    given: str | Sequence[Any]
    right: list[Any]
    causal: bool = False
    vocabulary: str | Sequence[Any] | None = None
    """None: the program's own."""

    @property
    def made(self) -> Program:
        """The program, where it is made."""
        return self.program if isinstance(self.program, Program) else self.program()

    def __str__(self) -> str:
        return f"{self.made.name} of {''.join(map(str, self.given))}{' causally' if self.causal else ''}"


def _dyck(given: str) -> list[str]:
    answers, depth = [], 0
    for bracket in given:
        depth += {"(": 1, ")": -1}[bracket] if depth >= 0 else 0
        answers.append("broken" if depth < 0 else "open" if depth else "balanced")
    return answers


def _parts(*written: str) -> list[Any]:
    return [int(part) if "/" not in part else Fraction(part) for part in written]


CASES = [
    Case(zoo.length, "abc", [3, 3, 3]),
    Case(zoo.length, "ad", [2, 2]),
    Case(zoo.length, "abcd", [1, 2, 3, 4], causal=True),
    Case(zoo.reverse, "abcd", list("dcba")),
    Case(zoo.fraction_of_previous("l"), "hello", _parts("0", "0", "1/3", "1/2", "2/5"), vocabulary="helo"),
    Case(zoo.fraction_of_previous("l"), "hello", _parts("0", "0", "1/3", "1/2", "2/5"), True, vocabulary="helo"),
    Case(zoo.pair_balance, "a()b(c))", _parts("0", "1/2", "0", "0", "1/5", "1/6", "0", "-1/8"), vocabulary="abc()"),
    Case(
        zoo.pair_balance, "a()b(c))", _parts("0", "1/2", "0", "0", "1/5", "1/6", "0", "-1/8"), True, vocabulary="abc()"
    ),
    Case(zoo.shuffle_dyck(2), "({)}", [1, 1, 1, 1]),
    Case(zoo.shuffle_dyck(2), "(){)}", [0, 0, 0, 0, 0]),
    Case(zoo.shuffle_dyck(2), "({)}(", [0, 0, 0, 1, 0], causal=True),
    Case(zoo.shuffle_dyck(1), "(())", [1, 1, 1, 1]),
    Case(zoo.shuffle_dyck(1), ")(", [0, 0]),
    Case(zoo.shuffle_dyck(3), "([{)]}", [1, 1, 1, 1, 1, 1]),
    Case(zoo.hist, "abac", [2, 1, 2, 1]),
    Case(zoo.hist, "abac", [1, 1, 2, 1], causal=True),
    Case(zoo.double_hist, "abbc", [2, 1, 1, 2]),
    Case(zoo.double_hist, "abcabd", [2, 2, 2, 2, 2, 2]),
    Case(zoo.sort, [2, 4, 1, 2], [1, 2, 2, 4], vocabulary=[1, 2, 3, 4]),
    Case(zoo.sort, "dab", list("abd")),
    Case(zoo.sort_freq, [2, 4, 2, 1], [2, 2, 4, 1], vocabulary=[1, 2, 3, 4]),
    Case(zoo.most_frequent, "abbccddd", [*"dbca", None, None, None, None]),
    Case(zoo.shift(2), "abcd", [None, None, "a", "b"]),
    Case(zoo.shift(2), "abcd", [None, None, "a", "b"], causal=True),
    Case(zoo.shift(-1), "abcd", ["b", "c", "d", None]),
    Case(zoo.detect("abc"), "abcabc", [None, None, True, False, False, True]),
    Case(zoo.detect("abc"), "abcabc", [None, None, True, False, False, True], causal=True),
    Case(zoo.detect("aa"), "aaab", [None, True, True, False]),
    Case(zoo.dyck(1), PARENTHESES, _dyck(PARENTHESES), causal=True),
    Case(zoo.dyck(1), PARENTHESES, _dyck(PARENTHESES)),
    Case(zoo.dyck(2), "({})({)}", ["open"] * 3 + ["balanced"] + ["open"] * 2 + ["broken"] * 2, causal=True),
    Case(zoo.dyck(2), "({})({)}", ["open"] * 3 + ["balanced"] + ["open"] * 2 + ["broken"] * 2),
    Case(zoo.dyck(3), "[({})](]", ["open"] * 5 + ["balanced", "open", "broken"], causal=True),
    Case(zoo.count("a"), "abac", [2, 2, 2, 2]),
    Case(zoo.count("a"), "abac", [1, 1, 2, 2], causal=True),
    Case(zoo.induction, "abcab", [None, None, None, "b", "c"], causal=True),
    Case(zoo.induction, "aaba", [None, "a", None, "b"]),
    Case(zoo.last_occurrence, "abcab", [None, None, None, 0, 1], causal=True),
    Case(zoo.last_occurrence, "abcab", [None, None, None, 0, 1]),
    Case(zoo.parity, "10110", [1, 1, 0, 1, 1], causal=True),
    Case(zoo.parity, "10110", [1, 1, 0, 1, 1]),
    Case(zoo.increment, "01011", list("01100")),
    Case(zoo.increment, "111", [None, None, None]),
    Case(zoo.long_addition, "683+345", [0, 0, 0, 1, 0, 2, 8]),
    Case(zoo.long_addition, "7+95", [0, 1, 0, 2]),
    Case(zoo.long_addition, "999+1", [0, 1, 0, 0, 0]),
    Case(zoo.long_addition, "1+2+3", [None] * 5),
    Case(zoo.long_addition, "+12", [None] * 3),
    Case(zoo.carries, "683+345", [0, 0, 0, 1, 1, 0, 0]),
    Case(zoo.addition(2), "95+7=102.", [None, None, None, None, "1", "0", "2", ".", "."], causal=True),
    Case(zoo.addition(3), "683+345=1028.", [None] * 7 + list("1028..")[:6], causal=True),
    Case(zoo.addition(2), "0+0=0.", [None, None, None, "0", ".", "."], causal=True),
    Case(zoo.caesar(3), "xyzab", list("abcde")),
    Case(zoo.caesar(3), "xyzab", list("abcde"), causal=True),
    Case(zoo.copy, "dab", list("dab")),
    Case(zoo.copy, "dab", list("dab"), causal=True),
    Case(zoo.repeat, "dab|dab|d", [None, None, None, *"dab|da"], causal=True),
    Case(zoo.aab, "aabaabaab", list("bbaabaaba"), causal=True),
    Case(zoo.ab, "abab", list("baba"), causal=True),
]
