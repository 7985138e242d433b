"""What the studies of differential attention were set up by: one learning rate for all arms, and seconds a step.

    python benchmarks/differential.py                  seconds a training step beside softmax's, 15 turns of 3 steps
    python benchmarks/differential.py --long           the same of a larger model on one row of 1,024 tokens
    python benchmarks/differential.py --rates          held-out loss of each arm with three rates, two seeds

Models and training are the studies' own (studies/differential/paper.py), on one thread; with --long four blocks of
width 512 with 8 heads, on two. A step is all of it: batch, loss over the vocabulary, gradients, AdamW. Each turn times
every arm once, so that whatever else the machine does falls on all; a ratio is taken within a turn, and printed is its
median, in brackets its quartiles. The seeds of --rates are none that a study trains with.
"""

import argparse
import time
from collections.abc import Mapping
from statistics import fmean, quantiles

import torch

from headstock import tasks
from headstock.model.config import config_of
from headstock.model.transformer import Transformer, build_from
from headstock.studies.differential.paper import ARMS, SETTINGS, SHAKESPEARE, STEPS, equal
from headstock.tasks.base import Task
from headstock.training.config import TrainingConfig
from headstock.training.evaluation import evaluate
from headstock.training.loop import take_step, train
from headstock.training.optimiser import adamw
from headstock.training.run import processor_name

RATES = (1.3e-3, 4e-3, 1.3e-2)
SEEDS = (100, 101)
TEXT = tasks.parse(SHAKESPEARE)
LONG = {"d_model": 512, "n_layers": 4, "n_heads": 8}
TOKENS = 1024


def model(arm: str, seed: int = 0, task: Task = TEXT, **sizes: int) -> Transformer:
    """Build a study's model of an arm, as large as softmax's."""
    settings = {**SETTINGS, **sizes}
    variant = equal(ARMS, settings=settings, context=task.context)[arm]
    return build_from(config_of(variant, vocab_size=task.vocab_size, context=task.context, **settings), seed=seed)


def steps(turns: int, repeats: int) -> None:
    """Print how long a training step of each arm of the studies takes beside softmax's."""
    in_turns(TEXT, TrainingConfig(**STEPS), {arm: model(arm) for arm in ARMS}, turns, repeats)


def long_steps(turns: int, repeats: int) -> None:
    """Print the same of a larger model on one row of 1,024 tokens."""
    task = tasks.parse(SHAKESPEARE.replace("context=128", f"context={TOKENS}"))
    models = {arm: model(arm, task=task, **LONG) for arm in ARMS}
    in_turns(task, TrainingConfig(**{**STEPS, "batch_size": 1}), models, turns, repeats)


def in_turns(task: Task, config: TrainingConfig, models: Mapping[str, Transformer], turns: int, repeats: int) -> None:
    """Print how long a training step of each model takes beside the first's."""
    optimisers = {arm: adamw(models[arm], config) for arm in ARMS}
    took: list[dict[str, float]] = []
    for turn in range(turns + 1):
        took.append({})
        for arm in ARMS:
            began = time.perf_counter()
            for step in range(repeats):
                take_step(models[arm], task, config, optimisers[arm], turn * repeats + step)
            took[-1][arm] = (time.perf_counter() - began) / repeats
    for arm in ARMS:
        low, middle, high = quantiles([turn[arm] / turn["softmax"] for turn in took[1:]], n=4)
        print(f"{arm:14} {middle:.2f} ({low:.2f} to {high:.2f}) {1e3 * fmean(turn[arm] for turn in took[1:]):.1f} ms")


def rates() -> None:
    """Print what each arm's loss ends at with each rate."""
    print(f"{'':14}" + "".join(f"{rate:>10g}" for rate in RATES))
    for arm in ARMS:
        line = f"{arm:14}"
        for rate in RATES:
            losses = []
            for seed in SEEDS:
                trained = model(arm, seed)
                train(trained, TEXT, TrainingConfig(**{**STEPS, "lr": rate, "seed": seed, "evaluate_every": 500}))
                losses.append(evaluate(trained, TEXT)["loss"])
            line += f"{fmean(losses):10.3f}"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=3, help="steps a turn")
    asked = parser.parse_args()
    torch.set_num_threads(2 if asked.long else 1)
    print(f"{processor_name()}, {'two threads' if asked.long else 'one thread'}, torch {torch.__version__}")
    if asked.rates:
        rates()
    else:
        (long_steps if asked.long else steps)(asked.turns, asked.repeats)


if __name__ == "__main__":
    main()
