import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.model.transformer import build
from headstock.tasks.drawn import Rows, is_held_out
from headstock.tasks.dyck import DISTANCES, Dyck
from headstock.training.config import TrainingConfig
from headstock.training.evaluation import score
from headstock.training.loop import train

TASK = Dyck(kinds=3, depth=4, length=24)


@st.composite
def made(draw: st.DrawFn) -> Dyck:
    depth = draw(st.integers(1, 6))
    return Dyck(kinds=draw(st.integers(2, 12)), depth=depth, length=2 * (depth + draw(st.integers(6, 16))))


def read(task: Dyck, tokens: list[int]) -> tuple[list[int | None], int]:
    """Give where the bracket was opened that each token closes, None where it opens, and how deep they went.

    Fails where a bracket closes another kind, or none, or stays open.
    """
    opened: list[tuple[int, str]] = []
    partners: list[int | None] = []
    deepest = 0
    for place, word in enumerate(task.decode(tokens).split()):
        if word.startswith("("):
            opened.append((place, word[1:]))
            partners.append(None)
            deepest = max(deepest, len(opened))
        else:
            assert word.endswith(")")
            start, kind = opened.pop()
            assert kind == word[:-1]
            partners.append(start)
    assert not opened
    return partners, deepest


def whole(rows: Rows) -> list[list[int]]:
    return torch.cat([rows.inputs, rows.targets[:, -1:]], dim=1).tolist()


@given(made(), st.integers(0, 9))
@settings(max_examples=15, deadline=None)
def test_rows_are_nested_within_their_depth_and_every_closing_bracket_counts(task: Dyck, index: int) -> None:
    batch = task.batch(seed=1, index=index, size=8)
    rows = Rows(batch.inputs, batch.targets, batch.mask)
    assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])
    distances = task.distances(rows).tolist()
    for row, tokens in enumerate(whole(rows)):
        assert len(tokens) == task.length
        partners, deepest = read(task, tokens)
        assert 1 <= deepest <= task.depth
        assert batch.mask[row].tolist() == [partner is not None for partner in partners[1:]]
        assert (
            distances[row] == [0 if partner is None else place - partner for place, partner in enumerate(partners)][1:]
        )


def test_all_kinds_come_as_often_and_all_depths_are_reached() -> None:
    rows = TASK.split_rows(400, "train", 0, 0)
    opening = rows.inputs[rows.inputs < 3]
    assert torch.bincount(opening).div(len(opening)).sub(1 / 3).abs().max() < 0.03
    assert {read(TASK, tokens)[1] for tokens in whole(rows)} == {2, 3, 4}  # 1 is one row in 4,096


def test_no_held_out_row_is_trained_on() -> None:
    few = Dyck(kinds=2, depth=2, length=6)
    held_out = {tuple(row) for row in whole(few._scored["held-out"])}
    trained = {tuple(row) for index in range(60) for row in whole(few.split_rows(32, "train", 0, index))}
    assert len(held_out) > 2
    assert len(trained) > 20  # of 32: 4 shapes of 3 pairs
    assert not held_out & trained


def test_probes_are_the_same_rows_scored_at_each_distance() -> None:
    probes = list(TASK.probes())
    assert [(probe.at["length"], probe.at["distance"]) for probe in probes] == [
        (length, distance) for length in (24, 48) for distance in DISTANCES
    ]
    for first in (0, 3):
        scored, seen = 0, []
        for probe in probes[first : first + 3]:
            parts = list(probe.batches)
            rows = Rows(*(torch.cat([getattr(part, name) for part in parts]) for name in ("inputs", "targets", "mask")))
            assert is_held_out(rows.inputs).all()
            assert rows.mask.any(1).all()
            least, most = DISTANCES[str(probe.at["distance"])]
            for tokens, mask in zip(whole(rows), rows.mask.tolist(), strict=True):
                assert len(tokens) == probe.at["length"]
                partners, _ = read(TASK, tokens)
                assert (
                    mask
                    == [
                        partner is not None and least <= place - partner <= most
                        for place, partner in enumerate(partners)
                    ][1:]
                )
            scored += int(rows.mask.sum())
            seen.append({tuple(row) for row in rows.inputs.tolist()})
        assert scored == 256 * int(probes[first].at["length"]) // 2
        assert seen[1] <= seen[0]  # every row has a pair side by side
        assert seen[2] <= seen[0]


