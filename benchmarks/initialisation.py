"""How a start of training does at the default size: steps to solve crossing, and bits per byte of text.

    python benchmarks/initialisation.py              eight seeds of each start, about fifteen minutes on one core

This is the trial by which the default of ModelConfig.init was chosen; LOG.md has its table.
"""

import argparse

from headstock import tasks
from headstock.comparison.statistics.hypotheses import steps_to_solve
from headstock.model.transformer import build
from headstock.training.config import TrainingConfig
from headstock.training.loop import Progress, train


def trained(variant: str, task_name: str, seed: int, steps: int, evaluate_every: int) -> Progress:
    task = tasks.get(task_name)
    model = build(variant, vocab_size=task.vocab_size, context=task.context, seed=seed)
    return train(model, task, TrainingConfig(steps=steps, seed=seed, evaluate_every=evaluate_every))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--steps", type=int, help="fewer steps than the trial's 600 and 400")
    parser.add_argument("--mixers", nargs="+", default=["softmax", "differential", "uniform"])
    asked = parser.parse_args()
    print(f"{'init':8}{'mixer':14}steps to solve crossing, seed by seed ('-': not by the end)          bits per byte")
    for init in ("fan-in", "gpt2", "torch"):
        for mixer in asked.mixers:
            variant = f"{mixer},init={init}"
            solved = []
            for seed in range(asked.seeds):
                curve = trained(variant, "crossing", seed, asked.steps or 600, 20).curve
                step = steps_to_solve([(int(e["step"]), e["accuracy"]) for e in curve], 0.99, "higher")
                solved.append("-" if step is None else str(step))
            text = trained(variant, "text", 0, asked.steps or 400, asked.steps or 400).curve[-1]["bits_per_byte"]
            print(f"{init:8}{mixer:14}{' '.join(f'{step:>4}' for step in solved):62}{text:20.3f}", flush=True)


if __name__ == "__main__":
    main()
