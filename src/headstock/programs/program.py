"""A program with what is said about it: a name, a domain, and the modes it is meant for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headstock.errors import UserError
from headstock.programs.interpreter import Reading
from headstock.programs.nodes import Expression
from headstock.programs.places import Place, here
from headstock.programs.values import Value

BIDIRECTIONAL = "bidirectional"
CAUSAL = "causal"


@dataclass(frozen=True)
class Program:
    """An expression, and the domain that it is compiled for where nobody says another."""

    name: str
    output: Expression
    says: str = ""
    """What it computes, in a sentence, with examples."""
    vocabulary: tuple[Value, ...] = ()
    """Tokens that it can be given; empty where any will do, so that compiling it needs to be told."""
    max_length: int = 10
    modes: tuple[str, ...] = (BIDIRECTIONAL, CAUSAL)
    """In which of the two it means what its name says, the first being the usual one."""
    place: Place | None = None

    def refuse_mode(self, causal: bool) -> None:
        """Raise UserError where the program is not meant to run so."""
        asked, other = (CAUSAL, False) if causal else (BIDIRECTIONAL, True)
        if asked not in self.modes:
            why = "it looks ahead" if causal else "it is meant to be read from left to right"
            raise UserError(f"program {self.name!r} is not {asked}: {why}; use causal={other}.")


def program(
    *,
    vocabulary: Sequence[Value] = (),
    max_length: int = 10,
    modes: Sequence[str] = (BIDIRECTIONAL, CAUSAL),
) -> Callable[[Callable[..., Any]], Callable[..., Program]]:
    """Make a function that gives an expression into one that gives a Program, named after it, its docstring with it."""

    def wrapped(write: Callable[..., Any]) -> Callable[..., Program]:
        place = Place(write.__code__.co_filename, write.__code__.co_firstlineno)

        def made(*arguments: Any, **choices: Any) -> Program:
            output = write(*arguments, **choices)
            if not isinstance(output, Expression):
                raise UserError(f"{write.__name__} ({place}) gives no sequence: return the expression it computes.")
            return Program(
                write.__name__.replace("_", "-"),
                output,
                (write.__doc__ or "").strip(),
                tuple(vocabulary),
                max_length,
                tuple(modes),
                place,
            )

        made.__name__, made.__doc__, made.__module__ = write.__name__, write.__doc__, write.__module__
        return made

    return wrapped


def as_program(what: Any) -> Program:
    """Give a Program as it is, an expression as one, and what a function without arguments gives."""
    if isinstance(what, Program):
        return what
    if isinstance(what, Expression):
        return Program(what.given_name or what.place.assigned or "program", what, place=what.place)
    if callable(what):
        return as_program(what())
    raise UserError(f"{what!r} is no program ({here()}): give an expression, a Program, or a function that makes one.")


def interpret(program: Any, sequence: Sequence[Any], *, causal: bool | None = None) -> list[Value]:
    """Give a program's value at every position of a sequence, exactly: a string, or any list of tokens.

    program: an expression, a Program, or a function that makes one. causal: a query sees nothing after it; where not
    given, the program's usual mode. Raises UserError where it has no value, with the line that says so.
    """
    program = as_program(program)
    causal = program.modes[0] == CAUSAL if causal is None else causal
    program.refuse_mode(causal)
    return Reading(sequence, causal=causal)[program.output]
