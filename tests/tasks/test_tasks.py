import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headstock import tasks
from headstock.errors import UserError
from headstock.tasks import drawn

NOVEL = "It was a dark and stormy night, and the rain fell.\n" * 30


def test_listing_tasks_costs_no_torch() -> None:
    code = (
        "import sys; from headstock import tasks; print([tasks.about(name).summary for name in tasks.names()]);"
        "sys.exit(any(heavy in sys.modules for heavy in ('torch', 'numpy', 'tokenizers')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("name", tasks.names())
def test_every_task_is_made_again_by_its_options_and_by_its_line(name: str) -> None:
    task = tasks.get(name)
    assert task.name == name
    assert tasks.get(name, **task.options()) is task
    assert tasks.parse(task.spec) is task
    assert set(task.options()) == {option.name for option in tasks.about(name).options}
    assert tasks.parse(name) is task


@pytest.mark.parametrize("name", tasks.names())
def test_every_task_has_a_whole_card_and_an_example_that_is_in_its_vocabulary(name: str) -> None:
    task = tasks.get(name)
    card = task.card()
    assert card.content_hash == task.content_hash
    assert len(task.content_hash) == 64
    assert card.primary == task.primary
    for said in (card.title, card.what_is_asked, card.example, card.chance, card.solved, card.held_out, card.source):
        assert said.strip()
    assert all(card.facts.values())
    ids, position = task.telling_example()
    assert 0 <= position < len(ids) - 1 <= task.context
    assert all(0 <= token < task.vocab_size for token in ids)
    assert task.encode(task.decode(ids)) == ids
    assert len(task.token_labels(ids)) == len(ids)
    assert task.vocab_size == task.tokenizer.vocab_size


@pytest.mark.parametrize("name", tasks.names())
def test_every_task_refuses_a_split_and_a_size_that_there_is_not(name: str) -> None:
    task = tasks.get(name)
    for split in ("test", "Train", "held_out"):
        with pytest.raises(UserError, match=f"there is no split '{split}'"):
            task.batch(seed=0, index=0, size=2, split=split)  # type: ignore[arg-type]
        with pytest.raises(UserError, match=f"there is no split '{split}'"):
            task.evaluation(split)  # type: ignore[arg-type]
    for size, said in ((0, "size is 0: give 1 or more"), (-1, "size is -1"), (2.5, "size is 2.5: give a whole number")):
        with pytest.raises(UserError, match=said):
            task.batch(seed=0, index=0, size=size)  # type: ignore[arg-type]
        with pytest.raises(UserError, match=said):
            task.evaluation(size=size)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"seed is 0\.0: give a whole number"):
        task.batch(seed=0.0, index=0, size=2)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", tasks.names())
def test_the_same_number_of_another_type_gives_the_same_batch(name: str) -> None:
    task = tasks.get(name)
    expected = task.batch(seed=0, index=3, size=4)
    for seed, index, size in ((np.int64(0), torch.tensor(3), np.int32(4)), (False, np.uint8(3), torch.tensor(4))):
        found = task.batch(seed=seed, index=index, size=size)  # type: ignore[arg-type]
        assert torch.equal(found.inputs, expected.inputs)
        assert torch.equal(found.targets, expected.targets)


def test_more_memory_than_there_is_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(*_: object) -> None:
        raise MemoryError("Unable to allocate 14.9 GiB")

    monkeypatch.setattr(drawn, "draw", too_much)
    with pytest.raises(UserError, match=r"needle,.*length=27.* needs more memory than there is: choose smaller"):
        tasks.parse("needle,length=27,needles=2")


def test_values_are_read_as_on_the_command_line() -> None:
    assert tasks.parse(" text , context = 32 , tokenizer=bpe:0300 ") is tasks.get(
        "text", context=32, tokenizer="bpe:300"
    )
    assert tasks.get("text", context="32", tokenizer="bpe:300") is tasks.get("text", context=32, tokenizer="bpe:300")


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("crosing", "there is no task 'crosing': did you mean 'crossing'"),
        ("", "there is no task ''"),
        ("text,contxt=3", "the task text has no option 'contxt': did you mean 'context'"),
        ("crossing,context=3", "the task crossing has no option 'context'"),
        ("text,context=0", "context must be a whole number of at least 1: got '0'"),
        ("text,context=-3", "context must be a whole number of at least 1: got '-3'"),
        ("text,context=x", "context must be a whole number of at least 1: got 'x'"),
        ("text,held_out=2", "held_out must be a share above 0 and at most 0.5: got '2'"),
        ("text,tokenizer=bpe", "lacks its vocabulary size"),
        ("text,corpus=python-doc", "did you mean 'python-docs'"),
        ("text,context", "'context' in 'text,context' is no option: write key=value"),
        ("text,context=", "is no option: write key=value"),
        ("text,", "is no option: write key=value"),
        ("text,context=3,context=4", "gives context twice"),
        ("crossing,held_out=0.001", "of 240 noun pairs holds out none: choose at least 0.0042"),
        ("text,context=1000000", "the training part of python-docs is .* tokens long and a context of 1000000 needs"),
        ("text,context=100000", "the held-out part of python-docs is .* tokens long and a context of 100000 needs"),
        ("text,tokenizer=bpe:900000", "has only enough different strings for"),
    ],
)
def test_what_cannot_be_made_is_refused_in_one_sentence(spec: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as refusal:
        tasks.parse(spec)
    assert "\n" not in str(refusal.value)


def test_a_file_that_changed_makes_another_task(tmp_path: Path) -> None:
    file = tmp_path / "novel.txt"
    file.write_text(NOVEL)
    first = tasks.get("text", corpus=str(file), context=8)
    assert tasks.get("text", corpus=str(file), context=8) is first
    file.write_text(NOVEL + "The end.\n")
    assert tasks.get("text", corpus=str(file), context=8).content_hash != first.content_hash


@given(st.lists(st.sampled_from(["a", ",", ",,", "b=c", " ", "="]), min_size=1).map("".join))
def test_a_path_with_commas_survives_the_line(name: str) -> None:
    name = f"x{name}x"
    with pytest.MonkeyPatch.context() as patch:
        asked: list[dict[str, str]] = []
        patch.setattr(tasks, "get", lambda task, **options: asked.append(options))
        tasks.parse(f"text,corpus={name.replace(',', ',,')},context=8")
        assert asked == [{"corpus": name, "context": "8"}]


def test_the_line_of_a_task_over_a_path_with_commas_makes_it_again(tmp_path: Path) -> None:
    file = tmp_path / "one, two,,three.txt"
    file.write_text(NOVEL)
    task = tasks.get("text", corpus=str(file), context=8)
    assert tasks.parse(task.spec) is task
