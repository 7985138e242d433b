"""Writes docs/mixers.md from the code: what each mixer says of itself, what accounting counts, and what really runs."""

import inspect
import textwrap
from collections.abc import Sequence
from pathlib import Path

import torch

from headstock.model.accounting import flops_per_token, parameters
from headstock.model.cache import Cache
from headstock.model.config import POSITIONS, config_of
from headstock.model.kernels import kernel_of, kernel_that_ran
from headstock.model.mixers import mixer_class, mixer_names
from headstock.model.mixers.base import Mixer
from headstock.model.transformer import build

PAGE = Path(__file__).with_name("mixers.md")
SIZES = {"vocab_size": 1, "context": 1024, "d_model": 512, "n_heads": 8, "n_layers": 1}
ALONE = {"feedforward": "none", "norm": "none"}
NARROW = {**SIZES, "d_model": 64, "n_heads": 2}
"""Which evaluation runs depends on lengths, and that of differential2 on whether heads are 32 wide or wider."""
SHORT, LONG = 64, 1024
WIDTH = 120

INTRODUCTION = """\
# Mixers

*Attention is a weighted average of values.* Each mixer is an answer to where the weights come from. This page is
written by `make mixers` from what the code says, counts and runs; a test fails where it is out of date.

Counts are those of one layer of width 512 with 8 heads, at 1,024 tokens, float32: `parameters` of all its projections;
`FLOPs` a token, forward, scores and averages counted as the plain evaluation does them; and what decoding keeps in
its cache. `order` says whether it can tell one order of the keys from another without positions; `memory` how that of
training grows with the length, without padding.
"""


def page() -> str:
    """Give the whole page."""
    parts = [INTRODUCTION, _overview(), _evaluations()]
    parts += [_section(name, mixer_class(name)) for name in mixer_names()]
    return "\n".join(parts)


def told(kind: type[Mixer]) -> tuple[str, list[str], str, str]:
    """Split a mixer's docstring: its first line, the lines of its formula, its prose, and its source.

    Raises ValueError where one of them is not there.
    """
    first, _, rest = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")
    lines = rest.splitlines()
    formula = [line.strip() for line in lines if line.startswith("    ")]
    prose = " ".join(" ".join(line.split()) for line in lines if line and not line.startswith("    "))
    before, source, after = prose.partition("Source: ")
    if not (first and formula and source and after):
        raise ValueError(f"{kind.__name__}: a line, a formula indented by four, and a sentence after 'Source: '.")
    return " ".join(first.split()), formula, before.strip(), after.strip()


def _overview() -> str:
    rows = [["mixer", "weights", "order", "parameters", "FLOPs", "cache", "memory"]]
    for name in mixer_names():
        kind = mixer_class(name)
        config = config_of(name, **SIZES, **ALONE)
        operations = flops_per_token(config) - 2 * config.d_model * config.vocab_size
        rows.append(
            [
                f"[`{name}`](#{name})",
                kind.weights_are + (", a floor" if kind.is_floor else ""),
                "sees" if kind.sees_order else "by positions",
                f"{parameters(config).blocks:,}",
                f"{operations:,}",
                _cache(kind, name),
                "linear" if kind.memory_is_linear(config) else "quadratic",
            ]
        )
    return _table(rows, numbers=(3, 4))


def _cache(kind: type[Mixer], name: str) -> str:
    config = config_of(name, **SIZES)
    kept, state = kind.kept_numbers(config), kind.state_numbers(config)
    said = [f"{4 * kept:,} bytes a token"] if kept else []
    return " and ".join([*said, f"{4 * state:,} bytes in all"] if state else said) or "nothing"


def _evaluations() -> str:
    said = (
        "## Which evaluation runs\n\n"
        + _filled(
            "As read off the operations that ran on a CPU, heads 32 wide, without padding: at 64 tokens, at 1,024, "
            "plainly (`model.plain = True`), and for one token after a cache of 64. `plain` stores every weight; "
            "`blockwise` does so for a block of queries at a time; `chunked` for 64 tokens at a time, with a state "
            "between; `recurrent` goes token by token. `differential2` with narrower heads is fused at any length."
        )
        + "\n"
    )
    rows = [["mixer", "64 tokens", "1,024 tokens", "plainly", "one token"]]
    for name in mixer_names():
        model = build(name, **NARROW).eval()
        ran = [kernel_that_ran(model, torch.zeros(1, length, dtype=torch.long)) for length in (SHORT, LONG)]
        with torch.no_grad():
            cache = Cache(1)
            model(torch.zeros(1, SHORT, dtype=torch.long), cache=cache)
            one = kernel_of(lambda: model(torch.zeros(1, 1, dtype=torch.long), cache=cache))  # noqa: B023
        model.plain = True
        rows.append([f"`{name}`", *ran, kernel_that_ran(model, torch.zeros(1, SHORT, dtype=torch.long)), one])
    return f"{said}\n{_table(rows)}"


def _section(name: str, kind: type[Mixer]) -> str:
    first, formula, prose, source = told(kind)
    config = config_of(name, **SIZES, **ALONE)
    mixing = kind.mixing_flops(config, LONG)
    maps = flops_per_token(config) - 2 * config.d_model * config.vocab_size - mixing
    blocks = [f"## {name}", _filled(first), "```text\n" + "\n".join(formula) + "\n```"]
    if prose:
        blocks.append(_filled(prose))
    blocks.append(_filled(f"*Source:* {source}"))
    facts = [f"FLOPs a token: {maps:,} in projections, {mixing:,} in mixing."]
    if kind.own_parameters(config):
        facts.append(f"Numbers of its own a layer, beside the projections of queries, keys, values and gates: "
                     f"{kind.own_parameters(config):,}.")  # fmt: skip
    if kind.reads:
        facts.append(f"Reads {_named(sorted(kind.reads))}.")
    taken = [position for position in POSITIONS if position not in kind.refuses]
    facts.append("Positions: " + ("all." if len(taken) == len(POSITIONS) else f"{_named(taken)}."))
    by_reason: dict[str, list[str]] = {}
    for refused, reason in kind.refuses.items():
        by_reason.setdefault(reason, []).append(refused)
    facts += [f"Refuses {_refused(names)}: {reason}." for reason, names in by_reason.items()]
    return "\n\n".join([*blocks, "\n".join(_filled(fact, "- ", "  ") for fact in facts)]) + "\n"


def _refused(names: Sequence[str]) -> str:
    written = {"causal": "`causal=false`", "cross attention": "cross attention"}
    return ", ".join(written.get(name, f"`{name}`") for name in names)


def _named(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    head, *body = rows
    rule = ["---:" if place in numbers else "---" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *body]) + "\n"


def _filled(text: str, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.name} is written.")
