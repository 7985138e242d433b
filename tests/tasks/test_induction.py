from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.tasks.induction import Induction
from tests.tasks.reading import marked, read


def answered(words: list[str]) -> dict[int, str]:
    """Read a row: what followed the trigger the first time, asked at the end."""
    first, last = (place for place, word in enumerate(words) if word == "!")
    assert last == len(words) - 1
    return {last: words[first + 1]}


@given(st.integers(5, 30), st.integers(12, 60), st.integers(0, 5))
@settings(max_examples=25)
def test_what_followed_the_trigger_is_asked_at_the_end(length: int, vocabulary: int, index: int) -> None:
    task = Induction(length=length, vocabulary=vocabulary)
    for words, answers in read(task, [task.batch(seed=1, index=index, size=8)]):
        assert len(words) == length
        assert answers == answered(words)


def test_the_first_trigger_stands_anywhere_but_at_the_last_two_places() -> None:
    task = tasks.get("induction", length=10)
    firsts = Counter(words.index("!") for words, _ in read(task, [task.batch(seed=0, index=0, size=4000)]))
    assert set(firsts) == set(range(8))
    assert min(firsts.values()) > 400  # of 500 expected


def test_probes_are_longer_rows_of_the_same_rule_and_fit_the_context() -> None:
    task = tasks.get("induction", length=16)
    lengths = []
    for probe in task.probes():
        lengths.append(probe.at["length"])
        for words, answers in read(task, probe.batches):
            assert len(words) == probe.at["length"] <= task.context
            assert answers == answered(words)
    assert lengths == [16, 32, 64, 128]
    assert task.context == 128


def test_the_commonest_token_is_right_as_often_as_the_card_says() -> None:
    task = tasks.get("induction")
    right = []
    for words, answers in read(task, task.evaluation()):
        counts = Counter(word for word in words if word != "!")
        right.append(min(counts, key=lambda word: (-counts[word], word)) == answers[len(words) - 1])
    assert f"{sum(right) / len(right):.1%} for the commonest token of the row" in task.card().chance
    assert 1 / 16 < sum(right) / len(right) < 0.2


def test_marks_are_the_trigger_with_what_followed_and_everything_else() -> None:
    for words, query, spans in marked(tasks.get("induction")):
        first = words.index("!")
        assert spans["answer"] == [first, first + 1]
        assert query == len(words) - 1
        assert sorted(spans["answer"] + spans["noise"]) == list(range(query))


def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(UserError, match="length must be a whole number of at least 4"):
        tasks.parse("induction,length=3")
    with pytest.raises(UserError, match="vocabulary must be a whole number of at least 2"):
        tasks.parse("induction,vocabulary=1")
