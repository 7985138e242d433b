"""Programs: what a transformer should compute, written by a person, and made into exact weights or refused.

from headstock import programs as p
hist = p.width(p.select(p.tokens, p.tokens, "=="))
p.interpret(hist, "abac")                                # [2, 1, 2, 1]
c = p.compile(hist, vocab="abc", max_length=20)          # a model, and the proof that it computes the same
c("abac"), c.model, c.certificate, c.explain("abac")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headstock.programs.language import (
    aggregate,
    before,
    constant,
    everything,
    indices,
    length,
    lookup,
    map,
    offset,
    select,
    tokens,
    up_to_here,
    where,
    width,
)
from headstock.programs.nodes import Expression, Selector
from headstock.programs.program import Program, interpret, program

if TYPE_CHECKING:
    from headstock.programs import back_to_code, handmade, zoo
    from headstock.programs.compiled import Compiled, compile
    from headstock.programs.handmade.builder import by_hand
    from headstock.programs.saving.saved import load
    from headstock.programs.tuning import fine_tune, moved

__all__ = [
    "Compiled",
    "Expression",
    "Program",
    "Selector",
    "aggregate",
    "back_to_code",
    "before",
    "by_hand",
    "compile",
    "constant",
    "everything",
    "fine_tune",
    "handmade",
    "indices",
    "interpret",
    "length",
    "load",
    "lookup",
    "map",
    "moved",
    "offset",
    "program",
    "select",
    "tokens",
    "up_to_here",
    "where",
    "width",
    "zoo",
]


_HOME = {
    "Compiled": "headstock.programs.compiled",
    "by_hand": "headstock.programs.handmade.builder",
    "compile": "headstock.programs.compiled",
    "fine_tune": "headstock.programs.tuning",
    "load": "headstock.programs.saving.saved",
    "moved": "headstock.programs.tuning",
}
"""What needs torch, imported when it is first used."""


def __getattr__(name: str) -> Any:
    if name in ("back_to_code", "handmade", "zoo"):
        return import_module(f"headstock.programs.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'headstock.programs' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
