"""Training speed beside transformers' GPT-2 of the same shape: tokens a second, interleaved, as a ratio.

    python benchmarks/training.py                 one run: both on the same threads
    python benchmarks/training.py --matrix        a matrix of runs: a process a core against one process on all cores

One block, width 128, four heads, context 128, vocabulary 1,024, batch 64, float32, AdamW. Each turn trains both for
a few steps, one after the other, so that whatever else the machine does falls on both. Also prints the share of the
machine's own matrix-multiply rate that Headstock's training reaches, counted in the plain formula's operations.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from statistics import median

import torch
from torch import Tensor

from headstock.model.accounting import flops_per_token
from headstock.model.config import ModelConfig, config_of
from headstock.model.transformer import build_from
from headstock.training.batch import Batch, Split
from headstock.training.config import TrainingConfig
from headstock.training.loop import take_step
from headstock.training.optimiser import adamw
from headstock.training.run import processor_name

CONTEXT, VOCABULARY, WIDTH, HEADS, BATCH = 128, 1024, 128, 4, 64
TOKENS = CONTEXT * BATCH


class RandomTokens:
    """A batch source of uniform tokens: what is measured is training, not data."""

    vocab_size = VOCABULARY
    context = CONTEXT
    bytes_per_token: Tensor | None = None

    def batch(self, *, seed: int, index: int, size: int, split: Split = "train") -> Batch:
        ids = torch.randint(VOCABULARY, (size, CONTEXT + 1), generator=torch.Generator().manual_seed(index))
        return Batch(ids[:, :-1], ids[:, 1:], torch.ones(size, CONTEXT, dtype=torch.bool))


def the_shape() -> ModelConfig:
    """GPT-2's: biases everywhere, tied embeddings."""
    return config_of(
        "softmax", vocab_size=VOCABULARY, context=CONTEXT, d_model=WIDTH, n_heads=HEADS, n_layers=1,
        qkv_bias=True, output_bias=True, tied=True,
    )  # fmt: skip


class Ours:
    """Headstock's training step."""

    def __init__(self, threads: int, piece_tokens: int) -> None:
        self.config = TrainingConfig(steps=10**6, batch_size=BATCH, threads=threads, piece_tokens=piece_tokens)
        self.model = build_from(the_shape()).train()
        self.optimiser = adamw(self.model, self.config)
        self.source = RandomTokens()

    def step(self, index: int) -> None:
        take_step(self.model, self.source, self.config, self.optimiser, index)


class Theirs:
    """transformers' GPT-2 with torch's AdamW, in the loop that its documentation shows."""

    def __init__(self) -> None:
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config(
            vocab_size=VOCABULARY, n_positions=CONTEXT, n_embd=WIDTH, n_layer=1, n_head=HEADS,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
        )  # fmt: skip
        self.model = GPT2LMHeadModel(config).train()
        ours, theirs = sum(p.numel() for p in build_from(the_shape()).parameters()), self.model.num_parameters()
        assert ours == theirs, (ours, theirs)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
        self.source = RandomTokens()

    def step(self, index: int) -> None:
        batch = self.source.batch(seed=0, index=index, size=BATCH)
        self.optimiser.zero_grad()
        labels = torch.cat([batch.inputs[:, :1], batch.targets[:, :-1]], dim=1)  # it shifts them itself
        self.model(input_ids=batch.inputs, labels=labels).loss.backward()
        self.optimiser.step()


def seconds(run: "Ours | Theirs", steps: int) -> float:
    began = time.perf_counter()
    for index in range(steps):
        run.step(index)
    return (time.perf_counter() - began) / steps


def matmul_rate() -> float:
    """Operations a second of this machine's float32 matrix multiplication, on the threads in use, at a kind size."""
    a, b = torch.randn(2048, 512), torch.randn(512, 512)
    out = a @ b
    best = 0.0
    for _ in range(20):
        began = time.perf_counter()
        for _ in range(10):
            torch.mm(a, b, out=out)
        best = max(best, 10 * 2 * 2048 * 512 * 512 / (time.perf_counter() - began))
    return best


def one_run(threads: int, turns: int, steps: int, piece_tokens: int) -> dict[str, object]:
    torch.set_num_threads(threads)
    ours, theirs = Ours(threads, piece_tokens), Theirs()
    for run in (ours, theirs):
        seconds(run, 2)
    pairs = [(seconds(ours, steps), seconds(theirs, steps), matmul_rate()) for _ in range(turns)]
    ratio = sorted(b / a for a, b, _ in pairs)
    operations = 3 * flops_per_token(the_shape()) * TOKENS
    return {
        "threads": threads,
        "ours_tokens_per_second": TOKENS / median(a for a, _, _ in pairs),
        "gpt2_tokens_per_second": TOKENS / median(b for _, b, _ in pairs),
        "ratio": median(ratio),
        "ratio_low": ratio[0],
        "ratio_high": ratio[-1],
        "matmul_gflops": median(rate for _, _, rate in pairs) / 1e9,
        "share_of_matmul_rate": median(operations / a / rate for a, _, rate in pairs),
    }


def matrix(cores: int, turns: int, steps: int, piece_tokens: int) -> dict[str, object]:
    """Ours as a comparison runs it, a single-threaded process a core; theirs as one process on all cores; in turns."""
    script = [sys.executable, __file__, "--child", "--steps", str(steps), "--piece-tokens", str(piece_tokens)]
    children = [
        subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(cores)
    ]
    torch.set_num_threads(cores)
    theirs = Theirs()
    seconds(theirs, 2)
    pairs = []
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()  # ready
    for _ in range(turns):
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        rates = []
        for child in children:
            assert child.stdout is not None
            rates.append(TOKENS / float(child.stdout.readline()))
        pairs.append((sum(rates), TOKENS / seconds(theirs, steps)))
    for child in children:
        assert child.stdin is not None
        child.stdin.close()
        child.wait()
    ratio = sorted(ours / gpt2 for ours, gpt2 in pairs)
    return {
        "cores": cores,
        "ours_tokens_per_second": median(ours for ours, _ in pairs),
        "gpt2_tokens_per_second": median(gpt2 for _, gpt2 in pairs),
        "ratio": median(ratio),
        "ratio_low": ratio[0],
        "ratio_high": ratio[-1],
    }


def child(steps: int, piece_tokens: int) -> None:
    torch.set_num_threads(1)
    ours = Ours(1, piece_tokens)
    seconds(ours, 2)
    print("ready", flush=True)
    for _ in sys.stdin:
        print(seconds(ours, steps), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", action="store_true", help="a process a core, against one on all cores")
    parser.add_argument("--threads", type=int, default=1, help="threads of one run (default 1)")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--steps", type=int, default=4, help="steps a turn")
    parser.add_argument("--piece-tokens", type=int, default=TrainingConfig(steps=1).piece_tokens)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child(asked.steps, asked.piece_tokens)
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if asked.matrix:
        found = matrix(cores, asked.turns, asked.steps, asked.piece_tokens)
    else:
        found = one_run(asked.threads, asked.turns, asked.steps, asked.piece_tokens)
    found |= {"machine": f"{processor_name()}, {cores} cores", "torch": torch.__version__}
    found |= {"python": platform.python_version()}
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
