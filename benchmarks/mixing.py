"""What a mixer costs beside softmax, forward and backward, interleaved, as ratios with their spread.

    python benchmarks/mixing.py                  256, 1,024 and 2,048 tokens on two threads
    python benchmarks/mixing.py --lengths 1024 --turns 15 --threads 1
    python benchmarks/mixing.py --short          batch 32, width 64, heads of 16, one thread: what a comparison trains

Two tables. Mixing alone: q, k and v in, averages out; differential as Headstock evaluates it, as its formula says
(naive) and as one fused call of queries and keys padded to the width of the values, λ times its odd heads subtracted
from its even ones; differential2 also as one fused call of all its queries. A whole block: norms, maps, mixing and
feed-forward, whose width makes the parameters of all arms equal. Each turn times every arm once, so that whatever else
the machine does falls on all; a ratio is taken within a turn. Printed is its median, and in brackets its quartiles.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import quantiles

import torch
from torch import Tensor

from headstock.comparison.matching import matched
from headstock.model.config import config_of
from headstock.model.frame import Frame
from headstock.model.heads import Heads
from headstock.model.mixers.base import ScoreMixer
from headstock.model.mixers.differential import Differential
from headstock.model.mixers.differential2 import Differential2
from headstock.model.transformer import build_from
from headstock.model.visibility import Visible
from headstock.training.run import processor_name

Step = Callable[[], None]
ARMS = ["softmax", "differential", "differential2"]


def padded(mixer: Differential, heads: Heads) -> Tensor:
    """The best that fused calls can do for differential: one, of queries and keys as wide as the values."""
    return mixer.mix_padded(heads.q_bhqd, heads.k_bhkd, heads.v_bhkd, heads.visible)


def mixing(mixer: ScoreMixer, mix: Callable[[Heads], Tensor], batch: int, length: int) -> Step:
    sizes = mixer.heads

    def numbers(n_heads: int, width: int) -> Tensor:  # laid out as a map leaves them
        return torch.randn(batch, length, n_heads, width).transpose(1, 2).requires_grad_()

    inputs = [
        numbers(sizes.query_heads, sizes.key_size),
        numbers(sizes.key_heads, sizes.key_size),
        numbers(sizes.value_heads, sizes.value_size),
    ]
    gates = torch.randn(batch, sizes.gates, length, requires_grad=True) if sizes.gates else None
    upstream = numbers(sizes.output_heads, sizes.value_size).detach()
    x_bqm = torch.empty(batch, length, 0)
    heads = Heads(*inputs, gates, Visible(length, length, upstream.device), x_bqm)

    def step() -> None:
        fresh = replace(heads, visible=Visible(length, length, upstream.device))  # a mask is made anew, as in training
        mix(fresh).backward(upstream)
        mixer.zero_grad()
        for x in (*inputs, gates):
            if x is not None:
                x.grad = None

    return step


def whole_block(block: torch.nn.Module, batch: int, length: int, width: int) -> Step:
    x, upstream = torch.randn(batch, length, width, requires_grad=True), torch.randn(batch, length, width)

    def step() -> None:
        block(x, Frame(Visible(length, length, x.device))).backward(upstream)
        block.zero_grad()
        x.grad = None

    return step


def seconds(step: Step, repeats: int) -> float:
    began = time.perf_counter()
    for _ in range(repeats):
        step()
    return (time.perf_counter() - began) / repeats


def ratios(arms: dict[str, Step], turns: int) -> None:
    """Print each arm's time as a multiple of softmax's."""
    for step in arms.values():
        step()
    repeats = max(1, round(0.05 / seconds(arms["softmax"], 3)))
    rows = [{name: seconds(step, repeats) for name, step in arms.items()} for _ in range(turns)]
    for name in arms:
        low, middle, high = quantiles([row[name] / row["softmax"] for row in rows], n=4)
        took = quantiles([1e3 * row[name] for row in rows], n=4)[1]
        print(f"    {name:22} {middle:5.2f} ({low:.2f} to {high:.2f}) {took:10.2f} ms", flush=True)


def measure(batch: int, length: int, width: int, n_heads: int, turns: int) -> None:
    shape = {"vocab_size": 256, "context": length, "d_model": width, "n_heads": n_heads, "n_layers": 1}
    configs = [config_of(arm, **shape) for arm in ARMS]
    mixers = {arm: build_from(config).blocks[0].mixer for arm, config in zip(ARMS, configs, strict=True)}
    steps = {arm: mixing(mixer, mixer.mix, batch, length) for arm, mixer in mixers.items()}
    differential, differential2 = mixers["differential"], mixers["differential2"]
    assert isinstance(differential2, Differential2)
    steps["differential, naive"] = mixing(differential, differential.mix_plainly, batch, length)
    steps["differential, padded"] = mixing(differential, lambda heads: padded(differential, heads), batch, length)
    steps["differential2, fused"] = mixing(differential2, differential2.mix_fused, batch, length)
    print(f"{length:,} tokens, batch {batch}, width {width}, {n_heads} heads\n  mixing alone, beside softmax's")
    ratios(steps, turns)
    equal = matched(ARMS, configs, "params")
    blocks = {arm: build_from(config).blocks[0] for arm, config in zip(ARMS, equal, strict=True)}
    print("  a whole block of as many parameters, feed-forward " + ", ".join(f"{config.d_ff:,}" for config in equal))
    ratios({arm: whole_block(block, batch, length, width) for arm, block in blocks.items()}, turns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", help="tokens (see above; 17 33 64 with --short)")
    parser.add_argument("--short", action="store_true", help="batch 32, width 64, four heads, one thread")
    parser.add_argument("--threads", type=int, help="default 2, or 1 with --short")
    parser.add_argument("--turns", type=int, default=11)
    asked = parser.parse_args()
    threads = asked.threads or (1 if asked.short else 2)
    torch.set_num_threads(threads)
    print(f"{processor_name()}, {threads} threads, torch {torch.__version__}, {asked.turns} turns")
    for length in asked.lengths or ([17, 33, 64] if asked.short else [256, 1024, 2048]):
        measure(*((32, length, 64, 4) if asked.short else (1, length, 512, 8)), asked.turns)


if __name__ == "__main__":
    main()
