"""What a layer that stores its scores waits for: its own sums, or the system that gives it fresh memory.

    python benchmarks/fresh_pages.py

One forward pass of the layer of the study `cost`, all scores stored, by length: seconds, core-seconds of the process
itself and of the system on its behalf, and page faults, each the median of some passes; and how each grows with length.
"""

import math
import resource
import time
from statistics import median

import torch

from headstock.instruments.passes import undisturbed
from headstock.model.config import config_of
from headstock.model.transformer import Transformer, build_from
from headstock.studies.chapter.cost import LAYER

LENGTHS = (1024, 2048, 4096, 8192)
PASSES = 5
NAMES = ("seconds", "own", "system", "faults")


def main() -> None:
    """Print a line a length, then the exponents between the shortest and the longest."""
    model = build_from(config_of(LAYER, vocab_size=2, context=max(LENGTHS)), seed=0)
    model.plain = True
    print(f"{'tokens':>8}" + "".join(f"{name:>12}" for name in NAMES))
    rows = []
    for length in LENGTHS:
        passes = [_one_pass(model, length) for _ in range(PASSES)]
        rows.append([median(values) for values in zip(*passes, strict=True)])
        print(f"{length:>8,}" + "".join(f"{value:>12,.3f}" for value in rows[-1][:3]) + f"{rows[-1][3]:>12,.0f}")
    longer = math.log(LENGTHS[-1] / LENGTHS[0])
    grown = [
        math.log(last / first) / longer if first and last else math.nan
        for first, last in zip(rows[0], rows[-1], strict=True)
    ]
    print("exponent" + "".join(f"{value:>12.2f}" for value in grown))


def _one_pass(model: Transformer, length: int) -> tuple[float, float, float, float]:
    ids_bq = torch.zeros(1, length, dtype=torch.int64)
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    with torch.no_grad(), undisturbed(model):
        model.hidden(ids_bq)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    return (
        seconds,
        after.ru_utime - before.ru_utime,
        after.ru_stime - before.ru_stime,
        float(after.ru_minflt - before.ru_minflt),
    )


if __name__ == "__main__":
    main()
