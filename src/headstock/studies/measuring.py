"""Measuring one row with one seed: what is kept is read, what is missing is measured and kept.

A measurement is repeated where the code that measures has changed since, so that no figure of other code stands in its
place; a new claim or remark costs nothing. Where a training would have to be repeated for it, because its weights are
gone, what was measured is kept and a note says so, unless a figure that somebody reads is missing.
"""

import hashlib
import inspect
import platform
import re
import traceback
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from headstock import __version__
from headstock.checkpoints.native import load
from headstock.errors import UserError
from headstock.model.accounting import parameters
from headstock.model.transformer import Transformer
from headstock.studies.base import Budget, Measured, Opened, Row, Study
from headstock.studies.cells import StudyCell
from headstock.studies.runs import TRAINED
from headstock.studies.store import WEIGHTS, Kept, StudyStore, kept_in
from headstock.tasks import parse
from headstock.training.loop import threads_set_to
from headstock.training.run import RunResult, processor_name

SAME = 1e-5
"""The largest share by which two losses differ that rounding alone took apart."""


class MeasuringFailed(Exception):
    """What a study's own code raised; the message says so in a few words."""


def is_measured(store: StudyStore, study: Study, row: Row, seed: int, cell: StudyCell | None) -> bool:
    """Say whether nothing is left to measure of a row with a seed."""
    if row.measure is None:
        return True
    kept = kept_in(store.figures_file(row, seed, cell))
    if kept is None:
        return False
    if cell is None and kept.task not in (None, row.task):
        return False
    if not is_of_other_code(row, kept):
        return True
    if cell is None or store.weights(cell) is not None:
        return False
    return not _read_of(study, row) - set(kept.figures) - TRAINED


def is_of_other_code(row: Row, kept: Kept) -> bool:
    """Say whether what is kept of a row was measured by other code than its own now."""
    by = code_of(row)
    return bool(by) and by != kept.by


def measured(
    store: StudyStore, study: Study, row: Row, seed: int, cell: StudyCell | None, budget: Budget
) -> Kept | None:
    """Give what a row measures with a seed, measured now if need be; None for a row that measures nothing.

    Raises MeasuringFailed where the study's code fails, and UserError where weights that it needs are not there.
    """
    if row.measure is None:
        return None
    file = store.figures_file(row, seed, cell)
    if is_measured(store, study, row, seed, cell):
        return kept_in(file)
    model = task = None
    note = ""
    if cell is not None:
        place = store.weights(cell)
        if place is None:
            raise UserError(f"{store.cell_folder(cell)} has no weights any more, so nothing can be measured of them.")
        model, task, note = _opened(place, cell.device), cell.task, _note(place, cell, store)
    elif row.task:
        task = parse(row.task)
    device = cell.device if cell is not None else "cpu"
    with threads_set_to(torch.get_num_threads() if row.threads is None else row.threads):
        try:
            found = row.measure(Opened(row.name, seed, budget, model, task))
            if not isinstance(found, Measured):
                raise TypeError(f"measure gave {type(found).__name__} and not Measured")
            return store.keep(file, found, code_of(row), environment(row, device), note, "" if cell else row.task)
        except UserError as error:
            raise MeasuringFailed(f"measuring it failed: {error}") from error
        except (Exception, SystemExit) as error:
            with (store.folder / "workers.log").open("a", encoding="utf-8") as log:
                traceback.print_exc(file=log)
            raise MeasuringFailed(f"measuring it failed: {type(error).__name__}: {error}".rstrip(": ")) from error


def trained_figures(cell: StudyCell, result: RunResult) -> dict[str, float]:
    """Give the figures that a finished training has by itself."""
    named = {"": "held-out", "train_": "train"}
    found = {
        f"{before}{name}": value for before, split in named.items() for name, value in result.metrics[split].items()
    }
    return {**found, "parameters": float(parameters(cell.model).total)}


def code_of(row: Row) -> str:
    """Give a hash of the code that measures a row; empty where it cannot be read."""
    measure: Any = row.measure
    said = ""
    while isinstance(measure, partial):
        said += re.sub(r"0x[0-9a-f]+", "", repr((measure.args, sorted(measure.keywords.items()))))
        measure = measure.func
    try:
        return hashlib.sha256((said + inspect.getsource(measure)).encode()).hexdigest()[:16]
    except (OSError, TypeError):
        return ""


def environment(row: Row, device: str) -> Mapping[str, Any]:
    """Say where something is measured."""
    return {
        "headstock": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "processor": processor_name(),
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else device,
        "threads": torch.get_num_threads() if row.threads is None else row.threads,
    }


def _opened(place: Path, device: str) -> Transformer:
    try:
        return load(place, device=device)
    except UserError as error:
        said = str(error).rstrip(".")
        raise UserError(f"{said}, or delete {place / WEIGHTS} to have it trained again.") from None


def _read_of(study: Study, row: Row) -> set[str]:
    """Give which figures of a row claims and the published ones beside it are about."""
    read = {name for claim in study.claims for of, name in claim.ours.reads() if of == row.name}
    return read | set(row.published)


def _note(place: Path, cell: StudyCell, store: StudyStore) -> str:
    """Say that a model is one of a second training, and whether that ended as the first did; empty where it is not."""
    first = store.cell_folder(cell)
    if place == first:
        return ""
    ends = [result.metrics["held-out"]["loss"] for result in map(RunResult.read, (first, place)) if result is not None]
    same = len(ends) == 2 and abs(ends[0] - ends[1]) <= SAME * max(map(abs, ends))
    ended = "ended with the same loss" if same else "did not end with the same loss, so what was measured differs too"
    named = f"{cell.label} seed {cell.training.seed}"
    return f"{named} was trained a second time, for its weights were gone: it {ended}."
