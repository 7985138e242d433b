import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstock import programs as p
from headstock import tasks
from headstock.comparison.fitting import refuse_misfit
from headstock.comparison.request import Request
from headstock.comparison.single import open_model, single_cell, task_of, train_cell
from headstock.errors import UserError
from headstock.programs.compiled import Compiled
from headstock.programs.compiler.domain import Domain
from headstock.tasks import tokenizers
from headstock.tasks.program import ProgramTask, is_held_out
from headstock.tasks.program_rows import rows
from headstock.training.evaluation import evaluate
from tests.programs.short_proofs import shorten_proofs

SOLVED = ("program", "program,name=reverse,length=6", "program,name=shift,by=2,length=6", "program,name=dyck,length=8",
          "program,name=parity,length=8", "program,name=hist,length=5,vocab=1,,2,,3,causal=false")  # fmt: skip
ADDITION = "program,name=addition,digits=1"


@pytest.fixture(autouse=True)
def _short_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_proofs(monkeypatch)


def task_called(spec: str) -> ProgramTask:
    task = tasks.parse(spec)
    assert isinstance(task, ProgramTask)
    return task


def compiled_for(task: ProgramTask) -> Compiled:
    domain = task.domain
    return p.compile(task.program, vocab=domain.vocabulary, max_length=domain.max_length, causal=domain.causal)


@pytest.mark.parametrize("spec", [*SOLVED, ADDITION])
def test_the_compiled_model_is_a_solver(spec: str) -> None:
    task = task_called(spec)
    compiled = compiled_for(task)
    assert compiled.readout.names == task.readout.names
    assert compiled.model.config.context == task.context
    for split in ("held-out", "train"):
        metrics = evaluate(compiled.model, task, split)  # type: ignore[arg-type]
        assert metrics["accuracy"] == 1
        assert metrics["loss"] < 1e-5


def test_of_a_whole_sum_the_next_token_is_asked_where_the_answer_is_read_off() -> None:
    task = task_called(ADDITION)
    batch = task.batch(seed=0, index=0, size=16)
    for ids, targets, mask in zip(batch.inputs.tolist(), batch.targets.tolist(), batch.mask.tolist(), strict=True):
        text = task.decode(ids)
        prompt, _, answer = text.partition("=")
        said = answer[: answer.index(".") + 1]
        assert int(said[:-1]) == sum(map(int, prompt.split("+")))
        first = task.skipped + len(prompt)  # where "=" stands
        assert [place for place, counts in enumerate(mask) if counts] == list(range(first, first + len(said)))
        assert all(targets[place] == ids[place + 1] for place in range(first, first + len(said)))
        assert "".join(p.interpret(task.program, f"{prompt}={said}")[len(prompt) : -1]) == said


@given(st.integers(0, 3), st.sampled_from(["train", "held-out"]))
@settings(max_examples=8, deadline=None)
def test_targets_are_what_the_program_gives(index: int, split: str) -> None:
    for spec in ("program,name=sort,length=5", "program,name=last-occurrence,length=5"):
        task = task_called(spec)
        batch = task.batch(seed=5, index=index, size=4, split=split)  # type: ignore[arg-type]
        for ids, targets, mask in zip(batch.inputs.tolist(), batch.targets.tolist(), batch.mask.tolist(), strict=True):
            assert ids[0] == task.readout.start
            assert mask == [False] + [True] * 5
            given = p.interpret(task.program, task.decode(ids), causal=task.causal)
            assert [task.readout.of_id[target] for target in targets[1:]] == given


def test_no_row_is_in_both_splits_and_none_of_an_evaluation_comes_twice() -> None:
    task = task_called("program,length=4")  # of 256 sequences nearly all come
    scored = {}
    for split in ("train", "held-out"):
        found = [row for batch in task.evaluation(split) for row in map(tuple, batch.inputs.tolist())]  # type: ignore[arg-type]
        assert len(set(found)) == len(found)
        scored[split] = set(found)
    assert len(scored["train"] | scored["held-out"]) > 240
    trained = {tuple(row) for index in range(20) for row in task.batch(seed=0, index=index, size=32).inputs.tolist()}
    assert len(trained) > 150
    assert not (trained | scored["train"]) & scored["held-out"]
    fresh = {tuple(row) for row in task.batch(seed=0, index=0, size=64, split="held-out").inputs.tolist()}
    assert not trained & fresh
    assert sum(int(batch.mask.sum()) for batch in task_called("program").evaluation()) == 256 * 10


def test_sums_have_no_more_digits_than_the_program_takes_however_long_rows_may_be() -> None:
    domain = Domain.of("0123456789+=.", 20, True, "float32")
    for digits in (1, 2):
        drawn = rows(p.zoo.addition(digits), domain, 200, "sums")
        longest = max(len(number) for row in drawn for number in "".join(row).partition("=")[0].split("+"))
        assert longest == digits


