import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.tasks.crossing import (
    ADJECTIVES,
    ANIMALS,
    DECIDING,
    MEANING_X,
    NOUNS,
    PLACES,
    Crossing,
    CrossingTask,
    LeakyCrossing,
)
from headstock.training.batch import Split

CROSSING, LEAKY = Crossing(held_out=0.2), LeakyCrossing(held_out=0.25)
each_task = pytest.mark.parametrize("task", [CROSSING, LEAKY], ids=["crossing", "crossing-leaky"])
shares = st.floats(0.01, 0.5)
SPLITS: tuple[Split, Split] = ("train", "held-out")


def sentences(task: CrossingTask, split: Split) -> list[str]:
    """Give the sentences that evaluation scores, put together again from inputs and targets."""
    return [
        task.decode([*inputs.tolist(), targets[-1].item()])
        for batch in task.evaluation(split)
        for inputs, targets in zip(batch.inputs, batch.targets, strict=True)
    ]


@given(shares)
@settings(max_examples=30)
def test_a_held_out_order_is_never_trained_on_and_its_reverse_always_is(share: float) -> None:
    task = Crossing(held_out=share)
    held_out, training = set(task.held_out_pairs), set(task.training_pairs)
    assert len(held_out) == round(share * 240)
    assert len(held_out) + len(training) == 240
    assert not held_out & training
    assert {(y, x) for x, y in held_out} <= training


@given(shares)
@settings(max_examples=30)
def test_every_noun_is_trained_on_in_both_places(share: float) -> None:
    task = Crossing(held_out=share)
    assert {x for x, _ in task.training_pairs} == {y for _, y in task.training_pairs} == set(NOUNS)


@given(st.floats(0.02, 0.5))
@settings(max_examples=30)
def test_every_animal_and_place_is_trained_on_in_the_leaky_form(share: float) -> None:
    task = LeakyCrossing(held_out=share)
    assert {x for x, _ in task.training_pairs} == set(ANIMALS)
    assert {y for _, y in task.training_pairs} == set(PLACES)
    assert not set(task.held_out_pairs) & set(task.training_pairs)
    assert len(task.held_out_pairs) + len(task.training_pairs) == 64


def test_the_defaults_hold_out_every_noun_equally_often_in_either_place() -> None:
    for task, times in ((CROSSING, 3), (LEAKY, 2)):
        for place, pool in enumerate((task.crossers, task.crossed)):
            assert all(sum(pair[place] == noun for pair in task.held_out_pairs) == times for noun in pool)


def test_sizes_are_those_of_the_card() -> None:
    facts = CROSSING.card().facts
    assert facts["training sentences"] == "1,536 of 192 pairs"
    assert facts["held-out sentences"] == "384 of 48 pairs"
    assert facts["vocabulary"] == "36 words: 16 nouns, 8 adjectives, 12 words of the template"
    assert "at most 3 of 384 are wrong" in CROSSING.card().solved
    assert LEAKY.card().facts["held-out sentences"] == "128 of 16 pairs"
    assert "at most 1 of 128 are wrong" in LEAKY.card().solved
    assert len(sentences(CROSSING, "held-out")) == len(set(sentences(CROSSING, "held-out"))) == 384
    assert CROSSING.vocab_size == LEAKY.vocab_size == 36
    assert CROSSING.context == 17


@each_task
def test_the_scored_word_follows_so_the_and_is_the_noun_that_the_adjective_means(task: CrossingTask) -> None:
    for split in SPLITS:
        for batch in task.evaluation(split):
            assert batch.mask.sum(1).eq(1).all()
            assert batch.mask[:, DECIDING].all()
            for inputs, target in zip(batch.inputs.tolist(), batch.targets[batch.mask].tolist(), strict=True):
                words = task.decode(inputs).split()
                assert words[DECIDING - 1 : DECIDING + 1] == ["so", "the"]
                x, y, adjective = words[1], words[6], words[11]
                assert task.decode([target]) == (x if adjective in MEANING_X else y)


