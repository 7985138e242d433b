"""Compiled programs go back to code: to machines as small as what they compute."""

import pytest

from headstock import UserError
from headstock import programs as p
from headstock.programs.back_to_code import extract


def test_aab_is_a_machine_of_three_states():
    machine = p.compile(p.zoo.aab, max_length=5).back_to_code()
    assert (machine.kind, machine.size, machine.verified) == ("machine", 3, 62)


def test_parity_is_a_machine_of_two_states_that_speaks_the_programs_own_words():
    compiled = p.compile(p.zoo.parity, max_length=6, causal=True)
    machine = compiled.back_to_code()
    assert machine.size == 2
    for given in ("1", "10110", "000000"):
        # The token '1' and the number 1 are two: the number's name is marked.
        assert machine(given).rstrip("'") == str(compiled(given)[-1])


def test_what_is_read_as_a_number_is_no_token():
    with pytest.raises(UserError, match="read as a number and not as a token"):
        p.compile(p.zoo.pair_balance, max_length=4).back_to_code()


@pytest.mark.parametrize("ties", ["refuse", "lowest"])
@pytest.mark.parametrize("causal", [False, True])
def test_nor_is_it_where_the_model_alone_is_given(ties, causal):
    compiled = p.compile(p.zoo.pair_balance, vocab="()", max_length=3, causal=causal)
    with pytest.raises(
        UserError, match="it is read as a number, as programs of many fractions are, and not as a token"
    ):
        extract(compiled.model, names=list(compiled.readout.names), alphabet=[0, 1], ties=ties)
