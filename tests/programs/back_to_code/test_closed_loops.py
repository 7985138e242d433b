"""A model that reads its own tokens comes back sooner or later: the smallest machine that generates the same."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock.errors import UserError
from headstock.programs.back_to_code import closed_loop
from headstock.programs.handmade import aab
from tests.programs.back_to_code.functions import Ids, foretelling, lively, of_table, tables

COMPLETIONS = {
    "a": "baabaabaab",
    "ba": "abaabaabaa",
    "abaab": "aabaabaaba",
    "ababa": "abaabaabaa",
    "bbbbb": "aabaabaaba",
}


def test_aab_by_hand_goes_round_three_states_from_every_published_prompt() -> None:
    found = closed_loop(aab.model(), list(COMPLETIONS), names="ab")
    assert found.size == 3
    assert {prompt: "".join(map(str, found(prompt, 10))) for prompt in COMPLETIONS} == COMPLETIONS
    alone = closed_loop(aab.model(), ["aab"], names="ab")
    assert str(alone).splitlines() == [
        "state  says  then  first after",
        "0      a     1     a a b",
        "1      a     2",
        "2      b     0",
    ]


@pytest.mark.parametrize("variant", ["softmax", "softmax+rope", "lstm+none"])
def test_it_generates_what_the_model_does_for_long(variant: str) -> None:
    model = lively(variant)
    prompts = [(0,), (1,), (2, 1), (1, 0, 2, 1, 1, 0)]
    found = closed_loop(model, prompts)
    for prompt in prompts:
        said = model.generate(torch.tensor([prompt]), 40, overflow="slide")[0, len(prompt) :].tolist()
        assert found(prompt, 40) == said


@settings(max_examples=15)
@given(tables(longest=3), st.lists(st.integers(0, 1), min_size=1, max_size=5))
def test_no_machine_with_fewer_states_generates_the_same(table: dict[Ids, int], prompt: list[int]) -> None:
    found = closed_loop(of_table(table, 2, 3), [prompt])
    seen, said = list(prompt), []
    for _ in range(60):
        said.append(table[tuple(seen[-3:])])
        seen.append(said[-1])
    assert found(prompt, 60) == said
    # Fewest states of a sequence with a tail and a round: the shortest tail and round that repeat it.
    fewest = min(
        tail + around
        for tail in range(20)
        for around in range(1, 20)
        if all(said[at] == said[at + around] for at in range(tail, 40))
    )
    assert found.size == fewest


def test_what_does_not_come_back_soon_or_is_no_prompt_is_refused() -> None:
    counting = foretelling(lambda ids: (ids[-1] + 1) % 50, vocab_size=50, context=2)
    assert closed_loop(counting, [[0]]).size == 50
    with pytest.raises(UserError, match="after 20 windows"):
        closed_loop(counting, [[0]], at_most=20)
    with pytest.raises(UserError, match="give each once"):
        closed_loop(counting, [[0], [0]])
    with pytest.raises(UserError, match="0 prompts"):
        closed_loop(counting, [])
    with pytest.raises(UserError, match="is not one of the prompts"):
        closed_loop(counting, [[0]])([1], 3)
    with pytest.raises(UserError, match="whole_lookup"):
        closed_loop(lively("softmax", causal=False), [[0]])


def test_ties_and_answers_that_hang_on_the_batch_are_refused() -> None:
    def wavering(ids_bq: torch.Tensor) -> torch.Tensor:
        said = (ids_bq + (len(ids_bq) > 1)) % 3
        return torch.nn.functional.one_hot(said, 3).float() * (ids_bq[..., None] < 2)

    from headstock.programs.back_to_code import Function

    function = Function(wavering, vocab_size=3, context=1)
    with pytest.raises(UserError, match="equally likely"):
        closed_loop(function, [[2]])
    with pytest.raises(UserError, match="within rounding"):
        closed_loop(function, [[0], [1]])
