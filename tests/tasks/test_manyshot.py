import math
from collections import Counter
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.model.transformer import build
from headstock.tasks.drawn import Rows, is_held_out
from headstock.tasks.manyshot import ORDERS, ManyShot
from headstock.training.config import TrainingConfig
from headstock.training.loop import train

TASK = ManyShot(shots=12, classes=3, item=2, noise=0.2, features=20, labels=5)
CLEAR = ManyShot(shots=12, classes=3, item=2, noise=0, features=20, labels=5)
Shot = tuple[str, ...]


@st.composite
def made(draw: st.DrawFn) -> ManyShot:
    classes, item = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    return ManyShot(
        shots=classes * draw(st.integers(1, 4)),
        classes=classes,
        item=item,
        noise=draw(st.sampled_from([0.0, 0.2, 0.6])),
        features=classes * item + draw(st.integers(14, 20)),
        labels=classes + draw(st.integers(0, 3)),
    )


def read(task: ManyShot, rows: Rows, row: int) -> tuple[list[Shot], Shot]:
    """Give a row's shots and its question as a person reads them, the label last."""
    words = task.decode([*rows.inputs[row].tolist(), int(rows.targets[row, -1])]).split()
    items: list[Shot] = []
    begun: list[str] = []
    for word in words:
        begun.append(word)
        if word.startswith("y"):
            items.append(tuple(begun))
            begun = []
    assert not begun
    return items[:-1], items[-1]


def shots_of(task: ManyShot, rows: Rows) -> list[Counter[Shot]]:
    return [Counter(read(task, rows, row)[0]) for row in range(len(rows))]


@given(made(), st.integers(0, 5))
@settings(max_examples=15, deadline=None)
def test_trained_on_is_every_label_that_the_row_has_shown_and_nothing_else(task: ManyShot, index: int) -> None:
    batch = task.batch(seed=1, index=index, size=4)
    assert batch.inputs.shape == (4, task.context)
    for inputs, targets, mask in zip(batch.inputs.tolist(), batch.targets.tolist(), batch.mask.tolist(), strict=True):
        assert inputs[1:] == targets[:-1]
        seen, said = set(), task.token_labels(targets)
        for place, label in enumerate(said):
            assert mask[place] == (label.startswith("y") and label in seen)
            seen.add(label)


