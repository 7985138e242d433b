"""What the next token of (aab)* costs, by hand-made model, by program and by plain rule.

Models are counted in floating-point operations of their matrix products, 2mnk for (m, k) times (k, n); elementwise work
is left out. Rules are counted in instructions: a Python function in those of its bytecode, which differ between
versions of Python, and a C function in those that gcc makes of it on this machine. None of them loops, so no run takes
more instructions than are there.
"""

import dis
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headstock.errors import UserError
from headstock.model.config import ModelConfig
from headstock.programs.handmade import aab, ab

C_RULE = "int next(const int *ids, long n) { return !(ids[n - 2] | ids[n - 1]); }"
"""The rule of (aab)* for the ids a = 0 and b = 1: b, the id 1, if both of the last two are 0."""
PUBLISHED_FLOPS = 4000
"""What the source says of its model and a full context, roughly."""
PUBLISHED_INSTRUCTIONS = 8
"""What the source says of its rule in x64 assembly."""


@dataclass(frozen=True)
class Products:
    """Floating-point operations by matrix product, all layers together."""

    qkv: int
    scores: int
    averages: int
    projection: int
    """The output map, from the heads into the residual."""
    feedforward: int
    unembedding: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(asdict(self).values())


def products(config: ModelConfig, tokens: int, keys: int | None = None) -> Products:
    """Count the matrix products of reading `tokens` tokens at once, the unembedding of each included.

    keys: how many tokens each is scored against, those of a cache included; as many as are read where not given.
    Raises UserError for another mixer than softmax, and for maps that are left out.
    """
    if (config.mixer, config.query_key, config.value_map, config.output_map) != ("softmax", "learned", "learned", True):
        raise UserError(f"the products of {config.variant} are not counted here: use a softmax with all of its maps.")
    if config.feedforward not in ("none", "relu", "gelu"):
        raise UserError(f"the products of feedforward={config.feedforward} are not counted here: use relu or none.")
    keys = tokens if keys is None else keys
    width, inner = config.d_model, config.n_heads * config.d_head
    each = 2 * tokens * config.n_layers
    return Products(
        qkv=each * width * (inner + 2 * config.n_kv_heads * config.d_head),
        scores=each * inner * keys,
        averages=each * keys * inner,
        projection=each * inner * width,
        feedforward=0 if config.feedforward == "none" else each * 2 * width * config.d_ff,
        unembedding=2 * tokens * width * config.vocab_size,
    )


@dataclass(frozen=True)
class Way:
    """One way to the next token."""

    name: str
    flops: int
    instructions: int | None = None
    """None for a model."""

    @property
    def fused(self) -> int:
        """The operations where a multiplication and the addition after it are one."""
        return self.flops // 2


@dataclass(frozen=True)
class Costs:
    """The result."""

    full_pass: Products
    """Of the hand-made (aab)* over its whole context."""
    ways: tuple[Way, ...]

    def way(self, name: str) -> Way:
        """Give one way by its name."""
        found = [way for way in self.ways if way.name == name]
        if not found:
            raise UserError(f"there is no way {name!r}: choose one of {', '.join(way.name for way in self.ways)}.")
        return found[0]

    def table(self) -> str:
        """Give the ways as plain text, then the products of the full pass."""
        rows = [("one next token by", "FLOPs", "fused", "instructions")]
        for way in self.ways:
            counted = "" if way.instructions is None else f"{way.instructions:,}"
            rows.append((way.name, f"{way.flops:,}", f"{way.fused:,}", counted))
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = [
            f"{name:<{widths[0]}}  " + "  ".join(f"{x:>{w}}" for x, w in zip(rest, widths[1:], strict=True)).rstrip()
            for name, *rest in rows
        ]
        parts = ", ".join(f"{name} {flops:,}" for name, flops in asdict(self.full_pass).items() if flops)
        return "\n".join([*(line.rstrip() for line in lines), f"The full pass: {parts}."])


def costs(programs: Mapping[str, ModelConfig] | None = None) -> Costs:
    """Count every way to the next token after five; `programs` adds models of the same rule, by name.

    A model of a program reads five tokens too, or as many as its context has. With learned positions a cache serves
    only until the context is full: after that every token moves to another position and is read again.
    """
    full, short = aab.blueprint().config(), aab.blueprint(context=2).config()
    ways = [
        Way("(aab)* by hand, as published (about)", PUBLISHED_FLOPS),
        Way("(aab)* by hand, all five tokens", products(full, 5).total),
        Way("(aab)* by hand, one token after a cache of four", products(full, 1, 5).total),
        Way("(aab)* by hand, only the last two tokens", products(full, 2).total),
        Way("(aab)* by hand for a context of two", products(short, 2).total),
        Way("(aab)* by hand for a context of two, one token after a cache of one", products(short, 1, 2).total),
    ]
    for name, config in (programs or {}).items():
        read = min(5, config.context)
        ways.append(Way(name, products(config, read).total))
        ways.append(Way(f"{name}, one token after a cache of {read - 1}", products(config, 1, read).total))
    ways += [
        Way("(ab)* by hand, the last token", products(ab.blueprint().config(), 1).total),
        Way("(aab)* as a rule in Python (bytecode)", 0, bytecode_instructions(aab.rule)),
        Way("(ab)* as a rule in Python (bytecode)", 0, bytecode_instructions(ab.rule)),
    ]
    ways.append(Way("(aab)* as a rule in x64 assembly, as published", 0, PUBLISHED_INSTRUCTIONS))
    in_machine = machine_instructions(C_RULE)
    if in_machine is not None:
        ways.append(Way("(aab)* as a rule in C (machine code by gcc -O2)", 0, in_machine))
    return Costs(products(full, 5), tuple(ways))


def bytecode_instructions(function: Callable[..., Any]) -> int:
    """Count the instructions of a Python function that calls no other, as `dis` lists them, for this Python."""
    return sum(1 for _ in dis.get_instructions(function))


def machine_instructions(source: str) -> int | None:
    """Count the machine instructions that gcc -O2 makes of one C function; None where there is no gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    command = [gcc, "-O2", "-S", "-x", "c", "-", "-o", "-"]
    made = subprocess.run(command, input=source, capture_output=True, text=True, timeout=60, check=False)
    if made.returncode:
        return None
    lines = [line.strip() for line in made.stdout.splitlines() if line.startswith("\t")]
    return sum(not line.startswith((".", "#", "endbr")) for line in lines)
