"""Options that commands share, and how what is written becomes what is meant."""

import shlex
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Annotated, Any

from cyclopts import Parameter, Token

from headstock.errors import UserError

invocation: ContextVar[list[str]] = ContextVar("invocation")
"""The words after `headstock`, as they were given."""


def command_again() -> str:
    """Give the command as it was given, without --fresh: what it computed is then gone on with and not put aside."""
    return shlex.join(["headstock", *(word for word in invocation.get() if word != "--fresh")])


def _whole(kind: Any, tokens: Sequence[Token]) -> int:
    number = int(tokens[0].value)  # by itself the parser would round 1.5
    if abs(number) >= 2**63:
        raise ValueError
    return number


Whole = Annotated[int, Parameter(converter=_whole)]
Flag = Parameter(negative="", show_default=False)

Tasks = Annotated[
    list[str] | None,
    Parameter(
        name="--task",
        negative="",
        help="NAME[,key=value...], as `headstock list tasks` names them; give it again for another task.",
    ),
]
Settings = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        negative="",
        help="key=value for all arms; give it again for another. `headstock list variants` lists every key.",
    ),
]
Steps = Annotated[Whole | None, Parameter(help="Training steps [default: the task's own for the budget].")]
Rate = Annotated[float, Parameter(help="Learning rate.")]
BatchSize = Annotated[Whole, Parameter(name="--batch", help="Rows a training step.")]
Device = Annotated[str, Parameter(help="cpu, cuda, or auto: cuda where there is a GPU, else cpu.")]
AsJson = Annotated[bool, Flag, Parameter(name="--json", help="Print JSON, and nothing else, on standard output.")]


def settings_of(written: list[str] | None) -> tuple[tuple[str, str], ...]:
    """Split every key=value. Raises UserError for one that is none."""
    pairs = []
    for setting in written or []:
        key, equals, value = (piece.strip() for piece in setting.partition("="))
        if not (key and equals and value):
            raise UserError(f"--set {setting!r} is not key=value: write, for instance, --set d_model=128.")
        pairs.append((key, value))
    return tuple(pairs)


def refuse_settings_among(variants: Sequence[str]) -> None:
    """Raise UserError for a variant that is a setting whose --set was forgotten."""
    for variant in variants:
        if "=" in variant.partition(",")[0]:
            raise UserError(f"{variant!r} is no variant: write --set before every setting, as in --set {variant}.")


def device_named(device: str) -> str:
    """Give the device that `auto` stands for, or the one named. Raises UserError where it cannot be used."""
    import torch

    from headstock.comparison.plan import refuse_device

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    refuse_device(device)
    return device
