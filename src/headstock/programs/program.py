"""A program with what is said about it: a name, a domain, and the modes it is meant for."""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec

from headstock.errors import UserError
from headstock.programs.interpreter import Reading
from headstock.programs.looking_ahead import refuse_length
from headstock.programs.nodes import Expression, too_deep
from headstock.programs.places import Place, here
from headstock.programs.values import Value

BIDIRECTIONAL = "bidirectional"
CAUSAL = "causal"
NAMELESS = "program"
"""The name of one whose expression has none."""
Choices = ParamSpec("Choices")


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
    end: Value = None
    """The token that ends what a causal model generates by it; None where it goes on for ever."""

    def refuse_mode(self, causal: bool) -> None:
        """Raise UserError where the program is not meant to run so."""
        asked, other = (CAUSAL, False) if causal else (BIDIRECTIONAL, True)
        if asked not in self.modes:
            why = "it looks ahead" if causal else "it is meant to be read from left to right"
            raise UserError(f"program {self.name!r} is not {asked}: {why}; use causal={other}.")


def program(
    *,
    vocabulary: Sequence[Value] | Callable[..., Sequence[Value]] = (),
    max_length: int | Callable[..., int] = 10,
    modes: Sequence[str] | Callable[..., Sequence[str]] = (BIDIRECTIONAL, CAUSAL),
    end: Value = None,
) -> Callable[[Callable[Choices, Expression]], Callable[Choices, Program]]:
    """Make a function that gives an expression into one that gives a Program, named after it, its docstring with it.

    What depends on the function's own choices (the brackets of a Dyck language) is given as a function of the same
    choices, by keyword. The name then says the choices that were made: `shift,by=2`.
    """

    def wrapped(write: Callable[Choices, Expression]) -> Callable[Choices, Program]:
        code = inspect.unwrap(write).__code__
        place = Place(code.co_filename, code.co_firstlineno)
        signature = inspect.signature(write)

        @functools.wraps(write)
        def made(*arguments: Choices.args, **choices: Choices.kwargs) -> Program:
            output = write(*arguments, **choices)
            if not isinstance(output, Expression):
                raise UserError(f"{code.co_name} ({place}) gives no sequence: return the expression it computes.")
            chosen = signature.bind(*arguments, **choices)
            said = "".join(f",{key}={value}" for key, value in chosen.arguments.items())
            chosen.apply_defaults()

            def decided(what: Any) -> Any:
                return what(**chosen.arguments) if callable(what) else what

            return Program(
                code.co_name.replace("_", "-") + said,
                output,
                inspect.cleandoc(write.__doc__ or ""),
                tuple(decided(vocabulary)),
                decided(max_length),
                tuple(decided(modes)),
                place,
                end,
            )

        return made

    return wrapped


def as_program(what: Any) -> Program:
    """Give a Program as it is, an expression as one, and what a function without arguments gives."""
    if isinstance(what, Program):
        return what
    if isinstance(what, Expression):
        return Program(what.given_name or what.place.assigned or NAMELESS, what, place=what.place)
    if callable(what):
        return as_program(_called(what))
    raise UserError(f"{what!r} is no program ({here()}): give an expression, a Program, or a function that makes one.")


def _called(make: Callable[[], Any]) -> Any:
    """Call what makes a program. Raises UserError where it needs choices that nobody has made."""
    try:
        needed = inspect.signature(make).bind
    except (TypeError, ValueError):  # a builtin says nothing of what it needs
        return make()
    try:
        needed()
    except TypeError as error:
        raise UserError(
            f"{getattr(make, '__name__', repr(make))} makes no program by itself ({here()}): {error}; call it with its "
            f"choices and give what it makes."
        ) from None
    return make()


def interpret(program: Any, sequence: Sequence[Any], *, causal: bool | None = None) -> list[Value]:
    """Give a program's value at every position of a sequence, exactly: a string, or any list of tokens.

    program: an expression, a Program, or a function that makes one. causal: a query sees nothing after it; where not
    given, the program's usual mode. Raises UserError where it has no value, with the line that says so.
    """
    program = as_program(program)
    causal = program.modes[0] == CAUSAL if causal is None else causal
    program.refuse_mode(causal)
    if causal:
        refuse_length(program.output)
    try:
        return Reading(sequence, causal=causal)[program.output]
    except RecursionError:
        raise too_deep(program.output) from None
