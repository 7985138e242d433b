from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.model.transformer import build
from headstock.tasks.needle import Needle
from headstock.training.config import TrainingConfig
from headstock.training.loop import train
from tests.tasks.reading import marked, read


@st.composite
def some_tasks(draw: st.DrawFn) -> Needle:
    needles = draw(st.integers(1, 5))
    return Needle(
        length=6 * needles + draw(st.integers(0, 12)),
        needles=needles,
        queries=draw(st.integers(1, needles)),
        cities=needles + draw(st.integers(1, 5)),
        numbers=needles + draw(st.integers(3, 20)),
        noise=draw(st.integers(4, 40)),
    )


def told(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Read the text before the questions: the number of each city, and the words that are in no sentence."""
    numbers, noise, place = {}, [], 0
    while place < len(words):
        if place + 1 < len(words) and words[place + 1] == "is":
            city, number = words[place], words[place + 2]
            assert city not in numbers
            numbers[city] = number
            place += 3
        else:
            noise.append(words[place])
            place += 1
    assert len(set(numbers.values())) == len(numbers)
    return numbers, noise


def check(task: Needle, words: list[str], answers: dict[int, str]) -> tuple[int, int]:
    """Hold a row to what is said of it, all but how many questions count; give its length and number of needles."""
    length = words.index("?")
    numbers, noise = told(words[:length])
    cities, values = words[length + 1 :: 3][: task.queries], words[length + 2 :: 3][: task.queries]
    assert words[length::3][: task.queries] == ["?"] * task.queries
    assert len(set(cities)) == task.queries
    assert values[: task.queries - 1] == [numbers[city] for city in cities[: task.queries - 1]]
    asked = {length + 1 + 3 * turn: numbers[city] for turn, city in enumerate(cities)}
    assert answers.items() <= asked.items()
    end = length + 3 * task.queries - 1
    if end < len(words):  # a shorter row
        assert words[end] == numbers[cities[-1]]
        assert set(words[end + 1 :]) <= {"·"}
    names = {*numbers, *numbers.values(), "is", "?", "·"}
    assert not names & set(noise)
    return length, len(numbers)


@given(some_tasks(), st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_every_question_is_answered_by_the_one_sentence_on_its_city(task: Needle, index: int) -> None:
    for words, answers in read(task, [task.batch(seed=1, index=index, size=6)]):
        length, count = check(task, words, answers)
        assert len(answers) == task.queries
        assert task.length // 2 <= length <= task.length
        assert task.queries <= count <= task.needles
    for words, answers in read(task, task.evaluation()):
        length, count = check(task, words, answers)
        assert len(answers) == task.queries
        assert task.length // 2 <= length <= task.length
        assert count == task.needles


def test_every_other_row_is_shorter_by_any_number_and_needles_are_as_many_as_are_drawn() -> None:
    task = tasks.get("needle")
    lengths, counts = Counter[int](), Counter[int]()
    for words, _ in read(task, [task.batch(seed=0, index=0, size=3000)]):
        lengths[words.index("?")] += 1
        counts[words.count("is")] += 1
    assert set(lengths) == set(range(task.length // 2, task.length + 1))
    assert abs(lengths[task.length] - 1500) < 120
    assert min(lengths.values()) > 0.6 * sorted(lengths.values())[-2]
    assert set(counts) == set(range(task.queries, task.needles + 1))
    assert min(counts.values()) > 0.85 * max(counts.values())


def test_a_needle_stands_anywhere() -> None:
    task = Needle(length=12, needles=1, queries=1, cities=4, numbers=20, noise=20)
    begins = Counter[tuple[int, int]]()
    for words, _ in read(task, [task.batch(seed=0, index=0, size=6000)]):
        begins[words.index("?"), words.index("is") - 1] += 1
    for length in range(6, 13):
        here = [begins[length, place] for place in range(length - 2)]
        assert sum(here) == sum(count for (of, _), count in begins.items() if of == length)
        assert min(here) > 0.5 * sum(here) / len(here)


def test_probes_are_at_each_depth_of_each_length_and_score_the_first_question_alone() -> None:
    task = tasks.get("needle", length=40)
    assert isinstance(task, Needle)
    grid = []
    for probe in task.probes():
        grid.append((probe.at["length"], probe.at["depth"]))
        for words, answers in read(task, probe.batches):
            length, count = check(task, words, answers)
            assert (length, count) == (probe.at["length"], task.needles)
            assert len(words) == length + 3 * task.queries - 1 <= task.context
            assert list(answers) == [length + 1]
            before = told(words[: words.index(words[length + 1])])
            units = length - 2 * task.needles
            assert len(before[0]) + len(before[1]) == round(float(probe.at["depth"]) * (units - 1))
    assert grid == [(length, depth) for length in (20, 40, 80) for depth in (0, 0.25, 0.5, 0.75, 1)]
    assert task.context == 80 + 5


@pytest.mark.parametrize("spec", ["needle", "needle,needles=1,queries=1", "needle,queries=4"])
def test_naming_a_number_that_is_not_yet_named_is_right_as_often_as_the_card_says(spec: str) -> None:
    task = tasks.parse(spec)
    chances = []
    for words, answers in read(task, task.evaluation()):
        left = set(told(words[: words.index("?")])[0].values())
        for _, answer in sorted(answers.items()):
            chances.append(1 / len(left))
            left.remove(answer)
    assert task.card().chance.startswith(f"{sum(chances) / len(chances):.1%} for one of the row's")


def test_marks_are_the_city_and_number_that_answer_the_other_sentences_and_the_noise() -> None:
    task = tasks.get("needle")
    for words, query, spans in marked(task):
        length = words.index("?")
        numbers, noise = told(words[:length])
        city = words[query]
        assert query == length + 1
        assert [words[place] for place in spans["answer"]] == [city, numbers[city]]
        others = told([words[place] for place in spans["other needles"]])
        assert others == ({name: number for name, number in numbers.items() if name != city}, [])
        assert [words[place] for place in spans["noise"]] == noise
        assert max(map(max, spans.values())) < length
    rows = task.split_rows(64, "train", 0, 0)  # of which some lack needles
    assert torch.equal(rows.spans["other needles"].sum(1), 3 * (rows.inputs == task.encode("is")[0]).sum(1) - 3)


def test_what_is_shown_is_a_longest_row_up_to_its_last_answer() -> None:
    task = tasks.get("needle")
    ids, position = task.telling_example()
    words = task.token_labels(ids)
    assert position == len(ids) - 2
    assert words.index("?") == 28
    assert words[-1] == told(words[: words.index("?")])[0][words[-2]]
    assert ids[-1] == task.telling_target()
    example = task.card().example.split()
    assert [word.strip("[]") for word in example] == words
    assert [place for place, word in enumerate(example) if word.startswith("[")] == [len(words) - 4, len(words) - 1]


def test_no_word_is_of_two_kinds() -> None:
    task = tasks.get("needle", cities=64, numbers=200, noise=64)
    assert len(set(task.token_labels(list(range(task.vocab_size))))) == task.vocab_size


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            "needle,queries=5",
            "4 needles cannot answer 5 different questions: choose queries=4 or less, or more needles",
        ),
        ("needle,cities=3", "4 needles need as many cities, not 3: choose cities=4 or more"),
        ("needle,numbers=3", "4 needles need as many numbers, not 3: choose numbers=4 or more"),
        ("needle,length=23", "4 needles of 3 tokens must fit into half the length: choose length=24 or more, or fewer"),
        ("needle,noise=0", "noise must be a whole number of at least 1: got '0'"),
    ],
)
def test_what_cannot_be_made_is_refused(spec: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        tasks.parse(spec)


def test_rows_do_not_follow_one_another() -> None:
    task = tasks.get("needle")
    first = task.batch(seed=0, index=0, size=8).inputs
    for seed, index in ((1, 0), (0, 1)):
        assert not torch.equal(first, task.batch(seed=seed, index=index, size=8).inputs)
    assert torch.equal(first, task.batch(seed=0, index=0, size=8).inputs)


@pytest.mark.full
def test_two_blocks_find_what_one_block_of_uniform_cannot() -> None:
    task = tasks.get("needle")
    right = {}
    for variant in ("uniform,n_layers=1", "softmax"):
        model = build(variant, vocab_size=task.vocab_size, context=task.context)
        progress = train(model, task, TrainingConfig(steps=task.steps["quick"], evaluate_every=task.steps["quick"]))
        right[variant] = progress.curve[-1]["accuracy"]
    assert right["uniform,n_layers=1"] < 0.4 < 0.95 < right["softmax"]
