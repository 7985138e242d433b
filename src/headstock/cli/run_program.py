"""`headstock run`: give a compiled program an input, and print its value at every position."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from headstock.cli.advice import advice_in_options
from headstock.cli.layout import columns, filled, print_json, results_alone
from headstock.cli.options import AsJson, Device, Flag, device_named

if TYPE_CHECKING:
    from headstock.programs.saving.saved import Loaded
    from headstock.programs.values import Value


def run_program(
    folder: Annotated[Path, Parameter(name="DIR", help="Folder that `headstock compile` made.")],
    text: Annotated[
        str, Parameter(name="INPUT", help="Its characters are the tokens; words by spaces where tokens are longer.")
    ],
    /,
    *,
    explain: Annotated[
        bool, Flag, Parameter(help="Print what the model holds for each expression, heads, layers and columns.")
    ] = False,
    device: Device = "auto",
    as_json: AsJson = False,
) -> int:
    """Run a compiled program on an input: each token with the value that the model gives there."""
    from headstock.programs.saving.saved import NOT_CERTIFIED, load
    from headstock.programs.text import tokens_of
    from headstock.programs.values import shown

    with results_alone(), advice_in_options():
        loaded = load(folder, device=device_named(device))
        tokens = tokens_of(loaded.readout, text)
        values = loaded(tokens)
    if as_json:
        print_json(_as_values(loaded, folder, tokens, values, explain))
        return 0
    if explain:
        print(loaded.explain(tokens))
        return 0
    rows = [["#", "token", "value"]]
    rows += [
        [str(place), shown(token), shown(value)]
        for place, (token, value) in enumerate(zip(tokens, values, strict=True))
    ]
    print(columns(rows, numbers=(0,)))
    if not loaded.is_certified:
        print(f"\n{filled(f'Note: {NOT_CERTIFIED}.')}")
    return 0


def _as_values(
    loaded: "Loaded", folder: Path, tokens: "list[Value]", values: "list[Value]", explain: bool
) -> dict[str, Any]:
    from headstock.programs.saving.written import written

    said: dict[str, Any] = {
        "folder": str(folder),
        "program": loaded.record.program,
        "certified": loaded.is_certified,
        "tokens": list(tokens),
        "values": [written(value) for value in values],
    }
    if explain:
        said["explanation"] = _explained(loaded, tokens)
    return said


def _explained(loaded: "Loaded", tokens: "list[Value]") -> dict[str, Any]:
    from dataclasses import asdict

    from headstock.programs.explaining.explanation import UNKNOWN
    from headstock.programs.values import shown

    found = loaded.explain(tokens)
    return {
        "read": list(found.labels),
        "expressions": [
            {
                "name": one.name,
                "line": one.line,
                "source": one.source,
                "computed_by": one.how,
                "stands": one.where,
                "program": None if one.program is None else [shown(value) for value in one.program],
                "model": None if one.model is None else [shown(value) for value in one.model],
                "numbers": None if one.numbers is None else list(one.numbers),
            }
            for one in found.expressions
        ],
        "heads": [{**asdict(head.part), "weights": [list(row) for row in head.weights]} for head in found.heads],
        "units": [asdict(part) for part in found.units],
        "columns": [asdict(column) for column in found.columns],
        "moved": [asdict(part) for part in found.moved],
        "notes": [note for note in found.notes if not note.startswith(UNKNOWN)],
    }