@each_task
def test_training_and_held_out_sentences_are_those_of_their_pairs(task: CrossingTask) -> None:
    for split, pairs in zip(SPLITS, (task.training_pairs, task.held_out_pairs), strict=True):
        batch = task.batch(seed=0, index=0, size=4000, split=split)
        seen = {(row[1], row[6], row[11]) for row in (task.decode(ids).split() for ids in batch.inputs.tolist())}
        assert {(x, y) for x, y, _ in seen} == set(pairs)
        assert {adjective for *_, adjective in seen} == set(ADJECTIVES)
        assert {tuple(line.split()[place] for place in (1, 6)) for line in sentences(task, split)} <= set(pairs)


@each_task
def test_training_predicts_every_next_word(task: CrossingTask) -> None:
    batch = task.batch(seed=1, index=2, size=5)
    assert batch.inputs.shape == batch.targets.shape == batch.mask.shape == (5, 17)
    assert batch.mask.all()
    assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])
    assert {task.decode([token]) for token in batch.targets[:, -1].tolist()} == {"."}


@given(st.integers(0, 2**40), st.integers(0, 10**6))
def test_a_batch_is_a_pure_function_of_seed_and_index(seed: int, index: int) -> None:
    first = CROSSING.batch(seed=seed, index=index, size=16)
    assert torch.equal(first.inputs, CROSSING.batch(seed=seed, index=index, size=16).inputs)
    assert not torch.equal(first.inputs, CROSSING.batch(seed=seed, index=index + 1, size=16).inputs)
    assert not torch.equal(first.inputs, CROSSING.batch(seed=seed + 1, index=index, size=16).inputs)
    assert torch.equal(first.inputs[:7], CROSSING.batch(seed=seed, index=index, size=7).inputs)


@each_task
@given(size=st.integers(1, 500))
def test_evaluation_size_changes_only_where_the_set_is_cut(task: CrossingTask, size: int) -> None:
    for split in SPLITS:
        whole = next(task.evaluation(split, size=10_000))
        pieces = list(task.evaluation(split, size=size))
        assert all(len(piece.inputs) <= size for piece in pieces)
        assert torch.equal(torch.cat([piece.inputs for piece in pieces]), whole.inputs)
        assert torch.equal(torch.cat([piece.targets for piece in pieces]), whole.targets)
        assert torch.equal(torch.cat([piece.mask for piece in pieces]), whole.mask)


@each_task
def test_the_training_sample_is_as_large_as_the_held_out_set_and_has_every_adjective(task: CrossingTask) -> None:
    sample = sentences(task, "train")
    assert len(sample) == len(set(sample)) == len(sentences(task, "held-out"))
    assert {line.split()[11] for line in sample} == set(ADJECTIVES)


def test_writing_into_a_batch_changes_no_later_one() -> None:
    before = next(CROSSING.evaluation()).inputs.clone()
    next(CROSSING.evaluation()).inputs.zero_()
    batch = CROSSING.batch(seed=0, index=0, size=4)
    batch.inputs.zero_()
    assert batch.targets.any()
    assert torch.equal(next(CROSSING.evaluation()).inputs, before)


def test_the_content_hash_is_the_same_everywhere_and_follows_the_pairs() -> None:
    assert CROSSING.content_hash == Crossing(held_out=0.2).content_hash
    assert len({CROSSING.content_hash, LEAKY.content_hash, Crossing(held_out=0.25).content_hash}) == 3
    # Shares that hold out the same pairs are the same data.
    assert CROSSING.content_hash == Crossing(held_out=0.2001).content_hash


def test_an_unknown_word_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="the word 'rivers' is not among the 36 known ones: did you mean 'river'"):
        tasks.get("crossing").encode("the rivers")


def test_the_telling_sentence_is_held_out_and_asks_for_the_second_noun() -> None:
    ids, position = CROSSING.telling_example()
    assert position == DECIDING
    assert CROSSING.decode(ids) in {line.removesuffix(" .") for line in sentences(CROSSING, "held-out")}
    x, y, meant = (CROSSING.decode(ids).split()[place] for place in (1, 6, 15))
    assert meant == y != x
