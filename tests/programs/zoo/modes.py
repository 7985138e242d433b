"""What the programs of the zoo are tested by: each mode that one claims, and what a position sees in it."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from headstock import programs as p
from headstock.programs.program import CAUSAL, as_program

letters = st.text("abcd", min_size=1, max_size=10)


def in_every_mode(program: Any, given: Sequence[Any]) -> list[tuple[Any, int, Sequence[Any]]]:
    """Give (answer, position, what that position sees) for each position, in each mode that the program claims."""
    found = []
    for mode in as_program(program).modes:
        answers = p.interpret(program, given, causal=mode == CAUSAL)
        assert len(answers) == len(given)
        seen = [given[: at + 1] if mode == CAUSAL else given for at in range(len(given))]
        found += zip(answers, range(len(given)), seen, strict=True)
    return found
