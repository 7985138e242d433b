"""A causal program goes on with a text: what it gives is the next token it reads."""

import pytest

from headstock import programs as p
from headstock.errors import UserError
from headstock.programs.compiled import compile
from headstock.programs.continuing import continued
from tests.programs.some_compiled import compiled_mean, compiled_repeat, compiled_sort


def _by_the_interpreter(program, prompt: str, longest: int) -> str:
    """Go on step by step with the program itself."""
    text = prompt
    while len(text) <= longest:
        text += p.interpret(program, text)[-1]
    return text[len(prompt) :]


@pytest.mark.parametrize("prompt", ["|", "a|", "ba|", "ab|a", "aab|aa"])
def test_the_model_goes_on_as_the_program_would_token_by_token(prompt: str) -> None:
    compiled = compiled_repeat()
    found = continued(compiled.record, compiled.model, prompt)
    assert "".join(found.new) == _by_the_interpreter(compiled.program, prompt, 6)
    assert found.ended_by == "length"


def test_it_stops_at_its_end_token_and_after_as_many_as_were_asked_for() -> None:
    letters = p.lookup({"a": "b", "b": "c", "c": "."}, p.tokens, default=".")
    program = p.Program("letters", letters, vocabulary=tuple("abc."), max_length=6, modes=("causal",), end=".")
    compiled = compile(program)
    found = continued(compiled.record, compiled.model, "a")
    assert (found.new, found.ended_by) == (("b", "c", "."), "end")
    found = continued(compiled.record, compiled.model, "a", 2)
    assert (found.new, found.ended_by) == (("b", "c"), "tokens")


def test_it_stops_before_a_value_that_is_no_token() -> None:
    letters = p.lookup({"a": "b", "b": "c", "c": None}, p.tokens)
    compiled = compile(letters, vocab="abc", max_length=6, causal=True)
    found = continued(compiled.record, compiled.model, "a")
    assert (found.new, found.ended_by, found.value) == (("b", "c"), "no token", None)
    with pytest.raises(UserError, match="gives None after a c, which is no token"):
        continued(compiled.record, compiled.model, "ac")


def test_what_cannot_go_on_is_refused() -> None:
    sort, mean, repeat = compiled_sort(), compiled_mean(), compiled_repeat()
    with pytest.raises(UserError, match="only a causal model can go on"):
        continued(sort.record, sort.model, "ab")
    with pytest.raises(UserError, match="are no tokens that it could read next"):
        continued(mean.record, mean.model, [1])
    for prompt in ("", "a?", "a" * 7):
        with pytest.raises(UserError, match="the program"):
            continued(repeat.record, repeat.model, prompt)
    with pytest.raises(UserError, match="ask for at most 5"):
        continued(repeat.record, repeat.model, "a|", 6)
    assert len(continued(repeat.record, repeat.model, "a|", 5).new) == 5
