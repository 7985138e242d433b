"""A process that runs cells, one after the other: `python -m headstock.comparison.worker`, started by the engine.

Jobs come as lines of JSON on standard input; what happens goes out as lines of JSON on standard output. It imports
nothing of the program that started it, so a notebook or a script without a __main__ guard can start it. When
standard input closes, because that program ended in whatever way, it stops at once.
"""

import json
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from headstock.errors import UserError
from headstock.model.config import ModelConfig
from headstock.tasks import parse
from headstock.training.config import TrainingConfig
from headstock.training.loop import Progress
from headstock.training.run import run
from headstock.training.start import Start

SECONDS_BETWEEN_REPORTS = 0.5


def main() -> None:
    """Run jobs until standard input closes."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a user's mixer prints goes to the log, not between the lines of the protocol

    def say(**event: Any) -> None:
        out.write(json.dumps(event) + "\n")
        out.flush()

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a program run by nohup or & hands on that it is ignored
    jobs: queue.Queue[dict[str, Any] | None] = queue.Queue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    try:
        say(event="ready")
        while (job := jobs.get()) is not None:  # None: told to stop
            try:
                _do(job, say)
            except UserError as error:  # a full disk, a damaged file: the next try would meet it too
                say(event="refused", reason=str(error))
            except Exception as error:
                say(event="failed", reason=f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        os._exit(130)
    os._exit(0)


def _listen(jobs: "queue.Queue[dict[str, Any] | None]") -> None:
    for line in sys.stdin:
        jobs.put(json.loads(line))
    os._exit(0)  # the state of a run is on disk, whole, so there is nothing to put in order


def _do(job: dict[str, Any], say: Any) -> None:
    said_at = time.monotonic()

    def on_progress(progress: Progress) -> None:
        nonlocal said_at
        if time.monotonic() - said_at > SECONDS_BETWEEN_REPORTS:
            said_at = time.monotonic()
            say(event="progress", steps_done=progress.steps_done)

    task = parse(job["task"])
    result = run(
        Path(job["folder"]),
        ModelConfig(**job["model"]),
        TrainingConfig(**job["training"]),
        task,
        job["description"],
        device=job["device"],
        tokenizer=task.tokenizer,
        may_look_ahead=not task.causal,
        start=Start(**job["start"]) if job["start"] else None,
        probes=task.probes(),
        on_progress=on_progress,
    )
    say(event="done", status=result.status, reason=result.reason)


if __name__ == "__main__":
    main()
