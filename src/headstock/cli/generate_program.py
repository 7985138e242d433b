"""`headstock generate` on a compiled program: its values, one after the other, are what it goes on with."""

import sys
from pathlib import Path

from headstock.cli.layout import print_json, results_alone
from headstock.errors import UserError


def generate_by_program(
    folder: Path, prompt: str | None, *, tokens: int | None, stop: str | None, device: str, as_json: bool
) -> int:
    """Print a prompt with what a program goes on with. Raises UserError where it has nothing to go on with."""
    from headstock.programs.continuing import continued
    from headstock.programs.saving.saved import NOT_CERTIFIED, load
    from headstock.programs.text import text_of, tokens_of

    with results_alone():
        loaded = load(folder, device=device)
    if not prompt:
        raise UserError(f"{loaded.record.program} is a program, which needs something to go on with: give a prompt.")
    readout = loaded.readout
    found = continued(loaded.record, loaded.model, tokens_of(readout, prompt), tokens)
    before = text_of(readout, found.prompt)
    new = text_of(readout, [*found.prompt, *found.new])[len(before) :]
    if stop is not None:
        new = new.partition(stop)[0]
    if as_json:
        about = {"tokens": len(found.new), "ended_by": found.ended_by, "certified": loaded.is_certified}
        print_json({"prompt": before, "new": new, "text": before + new, **about})
        return 0
    print(before + new)
    if not loaded.is_certified:
        print(f"headstock: {loaded.record.program} is {NOT_CERTIFIED}.", file=sys.stderr)
    return 0


def refuse_draws(slide: bool, temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Raise UserError for choices that a program leaves no room for."""
    if slide:
        raise UserError("--slide would take a program out of what it is compiled for: compile it for more tokens.")
    if temperature or top_k is not None or top_p is not None:
        raise UserError(
            "a program's next token is certain, so there is nothing to draw: leave out --temperature,"
            " --top-k and --top-p."
        )
