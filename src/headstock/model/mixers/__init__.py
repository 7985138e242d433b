"""Ways of averaging, one file each, found by name or as a class of the user's own."""

import importlib
import importlib.metadata
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import get_args

from headstock.errors import UserError, near_name
from headstock.model.config import POSITIONS, ModelConfig
from headstock.model.mixers.base import CROSS, Mixer, WeightsAre
from headstock.user_code import at_line, module_named, said

_NAMED = {
    "uniform": "uniform:Uniform",
    "table": "table:Table",
    "softmax": "softmax:Softmax",
    "softmax1": "softmax1:Softmax1",
    "sink": "sink:Sink",
    "sigmoid": "sigmoid:Sigmoid",
    "entmax15": "entmax15:Entmax15",
    "topk": "topk:TopK",
    "differential": "differential:Differential",
    "differential2": "differential2:Differential2",
    "forgetting": "forgetting:Forgetting",
    "linear": "linear:Linear",
    "delta": "delta:Delta",
    "retention": "retention:Retention",
    "lstm": "lstm:LSTM",
}
GROUP = "headstock.mixers"
"""The entry-point group under which an installed package publishes mixers by name."""


def mixer_names() -> list[str]:
    """Give the names that ModelConfig.mixer knows, from the plainest average on."""
    return list(_NAMED)


@dataclass(frozen=True)
class Published:
    """A mixer that an installed package publishes."""

    name: str
    package: str
    reference: str
    """module:Class"""


def published_mixers() -> list[Published]:
    """Give what installed packages publish under the group, by name; a name of ours is ours. Imports none of it."""
    found = {
        Published(entry.name, entry.dist.name if entry.dist else "a package", entry.value.partition("[")[0].strip())
        for entry in importlib.metadata.entry_points(group=GROUP)
        if entry.name not in _NAMED
    }
    return sorted(found, key=lambda mixer: (mixer.name, mixer.package, mixer.reference))


def mixer_class(reference: str) -> type[Mixer]:
    """Give the class of a mixer: a known name, one that a package publishes, `package.module:Class` or `file.py:Class`.

    Raises UserError for an unknown name, one that two packages publish, a file or module that cannot be read, or a
    class that is no mixer.
    """
    if reference in _NAMED:
        file, name = _NAMED[reference].split(":")
        return getattr(importlib.import_module(f"{__name__}.{file}"), name)  # type: ignore[no-any-return]
    if reference.endswith(".py"):
        raise UserError(f"{reference} names a file and no class in it: write {reference}:Class.")
    if ":" not in reference:
        return _published_class(reference)
    place, _, name = reference.rpartition(":")
    if not (place and name):
        raise UserError(f"{reference} is half a name: a mixer of your own is named as file.py:Class or module:Class.")
    module = _module(place)
    found = getattr(module, name, None)
    if found is None:
        classes = [n for n, c in vars(module).items() if inspect.isclass(c) and issubclass(c, Mixer)]
        classes = [n for n in classes if getattr(module, n).__module__ == module.__name__] or classes
        near = near_name(name, classes) if classes else "it has no mixer at all."
        raise UserError(f"{place} has no class {name!r}: {near}")
    if not (inspect.isclass(found) and issubclass(found, Mixer)):
        raise UserError(f"{reference} is no mixer: derive it from headstock.model.mixers.base.ScoreMixer.")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise UserError(f"{reference} is unfinished: give it {missing}.")
    if getattr(found, "weights_are", None) not in get_args(WeightsAre):
        raise UserError(f"{reference} does not say what its weights_are: one of {', '.join(get_args(WeightsAre))}.")
    _refuse_declarations(reference, found)
    return found


def _refuse_declarations(reference: str, kind: type[Mixer]) -> None:
    known = {*POSITIONS, *ModelConfig.model_fields, CROSS} - {"position"}
    refuses: object = kind.refuses
    if not (isinstance(refuses, Mapping) and all(isinstance(reason, str) for reason in refuses.values())):
        raise UserError(f"{reference} has a refuses without reasons: write a dict, such as {{'alibi': 'why'}}.")
    for name in refuses:
        if name not in known:
            raise UserError(f"{reference} refuses {name!r}, which there is not: {near_name(str(name), known)}")
    if set(POSITIONS) <= set(refuses):
        raise UserError(f"{reference} refuses every position: leave one, such as none, out of its refuses.")


def _published_class(name: str) -> type[Mixer]:
    published = published_mixers()
    found = [mixer for mixer in published if mixer.name == name]
    if not found:
        known = {*_NAMED, *(mixer.name for mixer in published)}
        raise UserError(f"unknown mixer {name!r}: {near_name(name, known)}")
    if len(found) > 1:
        packages = " and ".join(f"{mixer.package} ({mixer.reference})" for mixer in found)
        raise UserError(f"{name} is published by {packages}: name the class that is meant, or uninstall the other.")
    (mixer,) = found
    if ":" not in mixer.reference:
        raise UserError(f"{name}, published by {mixer.package}, is {mixer.reference}: it must be module:Class.")
    try:
        return mixer_class(mixer.reference)
    except UserError as error:
        raise UserError(f"{name}, published by {mixer.package}, cannot be used: {error}") from None


@contextmanager
def told_of(reference: str) -> Iterator[None]:
    """Turn what a user's mixer raises inside, whatever it is, into a UserError that names it and the line.

    What Headstock's own mixers raise passes as it is.
    """
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        if reference in _NAMED:
            raise
        files = {inspect.getfile(kind) for kind in mixer_class(reference).__mro__ if issubclass(kind, Mixer)}
        files = {file for file in files if not Path(file).is_relative_to(Path(__file__).parent)}
        raise UserError(f"{reference} failed{at_line(error, *files)}: {said(error)}.") from error


def mixer_source(reference: str) -> str | None:
    """Give the source text that a user's mixer is read from; None for Headstock's own."""
    if reference in _NAMED:
        return None
    return Path(inspect.getfile(mixer_class(reference))).read_text(encoding="utf-8")


def _module(place: str) -> ModuleType:
    if place == "__main__":
        raise UserError(
            "a mixer defined in __main__ cannot be found again by other processes: put it in a file and name it "
            "as file.py:Class."
        )
    return module_named(place, "a mixer", "Class")