@given(made())
@settings(max_examples=8, deadline=None)
def test_every_class_is_shown_as_often_where_it_is_scored_and_has_a_label_of_its_own(task: ManyShot) -> None:
    rows = task.different_rows(6, "train", 0, 0)
    for row in range(6):
        shots, question = read(task, rows, row)
        counts = Counter(shot[-1] for shot in shots)
        assert set(counts.values()) == {task.shots // task.classes}
        assert len(counts) == task.classes
        assert question[-1] in counts
        assert rows.mask[row].nonzero().tolist() == [[task.context - 1]]
        assert {len(shot) for shot in (*shots, question)} == {task.item + 1}


def test_counting_labels_foretells_none_in_training() -> None:
    rows = TASK.split_rows(3000, "train", 0, 0)
    labels = rows.inputs[:, 2::3]
    like_the_last_b = (labels[:, :-1] == labels[:, -1:]).sum(1).double()
    assert float(like_the_last_b.mean()) == pytest.approx(11 / 3, abs=0.15)
    assert float(like_the_last_b.var()) == pytest.approx(11 * (1 / 3) * (2 / 3), rel=0.15)  # of even sets 3 and 0


def test_without_noise_the_items_of_a_class_are_alike_and_share_nothing_with_others() -> None:
    rows = CLEAR.split_rows(20, "train", 0, 0)
    for row in range(20):
        shots, question = read(CLEAR, rows, row)
        kinds = sorted({*shots, question})
        assert len(kinds) <= 3
        assert len({feature for *item, _ in kinds for feature in item}) == 2 * len(kinds)
    assert CLEAR.best == 1.0
    assert CLEAR.solved_at == 0.99


def test_noise_is_the_share_of_features_that_may_be_any() -> None:
    noisy = ManyShot(shots=40, classes=2, item=3, noise=0.3, features=20, labels=2)
    rows = noisy.different_rows(100, "train", 0, 0)
    odd = total = 0
    for row in range(100):
        shots, _ = read(noisy, rows, row)
        for label in {shot[-1] for shot in shots}:
            for place in range(3):
                shown = Counter(shot[place] for shot in shots if shot[-1] == label)
                odd += 20 - shown.most_common(1)[0][1]
                total += 20
    assert odd / total == pytest.approx(0.3 * 19 / 20, abs=0.02)


@given(made(), st.sampled_from(ORDERS), st.integers(0, 9))
@settings(max_examples=15, deadline=None)
def test_an_order_changes_nothing_but_the_order_and_is_what_it_says(task: ManyShot, order: str, turn: int) -> None:
    rows = task.different_rows(5, "held-out", "test")
    turned = task.ordered(rows, order, turn)  # type: ignore[arg-type]
    assert torch.equal(task.identity(turned), task.identity(rows))
    for row in range(len(rows)):
        (before, question), (after, same) = read(task, rows, row), read(task, turned, row)
        assert Counter(before) == Counter(after)
        assert question == same
        labels = [shot[-1] for shot in after]
        first = labels[:: task.shots // task.classes] if order == "grouped" else labels[: task.classes]
        if order == "grouped":
            assert labels == [label for label in first for _ in range(task.shots // task.classes)]
        if order == "alternating":
            assert labels == first * (task.shots // task.classes)
        assert turned.mask[row].tolist() == [False] * (task.context - 1) + [True]


def test_orders_of_a_kind_differ_in_classes_and_within_them() -> None:
    rows = TASK.different_rows(1, "held-out", "test")
    for order in ORDERS:
        turns = [read(TASK, TASK.ordered(rows, order, turn), 0)[0] for turn in range(40)]
        assert len({tuple(shots) for shots in turns}) > 30
        assert len({shots[0][-1] for shots in turns}) == 3


def test_spans_say_which_shots_are_of_the_class_that_is_asked_for() -> None:
    marks = TASK.marks()
    assert marks is not None
    for row, inputs in enumerate(marks.inputs.tolist()):
        shots, question = read(TASK, TASK._scored["held-out"], row)
        told = [
            ("answer" if is_label else "items of its class") if shot[-1] == question[-1]
            else ("other labels" if is_label else "other items")
            for shot in shots
            for is_label in (False, False, True)
        ]  # fmt: skip
        for name, span in marks.spans.items():
            assert span[row].tolist() == [place < len(told) and told[place] == name for place in range(len(inputs))]
        assert int(marks.queries[row]) == len(inputs) - 1


def test_no_set_of_shots_that_is_held_out_is_trained_on_in_any_order() -> None:
    few = ManyShot(shots=2, classes=2, item=1, noise=0, features=8, labels=2)
    held_out = {frozenset(shots) for shots in shots_of(few, few._scored["held-out"])}
    trained = {
        frozenset(shots)
        for index in range(40)
        for shots in shots_of(few, few.split_rows(32, "train", 0, index, even=True))
    }
    assert len(held_out) > 2
    assert len(trained) > 40  # of 56 in all
    assert not held_out & trained


def test_probes_of_one_number_of_shots_are_the_same_shots_in_each_order() -> None:
    probes = list(TASK.probes())
    assert [(probe.at["shots"], probe.at["order"]) for probe in probes] == [
        (shots, order) for shots in (3, 6, 12) for order in ORDERS
    ]
    for first in range(0, 9, 3):
        said = []
        for probe in probes[first : first + 3]:
            parts = list(probe.batches)
            rows = Rows(*(torch.cat([getattr(part, name) for part in parts]) for name in ("inputs", "targets", "mask")))
            assert len(rows) == 256
            assert is_held_out(TASK.identity(rows)).all()
            assert rows.inputs.shape[1] == 3 * int(probe.at["shots"]) + 2
            assert torch.equal(rows.mask.sum(1), torch.ones(256, dtype=torch.int64))
            said.append([(shots, rows.inputs[row, -2:].tolist()) for row, shots in enumerate(shots_of(TASK, rows))])
        assert said[0] == said[1] == said[2]


def test_the_mark_for_solved_is_naive_bayes() -> None:
    rows = TASK.different_rows(30, "held-out", "test")
    noise, features = 0.2, [f"f{number:02}" for number in range(20)]

    def shows(shown: str, prototype: str) -> float:
        return (1 - noise) * (shown == prototype) + noise / 20

    for row, said in enumerate(TASK.token_labels(TASK.read(rows).tolist())):
        shots, question = read(TASK, rows, row)
        likely = {}
        for label in {shot[-1] for shot in shots}:
            likely[label] = 1.0
            for place in range(2):
                weights = [
                    math.prod(shows(shot[place], feature) for shot in shots if shot[-1] == label)
                    for feature in features
                ]
                likely[label] *= sum(
                    weight * shows(question[place], feature) for weight, feature in zip(weights, features, strict=True)
                ) / sum(weights)
        assert likely[said] == pytest.approx(max(likely.values()))


def test_the_card_says_what_guessing_and_reading_get() -> None:
    rows = TASK._scored["held-out"]
    last = sum(shots[-1][-1] == question[-1] for shots, question in (read(TASK, rows, row) for row in range(256))) / 256
    card = TASK.card()
    assert card.chance.startswith("33.3% for one of the row's 3 labels")
    assert f"that of the last shot is right in {last:.1%}" in card.chance
    assert last == pytest.approx(1 / 3, abs=0.1)
    right = float((TASK.read(rows) == rows.targets[:, -1]).double().mean())
    assert 0.9 < right == TASK.best < 1
    assert f"{right:.1%}, for noise hides some" in card.solved


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("shots=10", "10 shots cannot be as many of each of 4 classes: choose a multiple of 4, such as shots=8"),
        ("shots=1", "such as shots=4"),
        ("features=7,item=2", "4 classes of 2 features each, none shared, need 8 features, not 7: choose more"),
        ("labels=3", "4 classes need 4 labels or more, not 3: choose labels=4"),
        ("noise=1", "noise must be a share from 0 to 0.9: got '1'"),
        ("noise=-0.1", "noise must be a share from 0 to 0.9"),
        ("noise=0.9", "naive Bayes gets .* by the shots, not clearly above the 25.0% of guessing: choose less noise"),
    ],
)
def test_what_cannot_be_is_refused(spec: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        tasks.parse(f"manyshot,{spec}")


@pytest.mark.full
def test_two_blocks_learn_it_and_a_bag_does_not() -> None:
    task = tasks.get("manyshot", shots=16, classes=4, item=1, noise=0, features=16, labels=4)
    right = {}
    for variant in ("softmax,init=torch", "uniform,n_layers=1,init=torch"):
        model = build(variant, vocab_size=task.vocab_size, context=task.context)
        right[variant] = train(model, task, TrainingConfig(steps=1000, evaluate_every=1000)).curve[-1]["accuracy"]
    assert right["uniform,n_layers=1,init=torch"] < 0.5 < 0.95 < right["softmax,init=torch"]


def test_an_example_is_the_first_held_out_row() -> None:
    example = TASK.card().example.split()
    assert sum(word.startswith("[") for word in example) == 1
    assert example[-1].startswith("[y")
    assert all(word[0] in "fy[" for word in example)
    assert not any(one.startswith("y") and other.startswith("y") for one, other in pairwise(example))
