from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.tasks.selective_copy import SelectiveCopy
from tests.tasks.reading import marked, read


def answered(words: list[str]) -> dict[int, str]:
    """Read a row: the words before the marker that are no blanks, in order, one at each place after it."""
    marker = words.index(">")
    wanted = [word for word in words[:marker] if word != "·"]
    assert words[marker + 1 :] == ["·"] * len(wanted)
    return dict(enumerate(wanted, start=marker + 1))


@given(st.integers(1, 8), st.integers(0, 12), st.integers(30, 60), st.integers(0, 5))
@settings(max_examples=25)
def test_the_tokens_are_asked_for_in_order(tokens: int, blanks: int, vocabulary: int, index: int) -> None:
    task = SelectiveCopy(length=tokens + blanks, tokens=tokens, vocabulary=vocabulary)
    for words, answers in read(task, [task.batch(seed=1, index=index, size=8)]):
        assert len(words) == 2 * tokens + blanks + 1
        assert len(answers) == tokens
        assert answers == answered(words)


def test_places_are_evenly_drawn() -> None:
    task = SelectiveCopy(length=6, tokens=2, vocabulary=16)
    places: Counter[tuple[int, ...]] = Counter()
    for words, _ in read(task, [task.batch(seed=0, index=0, size=3000)]):
        places[tuple(place for place, word in enumerate(words[:6]) if word != "·")] += 1
    assert len(places) == 15
    assert min(places.values()) > 150  # of 200 expected


def test_probes_differ_in_length_and_number_and_fit_the_context() -> None:
    task = tasks.get("selective-copy", length=12, tokens=6)
    at = []
    for probe in task.probes():
        at.append(tuple(probe.at.values()))
        for words, answers in read(task, probe.batches):
            assert words.index(">") == probe.at["length"]
            assert len(answers) == probe.at["tokens"]
            assert answers == answered(words)
            assert len(words) <= task.context
    assert at == [(12, 1), (12, 2), (12, 4), (12, 6), (24, 1), (24, 2), (24, 4), (24, 6)]
    assert task.context == 24 + 1 + 6


def test_the_commonest_token_is_right_as_often_as_the_card_says() -> None:
    task = tasks.get("selective-copy")
    right = []
    for _, answers in read(task, task.evaluation()):
        counts = Counter(answers.values())
        right += [answer == min(counts, key=lambda word: (-counts[word], word)) for answer in answers.values()]
    assert f"{sum(right) / len(right):.1%} for the commonest token of the row" in task.card().chance


def test_marks_are_the_first_token_the_others_and_the_blanks() -> None:
    task = tasks.get("selective-copy")
    for (words, query, spans), (_, answers) in zip(marked(task), read(task, task.evaluation()), strict=True):
        assert query == words.index(">") + 1 == min(answers)
        filled = [place for place, word in enumerate(words) if word not in ("·", ">")]
        assert spans == {
            "answer": filled[:1],
            "other tokens": filled[1:],
            "noise": [place for place, word in enumerate(words[: query - 1]) if word == "·"],
        }


def test_more_tokens_than_places_are_refused() -> None:
    with pytest.raises(UserError, match="9 tokens do not fit into 8 places before the marker: choose more places"):
        tasks.parse("selective-copy,length=8,tokens=9")
