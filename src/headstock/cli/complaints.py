"""What the parser of the command line complains of, in this package's words: one sentence, with a near name."""

from collections.abc import Iterable
from typing import Any, Literal, get_args, get_origin

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from headstock.errors import near_name


def sentence(error: CycloptsError) -> str:
    """Give the sentence for whatever the parser could not read."""
    error.verbose = False
    command = " ".join(["headstock", *(error.command_chain or ())])
    if isinstance(error, UnknownCommandError) and error.unused_tokens and error.app is not None:
        given = error.unused_tokens[0]
        is_option = given.startswith("-")
        known = [name for name in error.app if name.startswith("-") == is_option and name != "-h"]
        return f"there is no {'option' if is_option else 'command'} {given!r}: {near_name(given, known)}"
    if isinstance(error, UnknownOptionError):
        option = (error.token.keyword or error.token.value).partition("=")[0]
        names = {name for argument in error.argument_collection if argument.parse for name in argument.names}
        known = sorted({"--help", *(name for name in names if name.startswith("--"))})
        return f"{command} has no option {option}: {near_name(option, known)}"
    if isinstance(error, CoercionError) and error.token is not None:
        given = error.token.keyword or (error.argument.name if error.argument is not None else "a value")
        return f"{given} cannot be {error.token.value!r}: {_wanted(error, error.token.value)}"
    if isinstance(error, RepeatArgumentError) and error.token.keyword is not None:
        return f"{error.token.keyword} is given twice: give it once."
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        missing = error.keyword or error.argument.name
        is_given = error.keyword is not None or missing.startswith("--")
        return (
            f"{missing} needs a value: see {command} --help."
            if is_given
            else (f"{command} needs {missing}: see {command} --help.")
        )
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"{command} has no use for {error.unused_tokens[0]!r}: see {command} --help."
    return f"{str(error).splitlines()[0].rstrip('.')}: see {command} --help."


def unwritable(error: OSError) -> str:
    """Give the sentence for a file that the system would not read or write."""
    said = error.strerror or str(error)
    place = f"{error.filename} cannot be used" if error.filename else "a file could not be used"
    return f"{place}: {said}; free some space or choose another place."


def _wanted(error: CoercionError, given: str) -> str:
    kinds = list(_kinds(error.argument.hint if error.argument is not None else error.target_type))
    choices = [str(choice) for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    if choices:
        return near_name(given, choices)
    return "give a whole number." if int in kinds else "give a number." if float in kinds else "give another value."


def _kinds(hint: Any) -> Iterable[Any]:
    if get_origin(hint) is Literal or not get_args(hint):
        yield hint
        return
    for part in get_args(hint):
        yield from _kinds(part)
