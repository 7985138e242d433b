"""A model's figures by difficulty, laid out for a terminal: a row a probe, or a grid where two difficulties cross."""

from collections.abc import Mapping, Sequence
from typing import Any

from headstock.cli.layout import columns


def probes_table(probes: Sequence[Mapping[str, Any]], primary: str) -> str:
    """Set `RunResult.probes` as text, the primary metric alone in a grid; empty where there are none."""
    from headstock.comparison.difficulties import Difficulties, words, written

    if not probes:
        return ""
    of = Difficulties.of([probe["at"] for probe in probes])
    said = f"Held-out, by {of.in_words}"
    if not of.grid():
        metrics = list(probes[0]["metrics"])
        rows = [[*map(words, of.names), *map(words, metrics)]]
        rows += [
            [*map(written, probe["at"].values()), *(f"{probe['metrics'][name]:.4f}" for name in metrics)]
            for probe in probes
        ]
        return f"{said}\n{columns(rows, indent='  ', numbers=range(len(rows[0])))}"
    (down, downs), (across, acrosses) = of.values.items()
    by_place = {tuple(probe["at"].values()): f"{probe['metrics'][primary]:.4f}" for probe in probes}
    rows = [[f"{words(down)} \\ {words(across)}", *map(written, acrosses)]]
    rows += [[written(row), *(by_place.get((row, column), "—") for column in acrosses)] for row in downs]
    return f"{said}: {words(primary)}\n{columns(rows, indent='  ', numbers=range(1, len(rows[0])))}"
