from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.tasks.guessing import counts_to_here
from headstock.tasks.recall_noisy import NoisyRecall
from tests.tasks.reading import marked, read


def answered(words: list[str]) -> dict[int, str]:
    """Read a row, two words at a time: what is asked is the value of every key that was there before."""
    values: dict[str, str] = {}
    answers = {}
    for place in range(0, len(words), 2):
        key, value = words[place : place + 2]
        if key[0] == "x":
            assert value[0] == "x"
            continue
        assert (key[0], value[0]) == ("k", "v")
        if key in values:
            answers[place] = values[key]
        assert values.setdefault(key, value) == value
    return answers


@given(st.integers(4, 30), st.integers(8, 40), st.sampled_from([0.1, 0.5, 0.9]), st.integers(1, 20), st.integers(0, 5))
@settings(max_examples=25)
def test_the_value_of_every_key_shown_before_is_asked(
    pairs: int, vocabulary: int, noise: float, noise_vocabulary: int, index: int
) -> None:
    task = NoisyRecall(length=2 * pairs, vocabulary=vocabulary, noise=noise, noise_vocabulary=noise_vocabulary)
    for words, answers in read(task, [task.batch(seed=1, index=index, size=8)]):
        assert len(words) == task.context
        assert answers == answered(words)
        assert max(answers) == len(words) - 2  # the last pair asks, always


def test_keys_and_values_and_noise_are_drawn_evenly_and_mean_something_else_in_each_row() -> None:
    task = tasks.get("recall-noisy", noise=0.3)
    counts: Counter[str] = Counter()
    belonging = set()
    for words, _ in read(task, [task.batch(seed=0, index=0, size=400)]):
        counts.update(words[:-2])
        belonging |= {(words[place], words[place + 1]) for place in range(0, 64, 2) if words[place][0] == "k"}
    assert len(belonging) == 64
    for letter, n in (("k", 8), ("v", 8), ("x", 16)):
        of_letter = [count for word, count in counts.items() if word[0] == letter]
        assert len(of_letter) == n
        assert max(of_letter) < 1.4 * min(of_letter)


def test_the_last_question_is_any_of_the_keys_shown_however_often_each_was() -> None:
    task = NoisyRecall(length=12, vocabulary=4, noise=0.1, noise_vocabulary=16)
    rare = []
    for words, _ in read(task, [task.batch(seed=0, index=0, size=3000)]):
        counts = Counter(word for word in words[:-2] if word[0] == "k")
        if len(counts) == 2 and len(set(counts.values())) == 2:
            rare.append(words[-2] == min(counts, key=lambda word: counts[word]))
    assert len(rare) > 1000
    assert abs(sum(rare) / len(rare) - 0.5) < 0.05


def test_probes_differ_in_noise_alone() -> None:
    task = tasks.get("recall-noisy")
    shares = {}
    for probe in task.probes():
        rows = list(read(task, probe.batches))
        assert all(len(words) == 64 and answers == answered(words) for words, answers in rows)
        noise = [word[0] == "x" for words, _ in rows for word in words]
        shares[probe.at["noise"]] = sum(noise) / len(noise)
    assert list(shares) == [0.0, 0.2, 0.4, 0.6, 0.8]
    assert all(abs(share - float(noise) * 30 / 32) < 0.03 for noise, share in shares.items())  # two are never noise


def test_a_bag_of_words_is_right_as_often_as_the_card_says() -> None:
    task = tasks.get("recall-noisy")
    often, as_often = [], []
    for words, answers in read(task, task.evaluation()):
        for place, answer in answers.items():
            counts = Counter(word for word in words[:place] if word[0] == "v")
            often.append(min(counts, key=lambda word: (-counts[word], word)) == answer)
            times = words[:place].count(words[place])
            nearest = min(counts, key=lambda word: (abs(counts[word] - times), -counts[word], word))
            as_often.append(nearest == answer)
    assert task.card().chance.startswith(
        f"{sum(often) / len(often):.1%} for the value token that the row has shown most often, "
        f"{sum(as_often) / len(as_often):.1%} for the one that it has shown as often"
    )


def test_marks_are_of_the_first_question() -> None:
    task = tasks.get("recall-noisy")
    for (words, query, spans), (_, answers) in zip(marked(task), read(task, task.evaluation()), strict=True):
        assert query == min(answers)
        assert [words[place] for place in spans["answer"]] == [words[query], answers[query]]
        assert all(words[place][0] == "x" for place in spans["noise"])
        assert all(words[place][0] != "x" for place in spans["other pairs"])
        assert sorted(spans["answer"] + spans["other pairs"] + spans["noise"]) == list(range(query))


def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(UserError, match="a row of pairs has an even length, not 33: choose 34"):
        tasks.parse("recall-noisy,length=33")
    with pytest.raises(UserError, match=r"noise must be a share from 0 to 0\.9"):
        tasks.parse("recall-noisy,noise=1")


def test_there_may_be_no_noise() -> None:
    task = tasks.get("recall-noisy", noise=0)
    assert all(word[0] != "x" for words, _ in read(task, task.evaluation()) for word in words)


def test_guessing_counts_no_more_words_than_a_row_has_however_many_there_are() -> None:
    task = tasks.get("recall-noisy")
    counts = counts_to_here(task.different_rows(5, "held-out", "few"), range(1_000_000))
    assert counts.counts_bqv.shape == (5, 64, 64)
    assert (counts.counts_bqv[:, -1].sum(1) == 64).all()
