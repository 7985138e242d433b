from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.tasks.text import TextTask
from headstock.training.batch import Batch, Split

FOLIO = "".join(f"Line {number}: the café on the corner sells {number * 7 % 13} cakes.\n" for number in range(60))
SPLITS: tuple[Split, Split] = ("train", "held-out")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "folio.txt"
    path.write_bytes(FOLIO.encode())
    return path


@pytest.fixture(scope="module", params=["byte", "char", "bpe:300"])
def task(request: pytest.FixtureRequest, file: Path) -> TextTask:
    return TextTask(corpus=str(file), tokenizer=request.param, context=24, held_out=0.25)


def parts_of(task: TextTask) -> tuple[list[int], list[int]]:
    cut = int(len(FOLIO) * 0.75)
    return task.encode(FOLIO[:cut]), task.encode(FOLIO[cut:])


def whole(task: TextTask, split: Split) -> Batch:
    return next(task.evaluation(split, size=100_000))


def test_every_held_out_token_is_scored_exactly_once_and_in_order(task: TextTask) -> None:
    train, held_out = parts_of(task)
    batch = whole(task, "held-out")
    assert batch.targets[batch.mask].tolist() == held_out
    # The first is predicted from the last training token, every other from the one before it.
    assert batch.inputs[batch.mask].tolist() == [train[-1], *held_out[:-1]]


def test_the_bytes_of_the_scored_tokens_are_those_of_the_held_out_text(task: TextTask) -> None:
    batch = whole(task, "held-out")
    assert task.bytes_per_token[batch.targets[batch.mask]].sum() == len(FOLIO[int(len(FOLIO) * 0.75) :].encode())
    assert task.bytes_per_token.dtype == torch.float64
    assert task.bytes_per_token.shape == (task.vocab_size,)


def test_the_same_text_is_held_out_whatever_the_tokenizer(task: TextTask) -> None:
    batch = whole(task, "held-out")
    assert task.decode(batch.targets[batch.mask].tolist()) == FOLIO[int(len(FOLIO) * 0.75) :]


def test_the_training_figure_is_taken_over_the_beginning_of_the_training_part(task: TextTask) -> None:
    train, held_out = parts_of(task)
    batch = whole(task, "train")
    count = min(len(held_out), len(train) - 1)
    assert batch.inputs[batch.mask].tolist() == train[:count]
    assert batch.targets[batch.mask].tolist() == train[1 : count + 1]


def test_only_the_last_row_is_padded(task: TextTask) -> None:
    for split in SPLITS:
        batch = whole(task, split)
        assert batch.inputs.shape[1] == task.context
        assert batch.mask[:-1].all()
        assert (batch.inputs[~batch.mask] == 0).all()
        assert batch.inputs.dtype == batch.targets.dtype == torch.int64


@given(st.integers(1, 50))
@settings(max_examples=20)
def test_evaluation_size_changes_only_where_the_set_is_cut(size: int) -> None:
    task = tasks.get("text", context=512, held_out=0.02)
    for split in SPLITS:
        pieces = list(task.evaluation(split, size=size))
        one = next(task.evaluation(split, size=100_000))
        assert all(len(piece.inputs) <= size for piece in pieces)
        for field in ("inputs", "targets", "mask"):
            assert torch.equal(torch.cat([getattr(piece, field) for piece in pieces]), getattr(one, field))


@given(st.integers(0, 2**40), st.integers(0, 10**6), st.sampled_from(SPLITS))
def test_a_batch_is_a_pure_function_of_seed_and_index(seed: int, index: int, split: Split) -> None:
    task = tasks.get("text")
    first = task.batch(seed=seed, index=index, size=16, split=split)
    again = task.batch(seed=seed, index=index, size=16, split=split)
    assert torch.equal(first.inputs, again.inputs)
    assert torch.equal(first.targets, again.targets)
    assert not torch.equal(first.inputs, task.batch(seed=seed, index=index + 1, size=16, split=split).inputs)
    assert not torch.equal(first.inputs, task.batch(seed=seed + 1, index=index, size=16, split=split).inputs)
    assert torch.equal(first.inputs[:7], task.batch(seed=seed, index=index, size=7, split=split).inputs)


