"""Measuring configs side by side: memory counted once, exactly; time in turns of everything."""

import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import torch

from headstock.errors import UserError, near_name
from headstock.instruments.cost.result import PARTS, Cost, Growth, Measured, Part, Quantity, Ratio, middle_half
from headstock.instruments.cost.room import cut_to_room
from headstock.instruments.cost.subject import Subject
from headstock.instruments.cost.turns import Cell, Watch, counted, timed
from headstock.instruments.growth import exponent_with_interval
from headstock.model.config import ModelConfig
from headstock.training.run import processor_name

FITTED = 4
"""Lengths, the longest ones, that an exponent is fitted to."""
FEWEST_FITTED = 3


def cost_by_length(
    configs: Mapping[str, ModelConfig],
    lengths: Sequence[int],
    *,
    parts: Sequence[Part] = PARTS,
    batch: int = 1,
    plain: bool = False,
    seconds: float = 60.0,
    device: str | torch.device = "cpu",
    watch: Watch | None = None,
) -> Cost:
    """Measure one block of each config, by label, and its parts at each length; ratios are to the first.

    Weights are drawn, float32. With `plain` every mixer stores its weights. Memory is counted once, exactly; time is
    taken in turns of everything, at least five, until `seconds` are over. Threads are as torch has them. What would
    not fit into free memory is left out; so is a part that a block does not have.

    Raises UserError for lengths, parts or sizes that mean nothing, and where nothing fits into memory.
    """
    lengths = tuple(sorted(set(lengths)))
    _refuse(configs, lengths, parts, batch, seconds)
    watch = watch or (lambda done, total, said: None)
    held = torch.device(device)
    subjects = [
        Subject(label, cut_to_room(label, config, lengths, held), plain, held) for label, config in configs.items()
    ]
    cells, left_out = counted(subjects, lengths, batch, [part for part in PARTS if part in parts], watch)
    if not cells:
        raise UserError(f"nothing was measured: {left_out[0]}")
    turns = timed(cells, seconds, watch)
    measured = tuple(_measured(cell, cells, subjects[0]) for cell in cells)
    return Cost(
        variants=tuple(subject.described() for subject in subjects),
        lengths=lengths,
        batch=batch,
        plain=plain,
        turns=turns,
        measured=measured,
        growth=tuple(_growths(measured)),
        weights_bytes={subject.label: {n: subject.weights_bytes(n, batch) for n in lengths} for subject in subjects},
        left_out=tuple(left_out),
        environment=_environment(held),
    )


def _refuse(
    configs: Mapping[str, ModelConfig], lengths: Sequence[int], parts: Sequence[str], batch: int, seconds: float
) -> None:
    if not configs:
        raise UserError("nothing is measured: name a variant or more, such as softmax and differential.")
    if not lengths or lengths[0] < 1:
        raise UserError(f"the lengths are {', '.join(map(str, lengths)) or 'none'}: give numbers of tokens from 1 on.")
    if not parts:
        raise UserError(f"no part is measured: name one or more of {', '.join(PARTS)}.")
    for part in parts:
        if part not in PARTS:
            raise UserError(f"unknown part {part!r} of a block: {near_name(part, PARTS)}")
    if batch < 1:
        raise UserError(f"the batch is {batch}: give 1 or more.")
    if not (seconds > 0 and math.isfinite(seconds)):
        raise UserError(f"seconds is {seconds:g}: give how long to measure, such as 60.")
    for label, config in configs.items():
        if config.context < lengths[-1]:
            raise UserError(f"{label} has a context of {config.context} tokens: measure no more, or give it a longer.")


def _measured(cell: Cell, cells: Sequence[Cell], first: Subject) -> Measured:
    where = (cell.length, cell.part, cell.step)
    beside = next((one for one in cells if one.subject is first and (one.length, one.part, one.step) == where), None)
    ratio = None
    if beside is not None:
        by_turn = [own / other for own, other in zip(cell.seconds, beside.seconds, strict=True)]
        ratio = Ratio(median(by_turn), *middle_half(by_turn))
    return Measured(
        cell.subject.label,
        *where,
        tuple(cell.seconds),
        ratio,
        cell.peak_bytes,
        cell.kept_bytes,
        cell.expected,
        cell.kernel,
    )


def _growths(measured: Sequence[Measured]) -> Iterator[Growth]:
    """Fit one exponent to each variant, part, pass and quantity of which enough lengths were measured."""
    for label, part, step in dict.fromkeys((one.label, one.part, one.step) for one in measured):
        longest = [one for one in measured if (one.label, one.part, one.step) == (label, part, step)][-FITTED:]
        if len(longest) < FEWEST_FITTED:
            continue
        lengths = tuple(one.length for one in longest)
        quantities: dict[Quantity, list[float]] = {
            "seconds": [one.median_seconds for one in longest],
            "bytes": [one.peak_bytes for one in longest],
        }
        for quantity, cost in quantities.items():
            if min(cost) > 0:
                yield Growth(label, part, step, quantity, *exponent_with_interval(lengths, cost), lengths)


def _environment(device: torch.device) -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "processor": processor_name(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "dtype": "float32",
        "threads": str(torch.get_num_threads()),
    }
