from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.compiler.domain import Domain
from headstock.programs.reading_out import Readout

DOMAIN = Domain.of(["a", "b", 7], 4, False, "float32")
BY_NAME = Readout(DOMAIN, 3, ("a", "b", "7", "<start>", "None"), {0: "a", 4: None}, ())
THIRDS: tuple[Fraction | int, ...] = tuple(Fraction(n, 3) if n % 3 else n // 3 for n in range(-6, 7))
BY_NUMBER = Readout(DOMAIN, None, ("a", "b", "7", "<number>"), {}, THIRDS)


def test_a_start_token_stands_before_every_sequence_and_shorter_ones_are_filled_up() -> None:
    ids, real = BY_NAME.ids_of([["a", 7], ["b"]])
    assert ids.tolist() == [[3, 0, 2], [3, 1, 0]]
    assert real is not None
    assert real.tolist() == [[True, True, True], [True, True, False]]


def test_sequences_of_one_length_need_no_filling_and_no_start_token_is_made_up() -> None:
    ids, real = BY_NUMBER.ids_of([["a", "b"], [7, 7]])
    assert ids.tolist() == [[0, 1], [2, 2]]
    assert real is None


def test_only_a_token_that_an_output_can_be_is_read_out() -> None:
    logits = torch.tensor([[0.0, 9.0, 9.0, 9.0, 1.0], [2.0, 9.0, 9.0, 9.0, 1.0]])
    assert BY_NAME.understood(logits) == [None, "a"]


@given(place=st.integers(0, len(THIRDS) - 1), off=st.floats(-0.16, 0.16))
def test_a_number_is_read_as_the_nearest_that_an_output_can_be(place: int, off: float) -> None:
    logits = torch.tensor([[5.0, 5.0, 5.0, float(THIRDS[place]) + off]])
    assert BY_NUMBER.understood(logits) == [THIRDS[place]]


@pytest.mark.parametrize(("held", "read"), [(-99.0, -2), (99.0, 2)])
def test_a_number_beyond_all_is_read_as_the_outermost(held: float, read: int) -> None:
    assert BY_NUMBER.understood(torch.tensor([[0.0, 0.0, 0.0, held]])) == [read]


def test_tokens_are_read_as_what_they_are() -> None:
    assert BY_NAME.read([["a", 7]]) == [["a", 7]]
    with pytest.raises(UserError, match="'c' is not in the program's vocabulary"):
        BY_NAME.read([["a"], "ac"])
    with pytest.raises(UserError, match="'7' is not in the program's vocabulary"):
        BY_NAME.read(["a7"])


def test_an_output_that_is_no_token_has_a_name_of_its_own() -> None:
    flag = p.compile(p.tokens == "T", vocab="TF", max_length=2, causal=False)
    assert flag("TF") == [True, False]
    assert len(set(flag.readout.names)) == len(flag.readout.names)
    assert set(flag.readout.of_id.values()) == {True, False}


def test_what_is_no_sequence_is_refused_by_model_and_interpreter() -> None:
    for none in (None, 3):
        with pytest.raises(UserError, match=f"the input is {none}: give a string or a list of tokens"):
            BY_NAME.read([none])  # type: ignore[list-item]
        with pytest.raises(UserError, match=f"the input is {none}: give a string or a list of tokens"):
            p.interpret(p.tokens, none)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="the inputs are None: give a list of sequences"):
        BY_NAME.read(None)  # type: ignore[arg-type]
