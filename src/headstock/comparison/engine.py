"""The local engine: as many single-threaded workers as asked for, each running one cell at a time.

Knows nothing of what cells are compared for. A worker that dies takes one try of one cell with it; the cell is
tried once more, then recorded as failed, and the others go on.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, TypeAlias

from headstock.comparison.plan import Cell
from headstock.errors import UserError
from headstock.training.run import record_crash

TRIES = 2
SECONDS_TO_STOP = 60.0


Kind = Literal["known", "progress", "finished", "failed", "again"]
Heard: TypeAlias = "queue.Queue[tuple[_Worker, dict[str, Any]]]"


@dataclass(frozen=True)
class Event:
    """What happened to a cell."""

    kind: Kind
    """known: it was computed before. again: a worker died and the cell is tried once more."""
    cell: Cell
    steps_done: int = 0
    reason: str | None = None


class Folders(Protocol):
    """Where cells lie, and which of them are over."""

    @property
    def folder(self) -> Path:
        """The folder that all of them lie in; what workers print goes to a file there."""
        ...

    def cell_folder(self, cell: Cell) -> Path:
        """Give where a run lies."""
        ...

    def is_over(self, cell: Cell) -> bool:
        """Say whether nothing of it is left to compute."""
        ...


def run_cells(cells: Sequence[Cell], store: Folders, jobs: int, on_event: Callable[[Event], None]) -> None:
    """Run every cell that has not finished yet, `jobs` at a time; every cell has a result or a failure after.

    Ctrl-C saves each running cell after its step and passes on; the same call goes on from there. Raises UserError
    where no worker can be started, and where one meets what a person has to mend (a full disk, a damaged file); the
    other running cells are saved then.
    """
    waiting: deque[Cell] = deque()
    for cell in cells:
        if store.is_over(cell):
            on_event(Event("known", cell))
        else:
            waiting.append(cell)
    if waiting:
        with (store.folder / "workers.log").open("ab") as log:
            _Crew(waiting, store, on_event, log).work(min(jobs, len(waiting)))


class _Crew:
    """The workers of one call, and what is known of each cell's tries."""

    def __init__(self, waiting: deque[Cell], store: Folders, on_event: Callable[[Event], None], log: BinaryIO) -> None:
        self.waiting = waiting
        self.store = store
        self.on_event = on_event
        self.log = log
        self.heard: Heard = queue.Queue()
        self.workers: list[_Worker] = []
        self.tries: Counter[str] = Counter()

    def work(self, jobs: int) -> None:
        """Run until nothing waits and every worker has ended."""
        try:
            self.workers = [_Worker(self.heard, self.log) for _ in range(jobs)]
            while any(worker.alive for worker in self.workers):
                self._meet(*self.heard.get())
            if self.waiting:
                raise UserError(f"no process could be started to train in: see {self.log.name} for what it said.")
        except BaseException:
            for worker in self.workers:
                worker.interrupt()
            raise
        finally:
            for worker in self.workers:
                worker.close()

    def _meet(self, worker: "_Worker", event: dict[str, Any]) -> None:
        cell = worker.cell
        if event["event"] == "ended":
            worker.alive = False
            if cell is not None:
                self._failed(cell, f"its process ended with status {event['status']}")
                if self.waiting:
                    self.workers.append(_Worker(self.heard, self.log))
            return
        if event["event"] == "progress":
            assert cell is not None
            self.on_event(Event("progress", cell, steps_done=event["steps_done"]))
            return
        if event["event"] == "done":
            assert cell is not None
            kind: Kind = "finished" if event["status"] == "finished" else "failed"
            self.on_event(Event(kind, cell, cell.training.steps, event["reason"]))
        elif event["event"] == "failed":
            assert cell is not None
            self._failed(cell, event["reason"])
        elif event["event"] == "refused":
            raise UserError(event["reason"])
        worker.give(self.waiting.popleft() if self.waiting else None, self.store)

    def _failed(self, cell: Cell, reason: str) -> None:
        """Put a cell whose process failed in the row again, or record it after its last try."""
        self.tries[cell.key] += 1
        if self.tries[cell.key] < TRIES:
            self.waiting.append(cell)
            self.on_event(Event("again", cell, reason=reason))
        else:
            record_crash(self.store.cell_folder(cell), cell.description(), reason)
            self.on_event(Event("failed", cell, reason=reason))


class _Worker:
    """One process, the cell it runs, and a thread that hears what it says."""

    def __init__(self, heard: Heard, log: BinaryIO) -> None:
        self.cell: Cell | None = None
        self.alive = True
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        found_as_here = os.pathsep.join(str(Path(place).absolute()) for place in sys.path)
        self.process = subprocess.Popen(
            # -P: not the working directory before all else, whose queue.py would be taken for the library's
            [sys.executable, "-P", "-m", "headstock.comparison.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **threads, "PYTHONPATH": found_as_here, "TOKENIZERS_PARALLELISM": "false"},
            start_new_session=True,  # a Ctrl-C on the terminal reaches this process alone, which passes on one
            encoding="utf-8",
        )
        threading.Thread(target=self._hear, args=(heard,), daemon=True).start()

    def give(self, cell: Cell | None, store: Folders) -> None:
        """Hand over the next cell, or end the process where there is none."""
        self.cell = cell
        assert self.process.stdin is not None
        if cell is None:
            self.process.stdin.close()
            return
        job = {
            "folder": str(store.cell_folder(cell)),
            "model": cell.model.model_dump(),
            "training": cell.training.model_dump(),
            "task": cell.task.spec,
            "description": cell.description(),
            "device": cell.device,
            "start": asdict(cell.start) if cell.start is not None else None,
        }
        with suppress(BrokenPipeError):  # it died: the hearing thread says so
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()

    def interrupt(self) -> None:
        """Ask it to save and stop; told in words too, for one that is between two cells."""
        assert self.process.stdin is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT if self.cell is not None else signal.SIGTERM)
            with suppress(OSError, ValueError):  # it died, or its input is closed already
                self.process.stdin.write("null\n")
                self.process.stdin.flush()

    def close(self) -> None:
        """Wait until it has stopped, and see that its pipes are gone."""
        assert self.process.stdin is not None
        try:
            self.process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self.process.kill()
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def _hear(self, heard: Heard) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                heard.put((self, json.loads(line)))
        heard.put((self, {"event": "ended", "status": self.process.wait()}))
