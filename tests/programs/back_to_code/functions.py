"""Functions that stand for models: tables of answers and machines, as logits of every row."""

from collections.abc import Callable, Sequence
from itertools import product

import torch
from hypothesis import strategies as st
from torch import Tensor

from headstock.model.transformer import Transformer, build
from headstock.programs.back_to_code import Function

Ids = tuple[int, ...]


def foretelling(next_token: Callable[[Ids], int], *, vocab_size: int, context: int) -> Function:
    """Give the function that holds next_token(beginning) likeliest on every row, by 1."""

    def logits(ids_bq: Tensor) -> Tensor:
        said = [[next_token(tuple(row[: at + 1])) for at in range(len(row))] for row in ids_bq.tolist()]
        return torch.nn.functional.one_hot(torch.tensor(said), vocab_size).float()

    return Function(logits, vocab_size, context)


def running(answers: Sequence[int], steps: Sequence[Sequence[int]], *, context: int) -> Function:
    """Give the function that a machine is, started in its first state, on sequences that fit the context."""

    def next_token(ids: Ids) -> int:
        state = 0
        for ident in ids:
            state = steps[state][ident]
        return answers[state]

    return foretelling(next_token, vocab_size=max(len(steps[0]), max(answers) + 1), context=context)


def sequences(base: int, longest: int, shortest: int = 1) -> list[Ids]:
    """Give all sequences of up to `longest` ids."""
    return [ids for length in range(shortest, longest + 1) for ids in product(range(base), repeat=length)]


@st.composite
def tables(draw: st.DrawFn, base: int = 2, longest: int = 3, answers: int = 2) -> dict[Ids, int]:
    """Draw an answer for every sequence; half of the time one that a short ending decides, so that things merge."""
    every = sequences(base, longest)
    seen = draw(st.sampled_from([1, 2, longest]))
    by_ending = {ids[-seen:]: draw(st.integers(0, answers - 1)) for ids in every}
    return {ids: by_ending[ids[-seen:]] for ids in every}


def of_table(table: dict[Ids, int], base: int, longest: int) -> Function:
    """Give the function of a table of answers."""
    return foretelling(
        lambda ids: table[ids], vocab_size=max(base, *(said + 1 for said in table.values())), context=longest
    )


def lively(variant: str, **overrides: int | bool) -> Transformer:
    """Give a random model whose answers differ from sequence to sequence."""
    choices = {"vocab_size": 3, "context": 4, "d_model": 8, "n_layers": 1, "n_heads": 2} | overrides
    model = build(variant, seed=0, **choices).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(2.0)
    return model
