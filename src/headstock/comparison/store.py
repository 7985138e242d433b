"""The folder of a comparison: its plan, its runs and how often it was looked at. Everything else is derived.

plan.json      what is compared; another plan in the same folder is refused
looks.json     the numbers of seeds at which verdicts were given: each look is paid for in the level
cells/NAME/    one run each
comparison.json, report.html    derived, written anew at every look
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headstock.checkpoints.files import is_left_behind, read_json, write_json
from headstock.comparison.plan import Cell, Plan
from headstock.comparison.saved_models import ARMS
from headstock.errors import UserError
from headstock.pictures.labels import elided
from headstock.tasks.base import hash_of
from headstock.training.run import RunResult

LOCK = ".lock"
ANOTHER_FOLDER = "choose another folder with --out, or --fresh to put what is there aside"
LONGEST_SHOWN = 60
"""Letters of a value by which two plans differ; longer ones lose their middle."""


class Store:
    """A comparison's folder, made or opened for one plan.

    Raises UserError where the folder holds another plan, more seeds than the plan has, or something else.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan_hash = hash_of(plan.identity())
        self._claim(plan.identity())
        most = max(self.looks(), default=0)
        if plan.request.seeds < most:
            raise UserError(
                f"{folder} was looked at with {most} seeds and the plan has {plan.request.seeds}: seeds cannot be "
                f"taken away after looking; ask for {most} or more, or choose another folder."
            )

    def cell_folder(self, cell: Cell) -> Path:
        """Give where a run lies."""
        return self.folder / "cells" / cell.folder_name

    def is_over(self, cell: Cell) -> bool:
        """Say whether nothing is left to compute: a run whose process crashed is not over, and is tried again."""
        return (self.cell_folder(cell) / "result.json").exists()

    def result(self, cell: Cell) -> RunResult | None:
        """Give a run's result, be it that its process crashed; None where it has none yet."""
        return RunResult.read(self.cell_folder(cell))

    def looks(self) -> list[int]:
        """Give the numbers of seeds at which verdicts were given, in order."""
        return [int(look["seeds"]) for look in self._looks()]

    def look_number(self, seeds: int) -> int:
        """Give which look a verdict with so many seeds is or would be, counted from 1; looking again is the same."""
        looks = self.looks()
        return looks.index(seeds) + 1 if seeds in looks else len(looks) + 1

    def count_look(self, seeds: int, claims: Sequence[str]) -> None:
        """Count a look, before its verdicts are shown, and keep what it claimed: a later look does not undo that."""
        if seeds not in self.looks():
            look = {"seeds": seeds, "date": time.strftime("%Y-%m-%d"), "claims": list(claims)}
            write_json(self.folder / "looks.json", [*self._looks(), look])

    def earlier_claims(self, seeds: int) -> list[str]:
        """Give what looks before the one with so many seeds claimed, a sentence each, with its look."""
        before = self._looks()[: self.look_number(seeds) - 1]
        return [f"Look {n}, {look['date']}: {said}" for n, look in enumerate(before, 1) for said in look["claims"]]

    def _looks(self) -> list[dict[str, Any]]:
        path = self.folder / "looks.json"
        found: list[dict[str, Any]] = read_json(path, "the looks at a comparison") if path.exists() else []
        if not (isinstance(found, list) and all(_is_look(look) for look in found)):
            raise UserError(
                f"{path} is damaged, so nobody knows how often the results were looked at: restore it from a copy, or "
                f"begin again with --fresh."
            )
        return found

    def _claim(self, identity: dict[str, Any]) -> None:
        path = self.folder / "plan.json"
        if not path.exists():
            write_json(path, identity)
            return
        held = read_json(path, "the plan of a comparison", ANOTHER_FOLDER)
        if not isinstance(held, dict):
            raise UserError(f"{path} is not the plan of a comparison: choose another folder with --out.")
        if held != identity:
            raise UserError(
                f"{self.folder} holds another plan ({_difference(held, identity)}): choose another folder with --out, "
                f"or --fresh to put what is there aside."
            )


def _is_look(look: object) -> bool:
    if not isinstance(look, dict) or not isinstance(look.get("claims"), list):
        return False
    return isinstance(look.get("seeds"), int) and isinstance(look.get("date"), str)


def _difference(held: Any, asked: Any, place: str = "") -> str:
    """Name the first place at which two plans differ, and both values there."""
    if isinstance(held, dict) and isinstance(asked, dict):
        for key in [*held, *(key for key in asked if key not in held)]:
            if held.get(key) != asked.get(key):
                return _difference(held.get(key), asked.get(key), key)
    if isinstance(held, list) and isinstance(asked, list) and len(held) == len(asked):
        for one, other in zip(held, asked, strict=True):
            if one != other:
                return _difference(one, other, place)
    there, here = str(held), str(asked)
    if "\n" in there + here:  # a mixer's source
        return f"another {place.replace('_', ' ')}"
    return f"{place} {elided(there, LONGEST_SHOWN)} there, {elided(here, LONGEST_SHOWN)} here"


def refuse_foreign(folder: Path) -> None:
    """Raise UserError where a path is taken by something that is no comparison, before anything is written there."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file: choose a folder with --out.")
    if not folder.exists() or (folder / "plan.json").exists():
        return
    if not all(path.name in (LOCK, ARMS) or is_left_behind(path) for path in folder.iterdir()):
        raise UserError(f"{folder} is not empty and holds no comparison: choose another folder with --out.")


def put_aside(folder: Path) -> Path | None:
    """Rename a folder out of the way, so that a fresh start loses nothing; give its new name, or None."""
    if not folder.exists():
        return None
    if Path.cwd().is_relative_to(folder.resolve()):
        raise UserError(f"{folder} is where you are, so it cannot be put aside: go elsewhere, or choose another --out.")
    number = 1
    while (aside := folder.with_name(f"{folder.name}.old{number}")).exists():
        number += 1
    folder.rename(aside)
    return aside


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a comparison's folder against another process that would write into it; let go when this one ends.

    Raises UserError where another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a+") as lock:
        if os.name == "posix":
            import fcntl

            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UserError(
                    f"another process is working in {folder}: wait for it, or choose another folder."
                ) from None
        yield
