"""Going on with a sequence by a causal program: each value it gives is the next token it reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headstock.errors import UserError
from headstock.model.transformer import Transformer
from headstock.programs.saving.record import Record
from headstock.programs.values import Value, shown


@dataclass(frozen=True)
class Continued:
    """What a program has gone on with."""

    prompt: tuple[Value, ...]
    new: tuple[Value, ...]
    ended_by: Literal["end", "no token", "length", "tokens"]
    """Its end token; a value that is no token; the most tokens it is compiled for; as many as were asked for."""
    value: Value
    """The last value that it gave, which is a token unless it was ended by "no token"."""


def continued(record: Record, model: Transformer, prompt: str | Sequence[Any], most: int | None = None) -> Continued:
    """Go on with a prompt until the program ends, or has given `most` tokens, or can read no more.

    Raises UserError for a program that cannot go on with anything, a prompt outside its domain, and one that it gives
    no token after.
    """
    readout, name = record.readout, record.program
    if not record.domain.causal:
        raise UserError(f"{name} is compiled bidirectional, and only a causal model can go on with a text: run it.")
    inputs = set(range(len(record.domain.vocabulary)))
    if not inputs & set(readout.of_id):
        raise UserError(f"the values of {name} are no tokens that it could read next: run it instead.")
    record.refuse_dtype(model)
    (tokens,) = readout.read([prompt])
    ids_1q, _ = readout.ids_of([tokens])
    room = model.config.context - ids_1q.shape[1] + 1
    count = room if most is None else min(most, room)
    if most is not None and most > room:
        raise UserError(
            f"{len(tokens)} tokens and {most} more pass the {record.domain.max_length} that {name} is made for: ask "
            f"for at most {room}."
        )
    end = next((place for place, token in enumerate(record.domain.vocabulary) if token == record.end), None)
    given = model.generate(ids_1q.to(model.embed.weight.device), count, stop_token=end)[0, ids_1q.shape[1] :].tolist()
    new: list[Value] = []
    for place in given:
        if place not in inputs:
            value = readout.of_id.get(place)
            if not new:
                raise UserError(
                    f"{name} gives {readout.names[place]} after {' '.join(map(shown, tokens))}, which is no token: it "
                    f"has nothing to go on with there."
                )
            return Continued(tuple(tokens), tuple(new), "no token", value)
        new.append(record.domain.vocabulary[place])
        if place == end:
            return Continued(tuple(tokens), tuple(new), "end", new[-1])
    return Continued(tuple(tokens), tuple(new), "length" if count == room else "tokens", new[-1])
