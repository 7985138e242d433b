"""What is seen while runs go on: a bar on a terminal, plain lines in a pipe; always on standard error."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from headstock.comparison.engine import Event
    from headstock.comparison.plan import Cell
    from headstock.conformance.report import Outcome
    from headstock.training.loop import Progress

MOST_BARS = 8
"""Running cells that are shown one by one; the bar of all of them stands for the others."""


class ComparisonProgress:
    """Watches a comparison; used in a `with`, and called as `run_comparison` calls its `watch`."""

    def __init__(self) -> None:
        self.known = 0
        self.shows: _Bars | _Lines = _Bars() if sys.stderr.isatty() else _Lines()

    def __call__(self, event: "Event", over: int, total: int) -> None:
        """Show what happened."""
        if event.kind == "known":
            self.known += 1
            if over < total:
                return
        if self.known:
            self.shows.say(f"{self.known} of {total} runs were there already")
            self.known = 0
        if event.kind != "known":
            self.shows.happened(event, over, total)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.shows.close()


class _Lines:
    """One line a run that is over."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def happened(self, event: "Event", over: int, total: int) -> None:
        if event.kind in ("finished", "failed", "again"):
            said = {"finished": "finished", "failed": "failed", "again": "is tried again"}[event.kind]
            because = f": {_one_line(event.reason)}" if event.reason else ""
            after = f"{time.monotonic() - self.began:.0f} s"
            self.say(f"{over}/{total} {_named(event.cell)} {said} after {after}{because}")

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing is left open."""


class _Bars:
    """One bar of all runs, with the time that is left, and one for each run that goes on now."""

    def __init__(self) -> None:
        self.bars = _new_bars()
        self.total: int | None = None
        self.all: TaskID | None = None
        self.running: dict[str, tuple[float, TaskID | None]] = {}

    def happened(self, event: "Event", over: int, total: int) -> None:
        if self.all is None or self.total != total:
            if self.all is not None:
                self.bars.remove_task(self.all)
            self.total = total
            # What was known before takes no time, so it must not count in the speed.
            start = over - (event.kind in ("finished", "failed"))
            self.all = self.bars.add_task(f"{total} runs", total=total, completed=start, done="")
            self.bars.start()
        cell = event.cell
        share, bar = self.running.get(cell.key, (0.0, None))
        if event.kind == "progress":
            steps = cell.training.steps
            if bar is None and len(self.running) < MOST_BARS:
                bar = self.bars.add_task(_named(cell), total=steps, done="")
            share = event.steps_done / steps
            self.running[cell.key] = share, bar
            if bar is not None:
                self.bars.update(bar, completed=event.steps_done, done=f"{event.steps_done}/{steps}")
        else:
            self.running.pop(cell.key, None)
            if bar is not None:
                self.bars.remove_task(bar)
            if event.reason:
                self.say(f"{_named(cell)} {event.kind}: {_one_line(event.reason)}")
        part = sum(share for share, _ in self.running.values())
        self.bars.update(self.all, completed=over + part, done=f"{over}/{total}")

    def say(self, line: str) -> None:
        self.bars.console.print(line, markup=False, highlight=False)

    def close(self) -> None:
        self.bars.stop()


class RunProgress:
    """Watches one run; used in a `with`, and called as `training.run.run` calls its `on_progress`."""

    def __init__(self, steps: int, metric: str) -> None:
        self.steps = steps
        self.metric = metric
        self.bars: Bars | None = _new_bars() if sys.stderr.isatty() else None
        self.bar: TaskID | None = None

    def __call__(self, progress: "Progress") -> None:
        """Show where the run stands."""
        if self.bars is not None:
            if self.bar is None:
                self.bar = self.bars.add_task("training", total=self.steps, completed=progress.steps_done - 1, done="")
                self.bars.start()
            done = f"{progress.steps_done}/{self.steps}{self._last(progress)}"
            self.bars.update(self.bar, completed=progress.steps_done, done=done)
        elif progress.curve and progress.curve[-1]["step"] == progress.steps_done:
            print(f"{progress.steps_done}/{self.steps}{self._last(progress)}", file=sys.stderr, flush=True)

    def _last(self, progress: "Progress") -> str:
        if not progress.curve:
            return ""
        last = progress.curve[-1]
        words = self.metric.replace("_", " ")
        return f"  train loss {last['train_loss']:.4g}  held-out {words} {last[self.metric]:.4g}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.bars is not None:
            self.bars.stop()


class CostProgress:
    """Watches `cost_by_length`; used in a `with`, and called as its `watch`."""

    def __init__(self) -> None:
        self.bars: Bars | None = _new_bars() if sys.stderr.isatty() else None
        self.bar: TaskID | None = None

    def __call__(self, done: int, total: int, said: str) -> None:
        """Show where the measurement stands."""
        if self.bars is None:
            print(said, file=sys.stderr, flush=True)
            return
        if self.bar is None:
            self.bar = self.bars.add_task("measuring", total=total, done="")
            self.bars.start()
        self.bars.update(self.bar, completed=done, total=total, done=said)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.bars is not None:
            self.bars.stop()


class CheckProgress:
    """Watches the checks of a mixer; used in a `with`, and called as `check_mixer` calls its `on_outcome`."""

    def __init__(self) -> None:
        self.bars: Bars | None = _new_bars() if sys.stderr.isatty() else None
        self.bar: TaskID | None = None
        self.position = ""

    def __call__(self, outcome: "Outcome", done: int, total: int) -> None:
        """Show where the suite stands; in a pipe, what fails, and where a position begins."""
        if self.bars is not None:
            if self.bar is None:
                self.bar = self.bars.add_task("checking", total=total, done="")
                self.bars.start()
            self.bars.update(self.bar, completed=done, done=f"{done}/{total} {outcome.position}: {outcome.check}")
            return
        if outcome.position != self.position:
            self.position = outcome.position
            print(f"{done}/{total} {outcome.position}", file=sys.stderr, flush=True)
        if outcome.status == "failed":
            said = _one_line(outcome.found)
            print(f"{done}/{total} {outcome.position}: {outcome.check} failed: {said}", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.bars is not None:
            self.bars.stop()


def _new_bars() -> "Bars":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        speed_estimate_period=120.0,
    )


def _named(cell: "Cell") -> str:
    from headstock.comparison.plan import TUNING_SEEDS

    rate = f" lr {cell.training.lr:g}" if cell.training.seed in TUNING_SEEDS else ""
    return f"{cell.label} on {cell.task.name} seed {cell.training.seed}{rate}"


def _one_line(reason: str | None) -> str:
    return " ".join((reason or "").split())
