"""Steps and CPU-seconds to solve a task of recall, arm by arm: the table in docs/tasks.md.

    python benchmarks/recall.py                                       the reference cell of mqar, three seeds
    python benchmarks/recall.py --task induction --seeds 2 --arms softmax differential --lr 1e-3 --batch 32

A run is evaluated every 50 steps and stops where it has solved its task; one that has not when its steps are done is
written as > steps, with the accuracy it ended at: how long it would have taken is not known. One thread a run.
"""

import argparse
import time
from collections.abc import Iterator

from headstock import tasks
from headstock.model.transformer import build
from headstock.tasks.base import Task
from headstock.training.config import TrainingConfig
from headstock.training.loop import Progress, train

ARMS = (
    "softmax,n_heads=1", "softmax,n_heads=2", "differential,n_heads=2", "differential2,n_heads=1",
    "differential2,n_heads=2", "softmax,n_heads=2,n_layers=1", "uniform,n_heads=2,n_layers=1",
)  # fmt: skip


class SolvedError(Exception):
    """The run has nothing more to show."""


def run(task: Task, arm: str, config: TrainingConfig) -> tuple[int | None, float, float]:
    """Give the steps it took, None where it was not solved, CPU-seconds until then, and the accuracy at the end."""
    model = build(arm, vocab_size=task.vocab_size, context=task.context, seed=config.seed)
    progress = Progress()

    def stop_when_solved(progress: Progress) -> None:
        assert task.solved_at is not None
        if progress.curve and progress.curve[-1]["accuracy"] >= task.solved_at:
            raise SolvedError

    began = time.process_time()
    try:
        train(model, task, config, progress=progress, after_step=stop_when_solved)
    except SolvedError:
        return progress.steps_done, time.process_time() - began, progress.curve[-1]["accuracy"]
    return None, time.process_time() - began, progress.curve[-1]["accuracy"]


def lines(task: Task, arms: list[str], seeds: int, config: TrainingConfig) -> Iterator[str]:
    yield "| arm | steps to solve | CPU-seconds | accuracy at the end |"
    yield "|---|---|---|---|"
    for arm in arms:
        runs = [run(task, arm, config.model_copy(update={"seed": seed})) for seed in range(seeds)]
        steps = ", ".join(f"> {config.steps:,}" if taken is None else f"{taken:,}" for taken, _, _ in runs)
        spent = ", ".join(f"{seconds:.0f}" for _, seconds, _ in runs)
        right = ", ".join(f"{accuracy:.3f}" for _, _, accuracy in runs)
        yield f"| `{arm}` | {steps} | {spent} | {right} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="mqar", help="as headstock compare writes it")
    parser.add_argument("--arms", nargs="+", default=ARMS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=3e-3)
    asked = parser.parse_args()
    config = TrainingConfig(steps=asked.steps, batch_size=asked.batch, lr=asked.lr)
    for line in lines(tasks.parse(asked.task), asked.arms, asked.seeds, config):
        print(line, flush=True)


if __name__ == "__main__":
    main()