def test_shallow_brackets_have_no_far_probe() -> None:
    flat = Dyck(kinds=8, depth=1, length=12)
    assert [probe.at["distance"] for probe in flat.probes()] == ["1", "1"]
    model = build("softmax,n_layers=1,d_model=8,n_heads=1", vocab_size=16, context=flat.context)
    assert all(0 <= score(model, probe.batches)["accuracy"] <= 1 for probe in flat.probes())


def test_marks_are_of_the_bracket_that_closes_furthest_off() -> None:
    marks = TASK.marks()
    for row, tokens in enumerate(whole(TASK._scored["held-out"])):
        partners, _ = read(TASK, tokens)
        distances = [0 if partner is None else place - partner for place, partner in enumerate(partners)]
        closing = distances.index(max(distances))
        opening = partners[closing]
        assert opening is not None
        assert int(marks.queries[row]) == closing - 1
        assert marks.spans["answer"][row].nonzero()[:, 0].tolist() == [opening]
        assert marks.spans["brackets inside"][row].nonzero()[:, 0].tolist() == [*range(opening + 1, closing)]
        assert marks.spans["brackets before"][row].nonzero()[:, 0].tolist() == [*range(opening)]


@given(made())
@settings(max_examples=10, deadline=None)
def test_guessing_without_attention_is_what_the_card_says(task: Dyck) -> None:
    right = {"token": 0, "bag": 0}
    scored = 0
    for tokens in whole(task._scored["held-out"]):
        words = task.decode(tokens).split()
        open_of = dict.fromkeys(range(task.kinds), 0)
        for last, word in zip([None, *words], words, strict=False):
            kind = int(word.strip("()"))
            if word.endswith(")"):
                assert last is not None
                at_hand = int(last[1:]) if last.startswith("(") else None
                most = max(open_of, key=lambda kind: (open_of[kind], -kind))
                right["token"] += kind == (0 if at_hand is None else at_hand)
                right["bag"] += kind == (most if at_hand is None else at_hand)
                scored += 1
            open_of[kind] += 1 if word.startswith("(") else -1
    assert scored == task.n_scored
    assert task.guessing(bag=False) == pytest.approx(right["token"] / scored, abs=1e-12)
    assert task.guessing(bag=True) == pytest.approx(right["bag"] / scored, abs=1e-12)
    assert f"; {right['token'] / scored:.1%} where the last token alone" in task.card().chance
    assert f"; {right['bag'] / scored:.1%} where the tokens before" in task.card().chance


def test_the_example_is_a_row_with_every_closing_bracket_marked() -> None:
    words = TASK.card().example.split()
    assert len(words) == 24
    assert all(word.startswith("[") == word.strip("[]").endswith(")") for word in words)
    read(TASK, TASK.encode(" ".join(word.strip("[]") for word in words)))


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("length=33", "33 brackets cannot all be closed: choose an even length"),
        ("length=6,depth=4", "6 brackets are never 4 deep: choose a length of 8 or more, or a smaller depth"),
        ("kinds=1", "kinds must be a whole number of at least 2: got '1'"),
        ("length=2,depth=1,kinds=2", "has too few different rows to hold one in 8 out"),
    ],
)
def test_what_cannot_be_is_refused(spec: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        tasks.parse(f"dyck,{spec}")


@pytest.mark.full
def test_softmax_learns_what_closes() -> None:
    task = tasks.get("dyck", kinds=4, depth=3, length=16)
    model = build("softmax", vocab_size=task.vocab_size, context=task.context)
    progress = train(model, task, TrainingConfig(steps=1000, evaluate_every=1000))
    assert progress.curve[-1]["accuracy"] > task.guessing(bag=True)
