from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.model.transformer import build
from headstock.tasks.addition import Addition
from headstock.tasks.drawn import is_held_out
from headstock.training.batch import Batch
from headstock.training.config import TrainingConfig
from headstock.training.loop import train

TASK = Addition(digits=3, reversed="true")
PLAIN = Addition(digits=3, reversed="false")


def read(task: Addition, batch: Batch) -> list[tuple[str, str, str]]:
    """Give each row's two numbers and its answer as they are written."""
    rows = []
    for inputs, targets in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True):
        assert inputs[1:] == targets[:-1]
        asked, answer = task.decode([*inputs, targets[-1]]).split("=")
        first, second = asked.split("+")
        rows.append((first, second, answer))
    return rows


def carries_of(first: str, second: str) -> int:
    carry = count = 0
    for x, y in zip(reversed(first), reversed(second), strict=True):
        carry = int(int(x) + int(y) + carry >= 10)
        count += carry
    return count


@given(st.integers(1, 6), st.booleans(), st.integers(0, 9))
@settings(max_examples=15, deadline=None)
def test_the_answer_is_the_sum_and_is_all_that_counts(digits: int, backwards: bool, index: int) -> None:
    task = Addition(digits=digits, reversed=str(backwards).lower())
    batch = task.batch(seed=2, index=index, size=6)
    for first, second, answer in read(task, batch):
        assert len(first) == len(second) == digits
        assert answer[:: -1 if backwards else 1] == f"{int(first) + int(second):0{digits + 1}}"
    assert batch.inputs.shape == (6, task.context)
    assert batch.mask.tolist() == [[False] * (2 * digits + 1) + [True] * (digits + 1)] * 6


def test_neither_order_of_a_held_out_sum_is_trained_on() -> None:
    one = Addition(digits=1, reversed="true")
    trained = {
        (first, second)
        for index in range(60)
        for first, second, _ in read(one, one.batch(seed=0, index=index, size=32))
    }
    held_out = {(first, second) for batch in one.evaluation() for first, second, _ in read(one, batch)}
    assert len(held_out) > 2
    assert not trained & {pair for first, second in held_out for pair in ((first, second), (second, first))}
    assert len(trained) + len(held_out | {(y, x) for x, y in held_out}) == 100
    assert len({frozenset(pair) for pair in held_out}) == len(held_out)


@given(st.integers(1, 6), st.integers(0, 6), st.integers(0, 9))
@settings(max_examples=15, deadline=None)
def test_sums_of_so_many_carries_have_so_many(digits: int, carries: int, index: int) -> None:
    task = Addition(digits=digits, reversed="true")
    rows = task.draw(20, "test", index, carries=min(carries, digits))
    assert {carries_of(x, y) for x, y, _ in read(task, rows.batch())} == {min(carries, digits)}


@pytest.mark.parametrize("carries", [0, 1, 2])
def test_every_sum_of_so_many_carries_is_drawn_as_often(carries: int) -> None:
    two = Addition(digits=2, reversed="true")
    counts = Counter((x, y) for x, y, _ in read(two, two.draw(20_000, "test", carries=carries).batch()))
    numbers = [f"{number:02}" for number in range(100)]
    right = {(x, y) for x in numbers for y in numbers if carries_of(x, y) == carries}
    assert set(counts) <= right
    expected = 20_000 / len(right)
    spread = sum((counts[pair] - expected) ** 2 / expected for pair in right)
    assert abs(spread - len(right)) < 5 * (2 * len(right)) ** 0.5  # chi-square


def test_probes_are_by_carries_and_held_out() -> None:
    probes = list(TASK.probes())
    assert [dict(probe.at) for probe in probes] == [{"carries": number} for number in range(4)]
    for probe in probes:
        for batch in probe.batches:
            assert {carries_of(x, y) for x, y, _ in read(TASK, batch)} == {probe.at["carries"]}
            pairs = [sorted((x, y), reverse=True) for x, y, _ in read(TASK, batch)]
            assert is_held_out(torch.tensor([TASK.encode("".join(pair)) for pair in pairs])).all()


@pytest.mark.parametrize("task", [TASK, PLAIN])
def test_guessing_is_the_commonest_digit_of_each_place(task: Addition) -> None:
    trained = [answer for batch in task.evaluation("train") for _, _, answer in read(task, batch)]
    scored = [answer for batch in task.evaluation() for _, _, answer in read(task, batch)]
    guess = [
        min(Counter(place).items(), key=lambda found: (-found[1], found[0]))[0] for place in zip(*trained, strict=True)
    ]
    right = sum(said == digit for answer in scored for said, digit in zip(guess, answer, strict=True))
    assert task.guessing() == right / (4 * len(scored))
    assert task.card().chance.startswith(f"{right / (4 * len(scored)):.1%} for the digit that is commonest")
    assert task.guessing() == pytest.approx((0.5 + 3 * 0.1) / 4, abs=0.03)


def test_marks_are_the_digits_that_the_first_answer_is_of() -> None:
    for task, place in ((TASK, 2), (PLAIN, 0)):
        marks = task.marks()
        assert marks is not None
        assert marks.queries.unique().tolist() == [7]
        assert marks.spans["answer"][0].nonzero()[:, 0].tolist() == [place, place + 4]
        assert marks.spans["signs"][0].nonzero()[:, 0].tolist() == [3, 7]
        assert torch.stack(list(marks.spans.values())).sum(0)[0].tolist() == [1] * 8 + [0] * 3


def test_the_example_is_a_sum_with_its_answer_in_brackets() -> None:
    for task in (TASK, PLAIN):
        words = task.card().example.split()
        assert len(words) == 12
        assert [word.startswith("[") for word in words] == [False] * 8 + [True] * 4
        answer = "".join(word.strip("[]") for word in words[8:])
        numbers = "".join(words[:7]).split("+")
        assert int(answer[:: -1 if task is TASK else 1]) == sum(map(int, numbers))


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("digits=0", "digits must be a whole number of at least 1: got '0'"),
        ("digits=101", "sums of 101 digits are too many to be counted by carries: choose 100 or less"),
        ("reversed=perhaps", "reversed is 'perhaps': choose true or false"),
    ],
)
def test_what_cannot_be_is_refused(spec: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        tasks.parse(f"addition,{spec}")


def test_true_is_read_as_a_word_or_a_value() -> None:
    assert tasks.get("addition", reversed=True) is tasks.get("addition", reversed="true") is tasks.get("addition")
    assert TASK.content_hash != PLAIN.content_hash


@pytest.mark.full
def test_two_blocks_learn_to_add_two_digits() -> None:
    task = tasks.get("addition", digits=2)
    model = build("softmax", vocab_size=task.vocab_size, context=task.context)
    progress = train(model, task, TrainingConfig(steps=2000, evaluate_every=2000))
    assert progress.curve[-1]["accuracy"] > 0.9


def test_the_longest_numbers_still_have_the_carries_that_a_probe_asks_for() -> None:
    task = tasks.get("addition", digits=100)
    x_bn, y_bn = task._with_carries(4, 100, "test")  # type: ignore[attr-defined]
    numbers = [[int("".join(map(str, reversed(row)))) for row in x.tolist()] for x in (x_bn, y_bn)]
    assert all(sum(both) >= 10**100 and all(digits) for both in zip(*numbers, strict=True) for digits in [both])
