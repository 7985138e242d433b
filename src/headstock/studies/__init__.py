"""Reference studies: declared rows beside published figures, rerun with one command.

Importing this and naming the studies cost no import of torch; reading one does.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from headstock.errors import UserError, near_name

if TYPE_CHECKING:
    from headstock.studies.base import Study

__all__ = ["study", "study_names"]

_MODULES = {
    "ladder": "chapter.ladder",
    "averages": "chapter.averages",
    "scale": "chapter.scale",
    "norm-placement": "chapter.norm_placement",
    "positions": "chapter.positions",
    "cost": "chapter.cost",
    "size": "chapter.size",
    "recurrence": "chapter.recurrence",
    "crossing": "chapter.crossing",
    "parity": "chapter.parity",
    "induction": "chapter.induction",
    "compiled-vs-trained": "compiled_vs_trained",
    "diff-lm": "differential.lm",
    "diff-ablations": "differential.ablations",
    "diff-positions": "differential.positions",
    "diff-needle": "differential.needle",
    "diff-manyshot": "differential.manyshot",
    "diff-outliers": "differential.outliers",
    "diff-long": "differential.long",
    "diff-scaling": "differential.scaling",
    "diff-cost": "differential.cost",
    "do-the-maps-differ": "differential.maps",
    "diff-gradients": "differential.gradients",
}


def study_names() -> list[str]:
    """Give the name of every study."""
    return list(_MODULES)


def study(name: str) -> "Study":
    """Give a study by its name, or one's own as `file.py:NAME` or `package.module:NAME`.

    Raises UserError for an unknown name, and for a file or module that cannot be read or holds no such study.
    """
    if ":" in name:
        from headstock.user_code import module_named

        place, _, attribute = name.rpartition(":")
        if not (place and attribute):
            raise UserError(f"{name!r} names no study: write FILE.py:NAME or PACKAGE.MODULE:NAME.")
        return _study_in(module_named(place, "a study", "STUDY"), attribute, name)
    if name.endswith(".py"):
        raise UserError(f"{name} names a file and no study in it: write {name}:STUDY.")
    if name not in study_names():
        raise UserError(f"there is no study {name!r}: {near_name(name, study_names())}")
    return _study_in(import_module(_module_of(name)), "STUDY", name)


def _module_of(name: str) -> str:
    return f"{__name__}.{_MODULES[name]}"


def _study_in(module: ModuleType, attribute: str, asked: str) -> "Study":
    from headstock.studies.base import Study

    found = getattr(module, attribute, None)
    if not isinstance(found, Study):
        known = [name for name, value in vars(module).items() if isinstance(value, Study)]
        near = near_name(attribute, known) if known else "it has no study at all."
        raise UserError(f"{asked} holds no study {attribute!r}: {near}")
    return found