def test_one_sequence_in_eight_is_held_out() -> None:
    share = sum(map(is_held_out, ((a, b, c, d) for a in "abcd" for b in "abcd" for c in "abcd" for d in "abcd"))) / 256
    assert 0.08 < share < 0.18


def test_batches_are_a_function_of_seed_and_index_and_evaluation_of_the_task_alone() -> None:
    task = task_called("program,length=6")
    again = ProgramTask(**task.options())  # type: ignore[arg-type]
    assert again is not task
    assert again.content_hash == task.content_hash != task_called("program,length=7").content_hash
    one = task.batch(seed=3, index=7, size=5).inputs
    assert torch.equal(one, again.batch(seed=3, index=7, size=5).inputs)
    assert torch.equal(next(task.evaluation()).targets, next(again.evaluation()).targets)
    for seed, index in ((4, 7), (3, 8)):
        assert not torch.equal(one, task.batch(seed=seed, index=index, size=5).inputs)


def test_a_program_s_own_choices_are_options_and_one_program_is_one_task() -> None:
    task = tasks.parse("program,name=shift,by=2")
    assert tasks.parse("program,name=shift,,by=2") is tasks.get("program", name="shift", by=2) is task
    assert tasks.parse(task.spec) is task
    assert tasks.parse("program,name=shift") is tasks.parse("program,name=shift,by=1,length=10,vocab=abcd,causal=true")


def test_the_card_gives_a_row_with_its_values_and_what_guessing_is_worth() -> None:
    task = task_called("program")
    tokens, values = (line.split() for line in task.card().example.splitlines())
    assert tokens[0] == "<start>"
    assert values[0] == "·"
    assert [int(value) for value in values[1:]] == p.interpret(task.program, "".join(tokens[1:]), causal=True)
    # The first position says 1 and the second, over four letters, mostly 1 too.
    assert 0.3 < task.guessing() < 0.6
    assert f"{task.guessing():.1%}" in task.card().chance


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("program,name=srot", "there is no program 'srot' in the zoo: did you mean 'sort'"),
        ("program,name=sort,digits=2", "neither the task program has an option 'digits' nor sort such a choice"),
        ("program,name=shift,bye=2", "nor shift such a choice: did you mean 'by'"),
        ("program,name=reverse,causal=true", "program 'reverse' is not causal: it looks ahead; use causal=false"),
        ("program,causal=maybe", "causal is 'maybe': choose true or false"),
        ("program,vocab=a", "length 10 has too few different sequences to hold one in 8 out"),
        ("program,vocab=aab", "the vocabulary has 'a' twice"),
        ("program,vocab=a,,,,b", "has an empty word: write words by commas"),
        ("program,name=fraction-of-previous", "different numbers, which a model says as one logit and not as a token"),
        ("program,name=addition,digits=1,length=6", "6 tokens have no room for a sum and its answer.*of 7 or more"),
        ("program,name=addition,vocab=ab", "addition,digits=3 ends by '.', which is not of the vocabulary 'ab'"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(spec: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as refusal:
        tasks.parse(spec)
    assert "\n" not in str(refusal.value)


def request_for(variant: str, spec: str, **options: object) -> Request:
    return Request(variants=(variant,), tasks=(spec,), match="none", steps=2, **options)  # type: ignore[arg-type]


def test_a_model_sees_the_whole_row_of_a_program_that_does_and_no_more_of_another(tmp_path: Path) -> None:
    cell = single_cell(request_for("softmax,n_layers=1", "program,name=sort,length=4"), seed=0)
    assert not cell.model.causal
    assert train_cell(cell, tmp_path / "sort").status == "finished"
    task = task_of(tmp_path / "sort")
    refuse_misfit(tmp_path / "sort", open_model(tmp_path / "sort"), task)
    assert single_cell(request_for("softmax,n_layers=1", "program"), seed=0).model.causal
    with pytest.raises(UserError, match="causal=false sees the very tokens"):
        single_cell(request_for("softmax,causal=false", "program"), seed=0)
    with pytest.raises(UserError, match="forgetting cannot use causal=false"):
        single_cell(request_for("forgetting+none", "program,name=sort,length=4"), seed=0)


@pytest.mark.parametrize("spec", ["program,length=4", "program,name=reverse,length=4", "program,vocab=red,,green"])
def test_a_run_keeps_the_program_s_tokens(spec: str, tmp_path: Path) -> None:
    task = task_called(spec)
    task.tokenizer.save(tmp_path)
    assert tokenizers.load(tmp_path) == task.tokenizer
    ids, _ = task.telling_example()
    assert tokenizers.load(tmp_path).encode(task.decode(ids)) == ids


def test_reading_the_options_of_a_program_costs_no_torch() -> None:
    reads = "from headstock.tasks import program_options as options; options.completed({'name': 'sort'})"
    code = f"import sys; {reads}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
