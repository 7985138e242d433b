"""Every program of the zoo at length 100, where others of its kind are silently wrong from ten tokens on."""

import random

import pytest
import torch

from headstock.programs import compile, interpret, zoo

LONGEST = {"addition": None}
"""Programs whose own choices say how long their input is."""


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(zoo.PROGRAMS))
def test_a_program_compiled_for_100_tokens_is_exact_at_100(name):
    torch.set_num_threads(1)
    program = zoo.get(name)
    compiled = compile(program, max_length=LONGEST.get(name, 100))
    draws = random.Random(1)
    longest = compiled.domain.max_length
    for _ in range(3):
        given = [draws.choice(compiled.domain.vocabulary) for _ in range(longest)]
        assert compiled(given) == interpret(program, given), given
    assert compiled.certificate.smallest_margin > 1
