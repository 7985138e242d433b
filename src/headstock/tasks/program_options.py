"""The options of the task `program`: which program, its own choices among them, and the domain that rows come from.

Knows nothing of torch, as all that reads options.
"""

import inspect
from collections.abc import Mapping, Sequence

from headstock.errors import UserError, near_name
from headstock.programs.typed import typed_vocabulary
from headstock.tasks.options import Value, parts

OWN = "own"
"""In place of an option: as the program says."""
NAME = "name"
CHOICES = ("true", "false")


def completed(options: Mapping[str, Value]) -> dict[str, Value]:
    """Give the options with the program's own choices written into its name, and its domain in place of `own`.

    `name=addition,digits=2` on the command line is the program `addition,digits=2`. What is no option of the task and
    no choice of the program is refused, with the nearest name.
    """
    from headstock.programs import zoo
    from headstock.programs.program import CAUSAL

    own = {key: value for key, value in options.items() if key in (NAME, "length", "vocab", "causal")}
    base, *_ = str(own.get(NAME, "hist")).partition(",")
    name = base.strip().replace("_", "-")
    if name not in zoo.PROGRAMS:
        zoo.get(name)  # refuses it by name
    known = inspect.signature(zoo.PROGRAMS[name]).parameters
    given = {key: value for key, value in options.items() if key not in own}
    for key in given:
        if key not in known:
            near = near_name(key, (NAME, "length", "vocab", "causal", *known))
            raise UserError(f"neither the task program has an option {key!r} nor {name} such a choice: {near}")
    line = ",".join([str(own.get(NAME, "hist")), *(_choice(key, value) for key, value in given.items())])
    program = zoo.get(line)
    found: dict[str, Value] = {
        NAME: ",".join([name, *(_choice(key, value) for key, value in _choices(line, known).items())]),
        "length": program.max_length,
        "vocab": written_vocabulary(program.vocabulary) if program.vocabulary else "abcd",
        "causal": "true" if CAUSAL in program.modes else "false",
    }
    return {**found, **{key: value for key, value in own.items() if key != NAME and value != OWN}}


def _choice(key: str, value: object) -> str:
    return f"{key}={value}".replace(",", ",,")


def _choices(line: str, known: Mapping[str, inspect.Parameter]) -> dict[str, object]:
    """Give every choice of a program, by default where the line has none, so that one program is one name."""
    written = dict(pair.split("=", 1) for pair in parts(line)[1:])
    return {key: str(written.get(key, choice.default)).strip() for key, choice in known.items()}


def vocabulary_of(name: str, written: Value) -> list[str | int]:
    """Read a vocabulary: `abcd` is four characters, `1,2,3` whole numbers, `red,green` words."""
    text = str(written)
    tokens = typed_vocabulary(text)
    if tokens is None:
        raise UserError(f"{name}={text!r} has an empty word: write words by commas, as in red,,green on one line.")
    return tokens


def written_vocabulary(tokens: Sequence[str | int]) -> str:
    """Write tokens as `vocabulary_of` reads them."""
    characters = [token for token in tokens if isinstance(token, str) and len(token) == 1]
    return "".join(characters) if len(characters) == len(tokens) else ",".join(map(str, tokens))


def vocabulary(name: str, value: Value) -> Value:
    """Read a vocabulary and write it in its one form."""
    return written_vocabulary(vocabulary_of(name, value))


def program_name(name: str, value: Value) -> Value:
    """Take the name of a program, which `completed` has read."""
    return str(value)


def yes_or_no(name: str, value: Value) -> Value:
    """Read `true` or `false`."""
    said = str(value).lower()
    if said not in CHOICES:
        raise UserError(f"{name} is {value!r}: choose true or false.")
    return said
