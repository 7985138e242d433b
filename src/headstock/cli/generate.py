"""`headstock generate`: let a model go on with a text."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from headstock.cli.layout import print_json, results_alone
from headstock.cli.options import AsJson, Device, Flag, Whole, device_named
from headstock.errors import UserError

if TYPE_CHECKING:
    from headstock.tasks.tokenizers import Tokenizer


def generate(
    folder: Annotated[Path, Parameter(name="DIR", help="Folder of a run, or of a model saved with its tokenizer.")],
    prompt: Annotated[
        str | None, Parameter(help="Text to go on with [default: a new line, or the first word of its vocabulary].")
    ] = None,
    /,
    *,
    tokens: Annotated[Whole | None, Parameter(help="New tokens at most [default: what its context has room for].")] = (
        None
    ),
    temperature: Annotated[float, Parameter(help="0 takes the likeliest token; above, draws.")] = 0.0,
    top_k: Annotated[Whole | None, Parameter(help="Draw from the k likeliest tokens alone.")] = None,
    top_p: Annotated[float | None, Parameter(help="Draw from the likeliest tokens that hold probability p.")] = None,
    stop: Annotated[str | None, Parameter(help="End before this text.")] = None,
    slide: Annotated[
        bool, Flag, Parameter(help="Go on past the model's context, seeing the last of it alone.")
    ] = False,
    seed: Annotated[Whole, Parameter(help="Fixes what is drawn.")] = 0,
    device: Device = "auto",
    as_json: AsJson = False,
) -> int:
    """Let a model go on with a text, in the tokens it was trained with; or a compiled program, in its own."""
    import torch

    from headstock.cli.generate_program import generate_by_program, refuse_draws
    from headstock.comparison.single import open_model
    from headstock.model.mixers import told_of
    from headstock.programs.saving.vocabulary import holds_program
    from headstock.tasks.tokenizers import load

    if tokens is not None and tokens < 1:
        raise UserError(f"--tokens is {tokens}: give 1 or more.")
    if seed < 0:
        raise UserError(f"--seed is {seed}: give 0 or more.")
    if stop == "":
        raise UserError("--stop is empty: give the text that generation ends before.")
    if holds_program(folder):
        refuse_draws(slide, temperature, top_k, top_p)
        named = device_named(device)
        return generate_by_program(folder, prompt, tokens=tokens, stop=stop, device=named, as_json=as_json)
    with results_alone():
        model = open_model(folder, device_named(device))
    tokenizer = load(folder)
    text = _first_text(tokenizer) if prompt is None else prompt
    ids = tokenizer.encode(text)
    context = model.config.context
    wanted = max(1, context - len(ids) + 1) if tokens is None else tokens
    if ids and not slide and len(ids) + wanted - 1 > context:
        raise UserError(
            f"{len(ids)} tokens and {wanted} more pass the model's context of {context}: ask for at most "
            f"{max(context - len(ids) + 1, 0)}, or add --slide, which sees the last {context} tokens alone."
        )
    stop_ids = [] if stop is None else tokenizer.encode(stop)
    with results_alone(), told_of(model.config.mixer):
        new_ids = model.generate(
            torch.tensor([ids], dtype=torch.int64, device=model.embed.weight.device),
            wanted,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            stop_token=stop_ids[0] if len(stop_ids) == 1 else None,
            overflow="slide" if slide else "refuse",
            seed=seed,
        )[0, len(ids) :].tolist()
    if stop is not None and tokenizer.joined_by:  # words: a stop that is part of another word is none
        new_ids = _before(new_ids, stop_ids)
    # Cut out of the whole, which has the space before the first new word.
    new = tokenizer.decode(ids + new_ids)[len(tokenizer.decode(ids)) :]
    if stop is not None and not tokenizer.joined_by:
        new = new.partition(stop)[0]
    if as_json:
        print_json({"prompt": text, "new": new, "text": text + new, "tokens": len(new_ids)})
    else:
        print(text + new)
    return 0


def _before(ids: list[int], stop_ids: list[int]) -> list[int]:
    """Give the ids before the first place where those of the stop come, one after the other."""
    places = range(len(ids) - len(stop_ids) + 1)
    return next((ids[:place] for place in places if ids[place : place + len(stop_ids)] == stop_ids), ids)


def _first_text(tokenizer: "Tokenizer") -> str:
    return "\n" if tokenizer.name != "word" and b"\n" in tokenizer.pieces else tokenizer.decode([0])
