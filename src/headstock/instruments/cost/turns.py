"""One pass through one part at one length: counted once, then timed in turns with all the others."""

import math
import time
from collections.abc import Callable, Sequence

import torch

from headstock.instruments.cost.expected import expected_bytes
from headstock.instruments.cost.result import PARTS, PASSES, Part, Pass
from headstock.instruments.cost.room import refusal
from headstock.instruments.cost.subject import Subject, Way
from headstock.instruments.memory import held_bytes, peak_bytes
from headstock.model.kernels import kernel_of
from headstock.model.mixers import told_of
from headstock.pictures.numbers import count

FEWEST_TURNS, MOST_TURNS = 5, 40
SHORTEST_SAMPLE = 0.02
"""Seconds; what is quicker is repeated within a turn until it takes as long."""

Watch = Callable[[int, int, str], None]
"""Called with what is done, of how much, and what it was."""


class Cell:
    """One pass through one part of one subject at one length, and what was measured of it."""

    def __init__(self, subject: Subject, length: int, batch: int, part: Part, step: Pass, way: Way) -> None:
        self.subject, self.length, self.part, self.step = subject, length, part, step
        self.way = way
        self.expected: int | None = None
        if subject.mixing_is_apart or part == "feedforward":
            self.expected = expected_bytes(subject.config, length, part, step, batch=batch, plain=subject.plain)
        self.run = way.forward if step == "forward" else way.training
        self.kernel, self.peak_bytes, self.kept_bytes, self.repeats = "", 0, 0, 1
        self.seconds: list[float] = []

    def count(self) -> None:
        """Run for the kernel, for the memory, for the number of repeats; this warms up, too."""
        self.subject.block.train(self.step == "training")
        with told_of(self.subject.config.mixer):
            self.kernel = kernel_of(self.run)
            self.way.let_go()
            self.peak_bytes = peak_bytes(self.run, self.subject.device)
            if self.step == "training":
                self.kept_bytes = held_bytes(self.way.kept, self.subject.device)
            self.repeats = max(1, math.ceil(SHORTEST_SAMPLE / self.timed(1)))

    def take_turn(self) -> None:
        """Add one value to the seconds."""
        self.subject.block.train(self.step == "training")
        self.seconds.append(self.timed(self.repeats))

    def timed(self, repeats: int) -> float:
        """Give seconds a run."""
        self._wait()
        began = time.perf_counter()
        for _ in range(repeats):
            self.run()
        self._wait()
        return (time.perf_counter() - began) / repeats

    def _wait(self) -> None:
        if self.subject.device.type == "cuda":
            torch.cuda.synchronize(self.subject.device)


def counted(
    subjects: Sequence[Subject], lengths: Sequence[int], batch: int, parts: Sequence[Part], watch: Watch
) -> tuple[list[Cell], list[str]]:
    """Count memory and name kernels, shortest first, so that a length that would not fit is foreseen.

    Gives what was counted, and a sentence for each subject and length that was left out.
    """
    cells: list[Cell] = []
    left_out = []
    for done, length in enumerate(lengths):
        watch(done, len(lengths), f"memory and kernels at {count(length, 'token')}")
        at_length: list[Cell] = []
        for subject in subjects:
            most: dict[int, int] = {}
            for cell in cells:
                if cell.subject is subject:
                    most[cell.length] = max(most.get(cell.length, 0), cell.peak_bytes)
            refused = refusal(subject, length, batch, most)
            if refused:
                left_out.append(refused)
                continue
            for part, way in subject.ways(length, batch, parts).items():
                for step in PASSES:
                    at_length.append(Cell(subject, length, batch, part, step, way))
                    at_length[-1].count()
        # What is compared stands side by side in a turn.
        cells += sorted(at_length, key=lambda cell: (PARTS.index(cell.part), PASSES.index(cell.step)))
    return cells, left_out


def timed(cells: Sequence[Cell], seconds: float, watch: Watch) -> int:
    """Let every cell take its turns until the time is over; give how many."""
    began = time.perf_counter()
    turns, expected = 0, FEWEST_TURNS
    while turns < expected:
        watch(turns, expected, f"turn {turns + 1} of {expected}")
        for cell in cells:
            cell.take_turn()
        turns += 1
        a_turn = (time.perf_counter() - began) / turns
        expected = min(MOST_TURNS, max(FEWEST_TURNS, int(seconds / a_turn)))
    watch(turns, turns, f"{turns} turns taken")
    return turns
