import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.model.transformer import build
from headstock.programs.handmade import aab as handmade
from headstock.tasks.aab import Aab
from headstock.training.batch import Batch
from headstock.training.config import TrainingConfig
from headstock.training.evaluation import score
from headstock.training.loop import train

TASK = Aab(length=12)


def texts(task: Aab, batch: Batch) -> list[str]:
    return [
        task.decode([*inputs, targets[-1]])
        for inputs, targets in zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True)
    ]


def can_be_known(before: str) -> bool:
    """Whether (aab)*, entered anywhere, can go on in one way only after these tokens."""
    language = "aab" * 20
    return len({language[start + len(before)] for start in range(3) if language[start:].startswith(before)}) == 1


@given(st.integers(3, 20), st.integers(0, 9))
@settings(max_examples=25, deadline=None)
def test_trained_on_is_whatever_the_language_leaves_no_choice_of(length: int, index: int) -> None:
    task = Aab(length=length)
    batch = task.batch(seed=0, index=index, size=5)
    for row, text in enumerate(texts(task, batch)):
        assert text in "aab" * 20
        assert len(text) == length + 1
        assert batch.mask[row].tolist() == [can_be_known(text[: place + 1]) for place in range(length)]


@given(st.integers(3, 20))
@settings(max_examples=10, deadline=None)
def test_what_is_scored_stands_beyond_every_place_that_is_trained_on(length: int) -> None:
    task = Aab(length=length)
    (held_out,) = task.evaluation()
    assert len(set(texts(task, held_out))) == 3
    assert all(text in "aab" * 20 for text in texts(task, held_out))
    assert held_out.mask.tolist() == [[False] * length + [True] * length] * 3
    assert task.batch(seed=3, index=5, size=64).inputs.shape == (64, length)
    for probe, longer in zip(task.probes(), (2, 4), strict=True):
        assert probe.at == {"length": longer * length}
        for batch in probe.batches:
            assert batch.inputs.shape[1] == longer * length <= task.context
            assert batch.mask[:, : longer * length // 2].sum() == 0
            assert batch.mask[:, longer * length // 2 :].all()


def test_rows_begin_at_all_three_places_and_are_drawn_anew() -> None:
    first, second = (TASK.batch(seed=0, index=index, size=32) for index in (0, 1))
    assert {text[:3] for text in texts(TASK, first)} == {"aab", "aba", "baa"}
    assert not torch.equal(first.inputs, second.inputs)
    assert torch.equal(first.inputs, Aab(length=12).batch(seed=0, index=0, size=32).inputs)
    longer = TASK.batch(seed=0, index=0, size=4, split="held-out")
    assert longer.inputs.shape == (4, 24)


def test_evaluation_is_the_same_however_it_is_cut() -> None:
    for split in ("train", "held-out"):
        cut = list(TASK.evaluation(split, size=2))  # type: ignore[arg-type]
        (whole,) = TASK.evaluation(split)  # type: ignore[arg-type]
        assert torch.equal(torch.cat([batch.inputs for batch in cut]), whole.inputs)
        assert torch.equal(torch.cat([batch.mask for batch in cut]), whole.mask)
        assert len(set(texts(TASK, whole))) == 3


def test_the_model_made_by_hand_is_exact_wherever_it_can_see() -> None:
    model = handmade.model()
    short = tasks.get("aab", length=5)
    assert score(model, short.evaluation("train"))["accuracy"] == 1.0
    assert short.token_labels([0, 1]) == ["a", "b"]
    for batch in short.evaluation():  # twice its context: it sees the last five tokens
        for row, place in batch.mask.nonzero().tolist():
            window = batch.inputs[row : row + 1, max(0, place - 4) : place + 1]
            assert int(model(window)[0, -1].argmax()) == int(batch.targets[row, place])


def test_a_context_of_its_own_makes_it_exact_on_held_out_rows() -> None:
    model = handmade.model(TASK.context)
    assert score(model, TASK.evaluation())["accuracy"] == 1.0
    assert [score(model, probe.batches)["accuracy"] for probe in TASK.probes()] == [1.0, 1.0]


def test_guessing_is_what_the_card_says() -> None:
    (held_out,) = TASK.evaluation()
    pairs = [
        (task_text[place], task_text[place + 1])
        for row, task_text in enumerate(texts(TASK, held_out))
        for place in held_out.mask[row].nonzero()[:, 0].tolist()
    ]
    always_a = sum(following == "a" for _, following in pairs) / len(pairs)
    by_last = sum(
        max(pairs.count((token, following)) for following in "ab") for token in "ab"
    ) / len(pairs)  # fmt: skip
    assert always_a == by_last
    assert TASK.card().chance.startswith(f"{always_a:.1%} for saying a always; the last token alone tells no more")


def test_the_example_shows_what_is_scored() -> None:
    words = TASK.card().example.split()
    assert len(words) == 25
    assert [word.startswith("[") for word in words] == [False] * 13 + [True] * 12
    ids, position = TASK.telling_example()
    assert TASK.decode(ids[position - 1 : position + 2]) == "aab"
    assert position >= 12


def test_marks_are_the_two_tokens_that_tell() -> None:
    marks = TASK.marks()
    assert marks.queries.tolist() == [23] * 3
    assert marks.spans["answer"].nonzero().tolist() == [[row, place] for row in range(3) for place in (22, 23)]
    assert torch.equal(marks.spans["noise"], ~marks.spans["answer"])


def test_a_row_too_short_to_hold_the_word_is_refused() -> None:
    with pytest.raises(UserError, match="length must be a whole number of at least 3: got '2'"):
        tasks.parse("aab,length=2")


def test_another_length_is_another_task() -> None:
    assert TASK.content_hash == Aab(length=12).content_hash != Aab(length=13).content_hash


@pytest.mark.full
def test_learned_positions_know_nothing_beyond_and_alibi_does() -> None:
    right = {}
    for variant in ("softmax+alibi", "softmax+learned"):
        model = build(f"{variant},n_layers=1,d_model=32,feedforward=none", vocab_size=2, context=TASK.context)
        train(model, TASK, TrainingConfig(steps=200, evaluate_every=200, lr=1e-2))
        right[variant] = score(model, TASK.evaluation())["accuracy"]
    assert right["softmax+alibi"] == 1.0
    assert right["softmax+learned"] < 1.0
