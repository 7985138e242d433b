"""Small programs, compiled once for all tests of what is made of a compiled model. Not to be changed by any."""

from functools import cache
from typing import Any

from headstock import programs as p
from headstock.programs.compiled import Compiled, compile


@cache
def compiled_sort() -> Compiled:
    """Two layers of heads and units, a sum in no column, a start token, and outputs that are tokens or None."""
    return compile(p.zoo.sort, vocab="abc", max_length=3)


@cache
def compiled_mean() -> Compiled:
    """Whole numbers in, fractions out, read off one logit; causal."""
    mean = p.aggregate(p.up_to_here, p.tokens)
    return compile(mean, vocab=[1, 2, 10], max_length=4, causal=True)


@cache
def compiled_flag() -> Compiled:
    """Words in; values that look alike and are of different kinds: True, 1, '1' and None."""
    kinds = p.lookup({"yes": True, "one": 2, "word": "1", "none": None}, p.tokens)
    return compile(kinds, vocab=["yes", "one", "word", "none"], max_length=2, causal=True)


@cache
def compiled_repeat() -> Compiled:
    """Goes on with its own tokens for ever, and gives None before there is a bar."""
    return compile(p.zoo.repeat, vocab="ab|", max_length=6)


@cache
def compiled_adder() -> Compiled:
    """Adds bits: many heads in a layer, columns that are used again, and an end token."""
    return compile(p.zoo.addition(digits=1), vocab="01+=.", max_length=6)


def trained(compiled: Compiled, by: float = 0.25) -> Any:
    """Give a copy of a compiled model's weights with one number of the first layer's units moved."""
    weights = {name: weight.clone() for name, weight in compiled.model.state_dict().items()}
    weights["blocks.0.feedforward.into.weight"][0, 0] += by
    return weights
