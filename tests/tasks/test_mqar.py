from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.model.transformer import build
from headstock.tasks.mqar import Mqar
from headstock.training.config import TrainingConfig
from headstock.training.loop import train
from tests.tasks.reading import marked, read


@st.composite
def some_tasks(draw: st.DrawFn, fillers: tuple[str, ...] = ("random", "none")) -> Mqar:
    pairs = draw(st.integers(1, 6))
    return Mqar(
        length=4 * pairs + 2 * draw(st.integers(0, 6)),
        vocabulary=draw(st.integers(2 * pairs + 20, 90)),
        pairs=pairs,
        power=draw(st.sampled_from([0.01, 0.5, 1.0])),
        fillers=draw(st.sampled_from(fillers)),
    )


def told(words: list[str], pairs: int) -> dict[str, str]:
    return dict(zip(words[0 : 2 * pairs : 2], words[1 : 2 * pairs : 2], strict=True))


@given(some_tasks(), st.integers(0, 5))
@settings(max_examples=25)
def test_every_key_is_asked_for_once_and_answered_by_its_pair(task: Mqar, index: int) -> None:
    for words, answers in read(task, [task.batch(seed=1, index=index, size=6)]):
        values = told(words, task.pairs)
        assert len(words) == task.context
        assert len(values) == len(set(values.values())) == task.pairs
        assert all(key[0] == "k" and value[0] == "v" for key, value in values.items())
        assert sorted(words[place] for place in answers) == sorted(values)
        assert all(place % 2 == 0 and place >= 2 * task.pairs for place in answers)
        assert all(answer == values[words[place]] for place, answer in answers.items())


@given(some_tasks(("none",)), st.integers(0, 5))
@settings(max_examples=25)
def test_with_blanks_what_is_asked_is_every_key_seen_before_and_nothing_else_is_told(task: Mqar, index: int) -> None:
    for words, answers in read(task, [task.batch(seed=1, index=index, size=6)]):
        later = range(2 * task.pairs, task.context)
        assert set(answers) == {place for place in later if words[place] in told(words, task.pairs)}
        assert all(words[place] == "·" for place in later if place not in answers)


def test_random_fillers_are_any_token_keys_and_values_of_the_row_included() -> None:
    task = Mqar(length=64, vocabulary=20, pairs=4, power=0.01, fillers="random")
    fillers: Counter[str] = Counter()
    for words, answers in read(task, [task.batch(seed=0, index=0, size=500)]):
        fillers.update(word for place, word in enumerate(words) if place >= 8 and place not in answers)
    assert len(fillers) == 20
    assert max(fillers.values()) < 1.2 * min(fillers.values())


@pytest.mark.parametrize("power", [0.01, 0.5, 1.0])
def test_distances_follow_the_power_law_without_repetition(power: float) -> None:
    task = Mqar(length=16, vocabulary=60, pairs=2, power=power, fillers="none")
    counts: Counter[tuple[int, ...]] = Counter()
    for words, answers in read(task, [task.batch(seed=0, index=index, size=2000) for index in range(4)]):
        at = {words[place]: (place - 4) // 2 for place in answers}
        counts[at[words[0]], at[words[2]]] += 1
    chances = [(gap + 1) ** (power - 1) for gap in range(6)]
    for first in range(6):
        for second in range(6):
            expected = 0.0
            if first != second:
                expected = chances[first] / sum(chances) * chances[second] / (sum(chances) - chances[first])
            assert abs(counts[first, second] / 8000 - expected) < 0.015


def test_naming_one_of_the_values_is_right_as_often_as_the_card_says() -> None:
    for pairs in (4, 16):
        task = tasks.get("mqar", pairs=pairs)
        right = [answer == words[1] for words, answers in read(task, task.evaluation()) for answer in answers.values()]
        assert task.card().chance.startswith(f"{sum(right) / len(right):.1%} for one of the row's {pairs} values")


def test_marks_are_of_the_first_question() -> None:
    for fillers in ("random", "none"):
        task = tasks.get("mqar", fillers=fillers)
        for (words, query, spans), (_, answers) in zip(marked(task), read(task, task.evaluation()), strict=True):
            assert query == min(answers)
            assert [words[place] for place in spans["answer"]] == [words[query], answers[query]]
            assert sorted(spans["answer"] + spans["other pairs"]) == list(range(8))
            assert spans["noise"] == list(range(8, query))


def test_probes_differ_in_the_number_of_pairs_alone() -> None:
    task = tasks.get("mqar", length=32)
    at = []
    for probe in task.probes():
        at.append(probe.at)
        pairs = int(probe.at["pairs"])
        for words, answers in read(task, probe.batches):
            assert len(words) == task.context
            assert {words[place]: answer for place, answer in answers.items()} == told(words, pairs)
    assert at == [{"pairs": 1}, {"pairs": 2}, {"pairs": 4}, {"pairs": 8}]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("mqar,length=15", "4 pairs and a question for each need an even length of 16 or more, not 15"),
        ("mqar,length=14", "of 16 or more, not 14: choose a longer row or fewer pairs"),
        ("mqar,length=17", "an even length of 16 or more, not 17"),
        ("mqar,vocabulary=8", "a vocabulary of 8 has 3 keys, too few for 4 pairs: choose 10 or more"),
        ("mqar,fillers=some", "fillers must be random or none: got 'some'"),
        ("mqar,power=0", "power must be a share above 0 and at most 1"),
    ],
)
def test_what_cannot_be_made_is_refused(spec: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        tasks.parse(spec)


def test_the_smallest_vocabulary_that_is_advised_will_do() -> None:
    assert tasks.get("mqar", vocabulary=10).batch(seed=0, index=0, size=4).inputs.max() < 10


@pytest.mark.full
def test_two_blocks_recall_what_one_block_cannot() -> None:
    task = tasks.get("mqar")
    right = {}
    for n_layers in (1, 2):
        model = build("softmax,n_heads=2", vocab_size=256, context=64, n_layers=n_layers)
        progress = train(model, task, TrainingConfig(steps=400, batch_size=128, lr=3e-3, evaluate_every=400))
        right[n_layers] = progress.curve[-1]["accuracy"]
    assert right[1] < 0.35 < 0.99 <= right[2]
