import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.model.transformer import build
from headstock.tasks.repeats import Repeats
from headstock.training.config import TrainingConfig
from headstock.training.loop import train

TASK = Repeats(length=32, vocabulary=64)
sizes = st.integers(2, 20).flatmap(lambda length: st.tuples(st.just(length), st.integers(length, 40)))


@given(sizes, st.integers(0, 5))
@settings(max_examples=30)
def test_every_scored_token_followed_the_same_token_before(size: tuple[int, int], index: int) -> None:
    task = Repeats(length=size[0], vocabulary=size[1])
    batch = task.batch(seed=1, index=index, size=4)
    assert bool(batch.mask.any(1).all())
    for inputs, targets, mask in zip(batch.inputs.tolist(), batch.targets.tolist(), batch.mask.tolist(), strict=True):
        for place, counts in enumerate(mask):
            earlier = [targets[before] for before in range(place) if inputs[before] == inputs[place]]
            assert bool(earlier) == counts  # scored is what can be known, all of it, and nothing else
            assert not earlier or set(earlier) == {targets[place]}


def test_a_row_goes_on_where_its_inputs_end_and_is_as_long_as_the_context() -> None:
    batch = TASK.batch(seed=0, index=0, size=8)
    assert batch.inputs.shape == batch.targets.shape == batch.mask.shape == (8, TASK.context)
    assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])


def test_sequences_are_of_every_length_from_half_the_longest_on() -> None:
    _, periods = TASK.rows(2000, "train", 0, 0)
    counts = torch.bincount(periods)
    assert set(periods.tolist()) == set(range(16, 33))
    assert int(counts[16:].min()) > 70  # of 118 expected


def test_batches_are_a_function_of_seed_and_index_and_evaluation_of_the_task_alone() -> None:
    again = Repeats(length=32, vocabulary=64)
    for one, other in ((TASK.batch(seed=3, index=7, size=5), again.batch(seed=3, index=7, size=5)),
                       (next(TASK.evaluation()), next(again.evaluation()))):  # fmt: skip
        assert torch.equal(one.inputs, other.inputs)
        assert torch.equal(one.mask, other.mask)
    assert TASK.content_hash == again.content_hash
    assert TASK.content_hash != Repeats(length=32, vocabulary=65).content_hash
    first = TASK.batch(seed=3, index=7, size=5).inputs
    for seed, index in ((4, 7), (3, 8)):
        assert not torch.equal(first, TASK.batch(seed=seed, index=index, size=5).inputs)


def test_no_held_out_row_is_one_that_is_trained_on() -> None:
    held_out = {tuple(row) for batch in TASK.evaluation() for row in batch.inputs.tolist()}
    assert len(held_out) == 256
    for index in range(20):
        assert not held_out & {tuple(row) for row in TASK.batch(seed=0, index=index, size=32).inputs.tolist()}
    train = {tuple(row) for batch in TASK.evaluation("train") for row in batch.inputs.tolist()}
    assert not held_out & train


def test_the_card_brackets_what_is_scored() -> None:
    example = TASK.card().example.split()
    assert example[-1] == "..."
    period = next(place for place, word in enumerate(example) if word.startswith("[")) - 1
    assert 16 <= period <= 32
    assert [word.strip("[]") for word in example[period:-1]] == example[: len(example) - 1 - period]
    assert TASK.card().facts["scored"].endswith("in the held-out set")


def test_what_is_shown_can_be_known() -> None:
    ids, position = TASK.telling_example()
    assert ids[position] in ids[:position]
    assert ids[ids.index(ids[position]) + 1] == ids[position + 1]


def test_fewer_tokens_than_a_sequence_is_long_are_refused() -> None:
    with pytest.raises(UserError, match="a sequence of 32 different tokens needs a vocabulary of 32 or more, not 8"):
        tasks.get("repeats", vocabulary=8)


def test_two_blocks_learn_what_one_block_cannot() -> None:
    task = tasks.get("repeats", length=8, vocabulary=16)
    right = {}
    for n_layers in (1, 2):
        model = build("softmax,feedforward=none", vocab_size=16, context=16, n_layers=n_layers, init="torch")
        progress = train(model, task, TrainingConfig(steps=400, evaluate_every=400))
        right[n_layers] = progress.curve[-1]["accuracy"]
    assert right[1] < 0.65 < 0.85 < right[2]
