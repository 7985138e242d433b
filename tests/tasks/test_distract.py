from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.tasks.base import Task
from headstock.tasks.distract import Distract
from headstock.tasks.words import FACTS, NOISE, PEOPLE
from tests.tasks.reading import marked, read

Told = dict[str, dict[str, str]]


@st.composite
def some_tasks(draw: st.DrawFn) -> Distract:
    irrelevant, beyond, facts = draw(st.integers(0, 5)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    return Distract(
        irrelevant=irrelevant,
        beyond=beyond,
        facts=facts,
        questions=draw(st.integers(1, facts)),
        subjects=irrelevant * beyond + draw(st.integers(1, 4)),
        attributes=draw(st.integers(facts, 6)),
        values=draw(st.integers(2, 8)),
        filler=draw(st.integers(1, 4)),
    )


def told(task: Distract, words: list[str]) -> tuple[Told, int]:
    """Read the passages: what each subject is said to be, and how many passages there are; noise is passed over."""
    by_subject: Told = {}
    size, passages = 3 * task.facts + task.filler, 0
    for first in range(0, task.places * size, size):
        within = [word for word in words[first : first + size] if word not in NOISE]
        attributes, subjects, values = within[0::3], within[1::3], within[2::3]
        if within:
            assert len(within) == 3 * task.facts
            assert set(subjects) == {subjects[0]}
            assert len(set(attributes)) == task.facts
            assert subjects[0] not in by_subject  # one passage a subject
            by_subject[subjects[0]] = dict(zip(attributes, values, strict=True))
            assert all(value in FACTS[attribute][: task.values] for attribute, value in by_subject[subjects[0]].items())
            passages += 1
    return by_subject, passages


def check(task: Distract, words: list[str], answers: dict[int, str]) -> int:
    """Hold a row to what is said of it; give how many irrelevant passages it has."""
    by_subject, passages = told(task, words)
    begin = task.places * (3 * task.facts + task.filler)
    questions = [words[first : first + 4] for first in range(begin, len(words), 4)]
    assert len(questions) == task.questions
    assert len({attribute for _, attribute, *_ in questions}) == task.questions
    subject = questions[0][2]
    for turn, (mark, attribute, asked, *answer) in enumerate(questions):
        assert (asked, mark) == (subject, "?")
        assert answers[begin + 4 * turn + 2] == by_subject[subject][attribute]
        assert answer in ([], [by_subject[subject][attribute]])
    assert len(answers) == task.questions
    return passages - 1


@given(some_tasks(), st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_every_question_is_answered_by_the_passage_on_its_subject(task: Distract, index: int) -> None:
    for words, answers in read(task, [task.batch(seed=1, index=index, size=6)]):
        assert 0 <= check(task, words, answers) <= task.irrelevant


def test_passages_are_as_many_as_are_drawn_and_the_relevant_one_stands_anywhere() -> None:
    task = tasks.get("distract", irrelevant=4, beyond=1)
    assert isinstance(task, Distract)
    counts, places = Counter[int](), Counter[int]()
    for words, answers in read(task, [task.batch(seed=0, index=0, size=3000)]):
        counts[check(task, words, answers)] += 1
        places[words.index(words[-1]) // 6] += 1
    for counted in (counts, places):
        assert set(counted) == set(range(5))
        assert min(counted.values()) > 0.8 * max(counted.values())


def test_passages_share_attributes_and_values_with_the_relevant_one() -> None:
    task = tasks.get("distract")
    assert isinstance(task, Distract)
    same = []
    for words, _ in read(task, task.evaluation()):
        by_subject, _ = told(task, words)
        attribute, subject = words[-2:]
        others = [facts for name, facts in by_subject.items() if name != subject]
        assert all(attribute in facts for facts in others)
        same += [facts[attribute] == by_subject[subject][attribute] for facts in others]
    assert abs(sum(same) / len(same) - 1 / task.values) < 0.04


def probed(task: Task) -> list[int]:
    assert isinstance(task, Distract)
    counts = []
    for probe in task.probes():
        counts.append(int(probe.at["irrelevant"]))
        for words, answers in read(task, probe.batches):
            assert check(task, words, answers) == counts[-1]
            assert len(words) == task.context
    return counts


def test_probes_differ_in_the_number_of_irrelevant_passages_alone_and_go_beyond_what_is_trained() -> None:
    assert probed(tasks.get("distract")) == [0, 1, 2, 4]
    assert probed(tasks.get("distract", beyond=2)) == [0, 1, 2, 4, 8]
    assert probed(tasks.get("distract", irrelevant=2, beyond=4)) == [0, 1, 2, 4, 8]
    assert probed(tasks.get("distract", irrelevant=0)) == [0]


@pytest.mark.parametrize("spec", ["distract", "distract,attributes=5,facts=3,questions=2"])
def test_naming_the_commonest_value_of_the_attribute_is_right_as_often_as_the_card_says(spec: str) -> None:
    task = tasks.parse(spec)
    right = []
    for words, answers in read(task, task.evaluation()):
        for place, answer in answers.items():
            values = FACTS[words[place - 1]]
            right.append(max(values, key=lambda value: (words[:place].count(value), -values.index(value))) == answer)
    assert task.card().chance.startswith(f"{sum(right) / len(right):.1%} for the commonest value in the row")


def test_marks_are_the_fact_that_answers_the_others_of_its_subject_other_passages_and_noise() -> None:
    task = tasks.get("distract", facts=2, filler=1)
    assert isinstance(task, Distract)
    for words, query, spans in marked(task):
        by_subject, passages = told(task, words)
        attribute, subject = words[query - 1 : query + 1]
        mine = {name: [words[place] for place in places] for name, places in spans.items()}
        assert mine["answer"] == [attribute, subject, by_subject[subject][attribute]]
        assert [mine["other facts of the subject"]] == [
            [other, subject, value] for other, value in by_subject[subject].items() if other != attribute
        ]
        assert len(mine["irrelevant passages"]) == 7 * (passages - 1)
        assert set(mine["irrelevant passages"]).isdisjoint({subject})
        assert set(mine["noise"]) <= set(NOISE)
        assert sum(map(len, spans.values())) == query - 2  # every place before the question


def test_no_word_is_of_two_kinds() -> None:
    words = [*PEOPLE, *NOISE, *FACTS, *(value for values in FACTS.values() for value in values)]
    assert len(words) == len(set(words))
    task = tasks.get("distract", subjects=64, attributes=6)
    assert len(set(task.token_labels(list(range(task.vocab_size))))) == task.vocab_size


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("distract,attributes=7", "only 6 attributes have names: choose attributes=6 or fewer, not 7"),
        ("distract,values=9", "only 8 values have names: choose values=8 or fewer, not 9"),
        ("distract,facts=3", "3 facts of a passage are of as many attributes, not 2: choose facts=2 or fewer"),
        ("distract,questions=3", "a passage of 2 facts cannot answer 3 different questions: choose questions=2 or"),
        ("distract,subjects=4", "4 irrelevant passages and a relevant one need as many subjects, not 4: choose subje"),
        ("distract,beyond=4", "16 irrelevant passages and a relevant one need as many subjects, not 9: choose subj"),
    ],
)
def test_what_cannot_be_made_is_refused(spec: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        tasks.parse(spec)