def test_drawn_rows_stay_in_their_part_and_reach_both_its_ends(task: TextTask) -> None:
    train, held_out = parts_of(task)
    for split, ids in zip(SPLITS, (train, [train[-1], *held_out]), strict=True):
        rows = task.batch(seed=0, index=0, size=20_000, split=split)
        assert rows.mask.all()
        assert torch.equal(rows.inputs[:, 1:], rows.targets[:, :-1])
        seen = {(*row, last) for row, last in zip(rows.inputs.tolist(), rows.targets[:, -1].tolist(), strict=True)}
        windows = {tuple(ids[start : start + 25]) for start in range(len(ids) - 24)}
        assert seen == windows


def test_the_content_hash_follows_the_text_and_not_the_path(file: Path, tmp_path: Path) -> None:
    def hash_of(text: str = FOLIO, tokenizer: str = "byte", context: int = 24, held_out: float = 0.25) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.txt"
        path.write_bytes(text.encode())
        return TextTask(corpus=str(path), tokenizer=tokenizer, context=context, held_out=held_out).content_hash

    original = TextTask(corpus=str(file), tokenizer="byte", context=24, held_out=0.25).content_hash
    assert hash_of() == original
    others = {
        hash_of(text=FOLIO.replace("cakes", "Cakes", 1)),
        hash_of(tokenizer="char"),
        hash_of(tokenizer="bpe:300"),
        hash_of(context=23),
        hash_of(held_out=0.2),
    }
    assert len(others | {original}) == 6


def test_a_corpus_shorter_than_the_context_is_refused_with_figures(tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("x" * 100)

    def make(context: int, held_out: float = 0.1) -> TextTask:
        return TextTask(corpus=str(short), tokenizer="byte", context=context, held_out=held_out)

    assert whole(make(10), "held-out").mask.sum() == 10
    with pytest.raises(
        UserError, match=r"the held-out part of .*short\.txt is 10 tokens long and a context of 11 needs 11"
    ):
        make(11)
    assert whole(make(49, 0.5), "train").mask.sum() == 49
    with pytest.raises(UserError, match=r"the training part of .* is 50 tokens long and a context of 50 needs 51"):
        make(50, 0.5)


def test_options_name_a_file_so_that_any_folder_finds_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    task = tasks.get("text", corpus="folio.txt", context=24)
    assert task.options() == {"corpus": str(file), "tokenizer": "byte", "context": 24, "held_out": 0.1}


def test_the_card_says_the_version_of_the_docs_and_what_guessing_gives() -> None:
    card = tasks.get("text").card()
    assert card.facts["Python"].startswith("3.")
    assert len(card.facts["sha256 of the text"]) == 64
    assert card.chance.startswith("8.00 bits per byte for 256 tokens all alike; 4.")


def test_the_telling_example_ends_a_stretch_that_the_row_has_seen_before(task: TextTask) -> None:
    ids, position = task.telling_example()
    rows = whole(task, "held-out").inputs.tolist()
    assert ids[:-1] in rows
    assert tuple(ids[position - 1 : position + 2]) in {tuple(ids[start : start + 3]) for start in range(position - 2)}


def test_a_context_of_one_token_is_a_task_too(file: Path) -> None:
    task = TextTask(corpus=str(file), tokenizer="byte", context=1, held_out=0.25)
    ids, position = task.telling_example()
    assert (len(ids), position) == (2, 0)
    assert task.card().example


def test_a_text_in_which_nothing_comes_again_still_has_a_token_that_decides(tmp_path: Path) -> None:
    path = tmp_path / "once.txt"
    path.write_text("".join(chr(code) for code in range(33, 127)))
    task = TextTask(corpus=str(path), tokenizer="char", context=9, held_out=0.5)
    ids, position = task.telling_example()
    assert position == 8
    assert ids[position + 1] == ids[position] + 1
    assert task.card().example


def test_shakespeare_in_byte_pairs_is_the_reference_corpus(shakespeare: Path) -> None:
    task = tasks.parse("text,corpus=shakespeare,tokenizer=bpe:1024,context=128")
    facts = task.card().facts
    assert facts["characters"] == "1,115,394"
    tokens = sum(int(facts[part].replace(",", "")) for part in ("training tokens", "held-out tokens"))
    assert tokens == 459_792
