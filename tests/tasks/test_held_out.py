"""What is held out is never trained on, seen from the rows themselves and with so few tokens that rows come again."""

from collections.abc import Iterable

import pytest

from headstock import tasks
from headstock.tasks.base import Task
from headstock.training.batch import Batch

FEW_ROWS = (
    "addition,digits=2",
    "distract,irrelevant=0,facts=1,questions=1,subjects=8,attributes=3,values=4,filler=0",
    "distract,irrelevant=0,facts=2,questions=2,subjects=4,attributes=2,values=3,filler=0",
    "dyck,kinds=2,depth=2,length=6",
    "induction,length=5,vocabulary=3",
    "manyshot,shots=4,classes=2,item=1,noise=0,features=5,labels=3",
    "mqar,length=8,vocabulary=8,pairs=2,fillers=none",
    "needle,length=12,needles=2,queries=1,cities=3,numbers=4,noise=1",
    "needle,length=12,needles=2,queries=2,cities=3,numbers=4,noise=1",
    "recall-fuzzy,length=6,vocabulary=4,pairs=2,longest=1",
    "recall-noisy,length=6,vocabulary=4,noise=0.2,noise_vocabulary=2",
    "selective-copy,length=4,tokens=2,vocabulary=3",
)
WHATEVER_IS_ASKED = ("distract", "manyshot", "needle")


def asked(batches: Iterable[Batch], *, last: bool) -> set[tuple[int, ...]]:
    """Give the tokens up to each target that counts, or to the last one of each row alone."""
    found: set[tuple[int, ...]] = set()
    for batch in batches:
        for tokens, counts in zip(batch.inputs.tolist(), batch.mask.tolist(), strict=True):
            places = [place for place, count in enumerate(counts) if count]
            found |= {tuple(tokens[: place + 1]) for place in (places[-1:] if last else places)}
    return found


def trained(task: Task, n_batches: int = 80) -> set[tuple[int, ...]]:
    """Give the tokens up to every target that a run counts."""
    return asked((task.batch(seed=3, index=index, size=64) for index in range(n_batches)), last=False)


@pytest.mark.parametrize("spec", FEW_ROWS)
def test_no_question_of_a_held_out_row_or_a_probe_is_trained_on(spec: str) -> None:
    task = tasks.parse(spec)
    last = task.name not in WHATEVER_IS_ASKED  # of the others' earlier answers another row's beginning may ask
    met = trained(task)
    held_out = asked(task.evaluation(), last=last)
    assert held_out
    assert not held_out & met
    if task.name == "dyck":
        return  # its probes score some brackets of a row, and others may close it
    for probe in task.probes():
        assert not asked(probe.batches, last=last) & met, dict(probe.at)


@pytest.mark.parametrize("spec", FEW_ROWS)
def test_what_may_be_trained_on_is_met_so_often_that_a_row_that_leaked_would_be_seen(spec: str) -> None:
    task = tasks.parse(spec)
    scored = asked(task.evaluation("train"), last=True)
    assert len(scored & trained(task)) > len(scored) / 4
