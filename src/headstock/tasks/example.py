"""A drawn row as a person reads it, with what is asked for in brackets."""

from collections.abc import Callable

from headstock.tasks.drawn import Rows


def in_brackets(rows: Rows, labels: Callable[[list[int]], list[str]], row: int = 0) -> str:
    """Give a row's labels, each target that counts in brackets after the token whose prediction it is.

    Where the row goes on with the answer, it stands there once; where it does not, the answer is put in between.
    """
    tokens, targets = labels(rows.inputs[row].tolist()), labels(rows.targets[row].tolist())
    asked = rows.mask[row].tolist()
    words = []
    for place, token in enumerate(tokens):
        told = place > 0 and asked[place - 1] and rows.targets[row, place - 1] == rows.inputs[row, place]
        if not told:
            words.append(token)
        if asked[place]:
            words.append(f"[{targets[place]}]")
    return " ".join(words)
