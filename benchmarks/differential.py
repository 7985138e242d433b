"""What the studies of differential attention were set up by: one learning rate for all arms, and seconds a step.

    python benchmarks/differential.py                  seconds a training step beside softmax's, 15 turns of 3 steps
    python benchmarks/differential.py --rates          held-out loss of each arm with three rates, two seeds

Models and training are the studies' own (studies/differential/paper.py), on one thread. Each turn times every arm once,
so that whatever else the machine does falls on all; a ratio is taken within a turn, and printed is its median, in
brackets its quartiles. The seeds of --rates are none that a study trains with.
"""

import argparse
import time
from statistics import fmean, quantiles

import torch

from headstock import tasks
from headstock.model.config import config_of
from headstock.model.transformer import Transformer, build_from
from headstock.studies.differential.paper import ARMS, SETTINGS, SHAKESPEARE, STEPS, equal
from headstock.training.config import TrainingConfig
from headstock.training.evaluation import evaluate
from headstock.training.loop import take_step, train
from headstock.training.optimiser import adamw
from headstock.training.run import processor_name

RATES = (1.3e-3, 4e-3, 1.3e-2)
SEEDS = (100, 101)
TEXT = tasks.parse(SHAKESPEARE)


def model(arm: str, seed: int = 0) -> Transformer:
    """Build a study's model of an arm, as large as softmax's."""
    variant = equal(ARMS)[arm]
    return build_from(config_of(variant, vocab_size=TEXT.vocab_size, context=TEXT.context, **SETTINGS), seed=seed)


def steps(turns: int, repeats: int) -> None:
    """Print how long a training step of each arm takes beside softmax's."""
    config = TrainingConfig(**STEPS)
    models = {arm: model(arm) for arm in ARMS}
    optimisers = {arm: adamw(models[arm], config) for arm in ARMS}
    took: list[dict[str, float]] = []
    for turn in range(turns + 1):
        took.append({})
        for arm in ARMS:
            began = time.perf_counter()
            for step in range(repeats):
                take_step(models[arm], TEXT, config, optimisers[arm], turn * repeats + step)
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
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=3, help="steps a turn")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{processor_name()}, one thread, torch {torch.__version__}")
    rates() if asked.rates else steps(asked.turns, asked.repeats)


if __name__ == "__main__":
    main()
