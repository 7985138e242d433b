"""How large compiled programs are, how long compiling them takes, and whether they are certified.

    python benchmarks/programs.py                  eight programs at 5, 10, 20, 50 and 100 tokens
    python benchmarks/programs.py --programs sort hist --lengths 20 --turns 9
    python benchmarks/programs.py --json

Every program is compiled bidirectional over five tokens, brackets among them where it matches brackets, in float32 on
one thread. Heads and units are those that the program needs. Compiling is timed once it is warm, in CPU-seconds, the
median of so many turns: the passes and the weights alone, and the whole with trials and certificate. Forward is one
pass over one sequence of full length, in CPU-milliseconds. Below stands what is known of Tracr over five letters.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median

import torch

from headstock.errors import UserError
from headstock.programs import zoo
from headstock.programs.compiled import Compiled, compile
from headstock.programs.compiler.compiling import built
from headstock.training.run import processor_name

VOCABULARIES = {
    "length": "abcde",
    "reverse": "abcde",
    "hist": "abcde",
    "sort": "abcde",
    "sort-freq": "abcde",
    "shuffle-dyck,k=1": "()abc",
    "shuffle-dyck,k=2": "(){}a",
    "pair-balance": "()abc",
}
PROGRAMS = list(VOCABULARIES)
LENGTHS = [5, 10, 20, 50, 100]


@dataclass(frozen=True)
class Tracr:
    """What is known of a model that Tracr compiles; None where it is not."""

    width: int | None
    layers: int | None
    parameters: int


TRACR = {
    ("reverse", 10): Tracr(75, 4, 95_054),
    ("sort-freq", 20): Tracr(518, 5, 6_600_000),
    ("shuffle-dyck,k=2", 20): Tracr(100, 8, 5_300_000),
    ("reverse", 50): Tracr(None, None, 7_000_000),
}
"""Of Tracr (Lindner et al., 2023) over five letters, for orientation: not measured by this program.

Compiling took it 0.1 to 1.1 CPU-seconds warm and about 4 cold, and 14 s for reverse at 50.
"""


@dataclass(frozen=True)
class Row:
    """One program at one length."""

    program: str
    vocabulary: str
    length: int
    width: int
    layers: int
    heads: int
    d_head: int
    units: int
    parameters: int
    nonzero: int
    passes_s: float
    """Compiling without trials."""
    compile_s: float
    """Compiling with trials and certificate."""
    forward_ms: float
    margin: float
    """What is there over what is needed, where it is least; infinite where nothing is noisy."""
    largest_error: float
    """The largest bound on the error of any code."""


def measured(program: str, length: int, turns: int) -> Row:
    """Raises UserError where the program is not certified."""
    made, vocabulary = zoo.get(program), VOCABULARIES[program]

    def whole() -> Compiled:
        return compile(made, vocab=vocabulary, max_length=length, causal=False)

    compiled = whole()  # warm from here on

    def passes() -> None:
        built(made.output, compiled.domain).blueprint.build(compiled.domain.torch_dtype)

    size, certificate = compiled.size(), compiled.certificate
    return Row(
        program,
        vocabulary,
        length,
        size.width,
        size.layers,
        size.heads,
        size.d_head,
        size.units,
        size.parameters,
        size.nonzero,
        median(seconds(passes) for _ in range(turns)),
        median(seconds(whole) for _ in range(turns)),
        forward_ms(compiled),
        certificate.smallest_margin,
        certificate.largest_error,
    )


def seconds(step: Callable[[], object]) -> float:
    began = time.process_time()
    step()
    return time.process_time() - began


def forward_ms(compiled: Compiled) -> float:
    length = compiled.domain.max_length
    sequence = [compiled.domain.vocabulary[place % len(compiled.domain.vocabulary)] for place in range(length)]
    ids, _ = compiled.readout.ids_of([sequence])
    with torch.no_grad():
        return 1e3 * median(seconds(lambda: compiled.model(ids)) for _ in range(30))


HEADINGS = (
    *("program", "tokens", "width", "layers", "heads", "of size", "units", "parameters", "non-zeros"),
    *("passes, s", "whole, s", "forward, ms", "margin", "error"),
)


def as_cells(row: Row) -> list[str]:
    sizes = (row.width, row.layers, row.heads, row.d_head, row.units, row.parameters, row.nonzero)
    return [
        row.program,
        str(row.length),
        *(f"{size:,}" for size in sizes),
        f"{row.passes_s:.2f}",
        f"{row.compile_s:.2f}",
        f"{row.forward_ms:.2f}",
        "none" if row.margin == float("inf") else f"{row.margin:.2f}",
        f"{row.largest_error:.0e}",
    ]


def print_table(rows: list[Row]) -> None:
    cells = [[*HEADINGS], *map(as_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *rest in cells:
        numbers = (cell.rjust(wide) for cell, wide in zip(rest, widths[1:], strict=True))
        print(first.ljust(widths[0]), *numbers, sep="  ")


def print_beside(rows: list[Row]) -> None:
    """Set what was measured beside Tracr's figures."""
    for row in rows:
        theirs = TRACR.get((row.program, row.length))
        if theirs is None:
            continue
        shape = "" if theirs.width is None else f"{row.width} columns for {theirs.width}, "
        shape += "" if theirs.layers is None else f"{row.layers} layers for {theirs.layers}, "
        parameters = f"{row.parameters:,} parameters for {theirs.parameters:,}"
        share = f"1 in {theirs.parameters / row.parameters:,.0f}"
        print(f"{row.program} at {row.length}, beside Tracr: {shape}{parameters} ({share})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--programs", nargs="+", choices=PROGRAMS, default=PROGRAMS, metavar="NAME", help=", ".join(PROGRAMS)
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, help="tokens of the longest sequence")
    parser.add_argument("--turns", type=int, default=3, help="times that each is compiled")
    parser.add_argument("--json", action="store_true", help="print JSON, infinite margins as null")
    asked = parser.parse_args()
    if asked.turns < 1:
        parser.error("--turns must be at least 1")
    torch.set_num_threads(1)
    rows, refused = [], []
    for program in asked.programs:
        for length in asked.lengths:
            try:
                rows.append(measured(program, length, asked.turns))
            except UserError as error:
                refused.append({"program": program, "length": length, "says": str(error)})
    if asked.json:
        held = [{**asdict(row), "margin": None if row.margin == float("inf") else row.margin} for row in rows]
        print(json.dumps({"machine": processor_name(), "rows": held, "refused": refused}, indent=2))
        return
    print(f"{processor_name()}, one thread, torch {torch.__version__}, float32, five tokens, bidirectional")
    print_table(rows)
    for one in refused:
        print(f"refused: {one['program']} at {one['length']}: {one['says']}")
    print_beside(rows)


if __name__ == "__main__":
    main()
