from collections import Counter
from itertools import groupby, permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.tasks import recall_fuzzy
from headstock.tasks.recall_fuzzy import FuzzyRecall
from tests.tasks.reading import marked, read


def runs(words: list[str]) -> list[tuple[int, tuple[str, ...]]]:
    """Read a row: keys and values in turn, each where it begins."""
    found = []
    for _, run in groupby(enumerate(words), key=lambda word: word[1][0]):
        places, tokens = zip(*run, strict=True)
        found.append((places[0], tokens))
    return found


def answered(words: list[str]) -> dict[int, str]:
    """Give what is asked in a row with the word after it: every token of a value whose key was there before."""
    values: dict[tuple[str, ...], tuple[str, ...]] = {}
    answers: dict[int, str] = {}
    row = runs(words)
    for (_, key), (begin, value) in zip(row[::2], row[1::2], strict=False):
        assert (key[0][0], value[0][0]) == ("k", "v")
        whole = begin + len(value) < len(words)
        if key in values:
            answers |= {begin + number - 1: token for number, token in enumerate(values[key][: len(value)])}
            assert value == values[key] or not whole
        elif whole:
            values[key] = value
    return answers


@st.composite
def some_tasks(draw: st.DrawFn) -> FuzzyRecall:
    pairs, longest = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    return FuzzyRecall(
        length=(2 * pairs + 1) * longest + draw(st.integers(2, 30)),
        vocabulary=draw(st.integers(10, 24)),
        pairs=pairs,
        longest=longest,
    )


@given(some_tasks(), st.integers(0, 5))
@settings(max_examples=25)
def test_every_token_of_the_value_of_a_key_shown_before_is_asked(task: FuzzyRecall, index: int) -> None:
    batch = task.batch(seed=1, index=index, size=8)
    after = task.token_labels(batch.targets[:, -1].tolist())
    for (words, answers), last in zip(read(task, [batch]), after, strict=True):
        assert len(words) == task.context
        assert answers
        assert answers == answered([*words, last])
        keys = {key for _, key in runs([*words, last])[:-2:2]}
        assert len(keys) <= task.pairs
        assert all(len(key) == len(set(key)) <= task.longest for _, key in runs([*words, last]))


def test_keys_and_values_of_every_size_are_as_likely() -> None:
    task = tasks.get("recall-fuzzy", pairs=1)
    sizes: Counter[tuple[int, int]] = Counter()
    for words, _ in read(task, [task.batch(seed=0, index=0, size=1800)]):
        (_, key), (_, value) = runs(words)[:2]
        sizes[len(key), len(value)] += 1
    assert len(sizes) == 9
    assert min(sizes.values()) > 150  # of 200 expected


def test_probes_differ_in_the_longest_key_and_value() -> None:
    task = tasks.get("recall-fuzzy")
    longest = []
    for probe in task.probes():
        longest.append(probe.at["longest"])
        sizes = {len(run) for words, _ in read(task, probe.batches) for _, run in runs(words)[:-1]}
        assert sizes == set(range(1, int(probe.at["longest"]) + 1))
    assert longest == [1, 2, 3]


def test_a_bag_of_words_is_right_as_often_as_the_card_says() -> None:
    task = tasks.get("recall-fuzzy")
    often, as_often = [], []
    for words, answers in read(task, task.evaluation()):
        for place, answer in answers.items():
            counts = Counter(word for word in words[: place + 1] if word[0] == "v")
            often.append(min(counts, key=lambda word: (-counts[word], word)) == answer)
            times = words[:place].count(words[place])
            nearest = min(counts, key=lambda word: (abs(counts[word] - times), -counts[word], word))
            as_often.append(nearest == answer)
    assert task.card().chance.startswith(
        f"{sum(often) / len(often):.1%} for the value token that the row has shown most often, "
        f"{sum(as_often) / len(as_often):.1%} for the one that it has shown as often"
    )


def test_marks_are_of_the_first_question() -> None:
    task = tasks.get("recall-fuzzy")
    for (words, query, spans), (_, answers) in zip(marked(task), read(task, task.evaluation()), strict=True):
        assert query == min(answers)
        asked = runs(words[: query + 1])[-1][1]
        told = [words[place] for place in spans["answer"]]
        assert tuple(told[: len(asked)]) == asked
        assert told[len(asked)] == answers[query]
        assert sorted(spans["answer"] + spans["other pairs"]) == list(range(query + 1 - len(asked)))


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("recall-fuzzy,length=26", "4 pairs with keys and values of up to 3 tokens need a length of 27 or more"),
        (
            "recall-fuzzy,vocabulary=7",
            "has 3 tokens for keys, too few for 4 pairs of up to 3 different tokens: choose 8",
        ),
        ("recall-fuzzy,vocabulary=5,pairs=1", "has 2 tokens for keys, too few for 1 pairs of up to 3 .* choose 6"),
    ],
)
def test_what_cannot_be_made_is_refused(spec: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        tasks.parse(spec)


@pytest.mark.parametrize("spec", ["recall-fuzzy,length=27", "recall-fuzzy,vocabulary=8"])
def test_the_smallest_sizes_that_are_advised_will_do(spec: str) -> None:
    assert tasks.parse(spec).batch(seed=0, index=0, size=64).mask.any(1).all()


@given(st.integers(1, 6), st.data())
def test_a_motif_is_the_one_that_stands_there_in_its_alphabet(n_tokens: int, data: st.DataObject) -> None:
    length = data.draw(st.integers(1, n_tokens))
    every = list(permutations(range(n_tokens), length))
    found = recall_fuzzy._motifs(torch.arange(len(every))[None], n_tokens, length)
    assert found[0].tolist() == [list(motif) for motif in every]


def test_a_vocabulary_of_any_size_is_drawn_from() -> None:
    task = tasks.parse("recall-fuzzy,vocabulary=2000")
    assert task.batch(seed=0, index=0, size=64).inputs.max() > 1500
    with pytest.raises(UserError, match="keys of 30 different tokens of 50 are more than can be counted"):
        tasks.parse("recall-fuzzy,vocabulary=100,longest=30,length=300")
