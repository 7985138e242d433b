"""`headstock inspect`: what a model does with one text, token by token and head by head."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from headstock.cli.layout import columns, filled, print_json, results_alone
from headstock.cli.options import AsJson, Device, Flag, Whole, device_named
from headstock.errors import UserError

if TYPE_CHECKING:
    from headstock.instruments.viewer import View
    from headstock.instruments.viewer.heads import HeadSummary

MOST_TOKENS = 48
"""Lines of tokens, where not all are asked for: the first and the last ones."""
MOST_HEADS = 24
OF_A_KIND = 3
ABSENT = "—"
KINDS: tuple[tuple[str, Callable[["HeadSummary"], float]], ...] = (
    ("sharpest", lambda one: -one.effective_tokens),
    ("widest", lambda one: one.effective_tokens),
    ("first token", lambda one: one.sink),
    ("token before", lambda one: one.previous),
    ("negative", lambda one: one.negative),
)


def inspect(
    folder: Annotated[Path, Parameter(name="DIR", help="Folder of a run, or of a model saved with its tokenizer.")],
    text: Annotated[str, Parameter(help="What the model reads.")],
    /,
    *,
    out: Annotated[
        Path | None,
        Parameter(name=["--out", "-o"], help="Write a page with every map, an .html file that opens offline anywhere."),
    ] = None,
    top: Annotated[
        Whole, Parameter(help="How many of the likeliest next tokens the page and the JSON tell after each token.")
    ] = 5,
    everything: Annotated[
        bool, Flag, Parameter(name="--all", help="Print every token and every head, however many there are.")
    ] = False,
    device: Device = "auto",
    as_json: AsJson = False,
) -> int:
    """Read a text with a model: what it expects after each token, and where each head looks.

    The tokens printed are all that the model reads: nothing is added to the text but the start token of a program.
    """
    if top < 1:
        raise UserError(f"--top is {top}: give 1 or more.")
    if out is not None:
        from headstock.instruments.viewer.view import refuse_ending

        refuse_ending(out)

    from headstock.comparison.single import open_model
    from headstock.instruments.viewer import inspected
    from headstock.model.mixers import told_of
    from headstock.tasks.tokenizers import load

    with results_alone():
        model = open_model(folder, device_named(device))
    tokenizer = load(folder)
    ids = tokenizer.encode(text)
    if not ids:
        raise UserError("the text is empty: give the model something to read.")
    if len(ids) > model.config.context:
        raise UserError(
            f"the text is {len(ids)} tokens long and the model's context {model.config.context}: give a shorter one."
        )
    with results_alone(), told_of(model.config.mixer):
        view = inspected(model, ids, label=tokenizer.label, top=top, maps=out is not None)
    if out is not None:
        view.save(out)
    if as_json:
        print_json(_as_values(view, ids, text, folder, out))
    else:
        print(_laid_out(view, everything, out))
    return 0


def _as_values(view: "View", ids: list[int], text: str, folder: Path, out: Path | None) -> dict[str, Any]:
    tokens = []
    for place, (token, label) in enumerate(zip(ids, view.labels, strict=True)):
        said: dict[str, Any] = {"position": place, "id": token, "token": label}
        if view.predictions:
            found = view.predictions[place]
            said["predicts"] = [{"token": next_, "probability": _known(share)} for next_, share in found.top]
            said["next"] = {"probability": _known(found.probability), "loss": found.loss, "rank": found.rank}
        tokens.append(said)
    heads = [
        {key: _known(value) if isinstance(value, float) else value for key, value in vars(one).items()}
        for one in view.heads
    ]
    return {
        "folder": str(folder),
        "variant": view.title,
        "text": text,
        "weights_are": view.weights_are,
        "tokens": tokens,
        "heads": heads,
        "notes": list(view.notes),
        "page": None if out is None else str(out),
    }


def _laid_out(view: "View", everything: bool, out: Path | None) -> str:
    blocks = [filled(f"{view.title}: {view.summary}."), _tokens(view, everything)]
    if view.heads:
        blocks.append(_heads(view, everything))
    blocks += [filled(note) for note in view.notes]
    if out is not None:
        blocks.append(f"Every map: {out}" if view.heads else f"The page: {out}")
    return "\n\n".join(blocks)


def _tokens(view: "View", everything: bool) -> str:
    length = len(view.labels)
    shown = list(range(length))
    if not everything and length > MOST_TOKENS:
        shown = [*range(MOST_TOKENS // 2), *range(length - MOST_TOKENS // 2, length)]
    if not view.predictions:
        rows = [["#", "token"], *([str(place), view.labels[place]] for place in shown)]
    else:
        rows = [["#", "token read", "predicts", "p", "comes next", "p", "rank", ""]]
        for place in shown:
            found = view.predictions[place]
            (likeliest, share), *_ = found.top
            after = [ABSENT, "", "", ""]
            if found.probability is not None:
                rank, mark = (ABSENT, "") if found.rank is None else (str(found.rank), "right" if found.right else "")
                after = [view.labels[place + 1], _share(found.probability), rank, mark]
            rows.append([str(place), view.labels[place], f"→ {likeliest}", _share(share), *after])
    table = columns(rows, indent="  ", numbers=(0, 3, 5, 6) if view.predictions else (0,)).splitlines()
    if len(shown) < length:
        hidden = f"  … tokens {shown[MOST_TOKENS // 2 - 1] + 1} to {shown[MOST_TOKENS // 2] - 1}: --all prints them"
        table.insert(1 + MOST_TOKENS // 2, hidden)
    said = "Tokens, and what is expected after each" if view.predictions else "Tokens"
    return "\n".join([said, *(line.rstrip() for line in table)])


def _heads(view: "View", everything: bool) -> str:
    signed = view.weights_are == "signed"
    why = {} if everything or len(view.heads) <= MOST_HEADS else _standing_out(view)
    rows = [["layer", "head", "effective tokens", "first token", "token before", "negative", "largest", ""]]
    for one in view.heads:
        if why and (one.layer, one.head) not in why:
            continue
        largest = ABSENT
        if one.largest_query >= 0:
            query, key = one.largest_query, one.largest_key
            largest = f"{_number(one.largest)}, {query} {view.labels[query]} → {key} {view.labels[key]}"
        figures = (one.effective_tokens, one.sink, one.previous, one.negative)
        kinds = ", ".join(why.get((one.layer, one.head), []))
        rows.append([str(one.layer), str(one.head), *map(_number, figures), largest, kinds])
    kept = [place for place in range(len(rows[0])) if signed or rows[0][place] != "negative"]
    rows = [[row[place] for place in kept] for row in rows]
    said = "Heads, weights meant over the queries after the first; largest: query → key"
    if why:
        said = (
            f"Heads that stand out, of {len(view.heads)}: --all prints every one. Weights meant over the queries after "
            f"the first; largest: query → key"
        )
    return f"{filled(said)}\n{columns(rows, indent='  ', numbers=range(len(kept) - 2))}"


def _standing_out(view: "View") -> dict[tuple[int, int], list[str]]:
    """Give the heads that are first of some kind, with the kinds; negative weights only where some are."""
    found: dict[tuple[int, int], list[str]] = {}
    for name, size in KINDS:
        if name == "negative" and view.weights_are != "signed":
            continue
        ranked = sorted((one for one in view.heads if math.isfinite(size(one))), key=size, reverse=True)
        for one in ranked[:OF_A_KIND]:
            found.setdefault((one.layer, one.head), []).append(name)
    return found


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _share(probability: float) -> str:
    if math.isnan(probability):
        return ABSENT
    return f"{probability:.3f}" if probability >= 0.0005 else "<.001"


def _number(value: float) -> str:
    if not math.isfinite(value):
        return ABSENT
    return (f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}").replace("-", "−")
