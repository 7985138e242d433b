"""What runs and comparisons lie below a folder, remembered in an index so that only what changed is read again.

The folders are the truth: the index lies in the cache, may be deleted at any time, and is made again from them.
"""

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from headstock import __version__
from headstock.checkpoints.files import read_json
from headstock.errors import UserError
from headstock.tasks.files import cache_folder

FILE_NAME = "runs.sqlite3"
TELLING = (
    "plan.json",
    "comparison.json",
    "study.json",
    "looks.json",
    "run.json",
    "result.json",
    "crash.json",
    "state.pt",
)
"""The files whose change makes a folder be read again."""


@dataclass(frozen=True)
class Found:
    """A run or a comparison as it is listed."""

    folder: str
    kind: str
    """run, comparison or study."""
    title: str
    status: str
    """finished, failed, unfinished or damaged."""
    date: str
    """Of the last change, YYYY-MM-DD HH:MM."""
    figures: dict[str, dict[str, float]] = field(default_factory=dict)
    """Task → arm → held-out primary metric, its mean over the runs that finished."""
    metrics: dict[str, str] = field(default_factory=dict)
    """Task → the name of that metric."""
    detail: str = ""
    """How far it is, or why it failed."""


def found_below(folder: Path) -> list[Found]:
    """Give every comparison, study and run of its own below a folder, the newest first.

    The runs of a comparison or a study are part of it and not listed by themselves; hidden folders are left out, links
    not followed.
    Raises UserError where there is no such folder.
    """
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: name one that holds runs, or make a run first.")
    found = []
    with closing(_index()) as index:
        for place in _places(folder):
            stamp = _stamp(place)
            found.append((stamp, _remembered(index, place, stamp)))
        _forget_what_is_gone(index, folder)
        with suppress(sqlite3.Error):  # a cache that cannot be written costs time, never a result
            index.commit()
    found.sort(key=lambda one: max((changed for _, changed, _ in one[0]), default=0), reverse=True)
    return [one for _, one in found]


Stamp = list[tuple[str, int, int]]


def _places(folder: Path) -> Iterator[Path]:
    for here, inside, files in os.walk(folder):
        if "plan.json" in files or "run.json" in files:
            inside.clear()
            yield Path(here)
        inside[:] = sorted(name for name in inside if not name.startswith("."))


def _stamp(place: Path) -> Stamp:
    """Give what changes when a folder's listing would: its telling files' names, times and sizes, and its cells'."""
    files = [place / name for name in TELLING]
    if (place / "plan.json").exists() and not (place / "comparison.json").exists():
        files += sorted((place / "cells").glob("*/result.json"))
    stamp = []
    for file in files:
        with suppress(OSError):
            said = file.stat()
            stamp.append((str(file.relative_to(place)), said.st_mtime_ns, said.st_size))
    return stamp


def _index() -> sqlite3.Connection:
    """Open the index, made anew where it is damaged; where the cache cannot be used, one in memory."""
    path = cache_folder() / FILE_NAME
    for attempt in range(2):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            index = sqlite3.connect(path, timeout=2.0)
            index.execute("CREATE TABLE IF NOT EXISTS found (folder TEXT PRIMARY KEY, stamp TEXT, entry TEXT)")
            index.execute("SELECT folder, stamp, entry FROM found LIMIT 1").fetchone()
            return index
        except sqlite3.OperationalError:
            break  # locked, or read-only
        except sqlite3.DatabaseError:
            if attempt == 0:
                with suppress(OSError):
                    path.unlink()
        except OSError:
            break
    index = sqlite3.connect(":memory:")
    index.execute("CREATE TABLE found (folder TEXT PRIMARY KEY, stamp TEXT, entry TEXT)")
    return index


def _remembered(index: sqlite3.Connection, place: Path, stamp: Stamp) -> Found:
    key, written = str(place.absolute()), json.dumps([__version__, stamp])
    row = index.execute("SELECT entry FROM found WHERE folder = ? AND stamp = ?", (key, written)).fetchone()
    if row is not None:
        with suppress(ValueError, TypeError):
            return Found(**{**json.loads(row[0]), "folder": str(place)})
    read = _read(place, stamp)
    with suppress(sqlite3.Error):
        index.execute("INSERT OR REPLACE INTO found VALUES (?, ?, ?)", (key, written, json.dumps(asdict(read))))
    return read


def _forget_what_is_gone(index: sqlite3.Connection, folder: Path) -> None:
    below = str(folder.absolute()) + os.sep
    with suppress(sqlite3.Error):
        for (known,) in index.execute("SELECT folder FROM found").fetchall():
            if known.startswith(below) and not os.path.isdir(known):
                index.execute("DELETE FROM found WHERE folder = ?", (known,))


def _read(place: Path, stamp: Stamp) -> Found:
    changed = max((when for _, when, _ in stamp), default=0)
    date = time.strftime("%Y-%m-%d %H:%M", time.localtime(changed / 1e9))
    kind = "comparison" if (place / "plan.json").exists() else "run"
    try:
        plan = read_json(place / "plan.json", "a plan") if kind == "comparison" else {}
        if "study" in plan:
            kind = "study"
        made = {"comparison": _comparison, "study": _study, "run": _run}[kind](place)
    except (UserError, KeyError, TypeError, ValueError, AttributeError) as error:
        made = {"title": place.name, "status": "damaged", "detail": " ".join(str(error).split())}
    return Found(folder=str(place), kind=kind, date=date, **made)


def _comparison(place: Path) -> dict[str, Any]:
    plan = read_json(place / "plan.json", "the plan of a comparison")
    arms = [arm["label"] for arm in plan["tasks"][0]["arms"]]
    tasks = [task["task"].partition(",")[0] for task in plan["tasks"]]
    title = f"{', '.join(arms)} on {' and '.join(tasks)}"
    if not (place / "comparison.json").exists():
        done = len(list((place / "cells").glob("*/result.json")))
        return {"title": title, "status": "unfinished", "detail": f"{done} runs are over"}
    answer = read_json(place / "comparison.json", "the answer of a comparison")
    figures: dict[str, dict[str, float]] = {}
    failed, cells = 0, 0
    for task in answer["tasks"]:
        figures[task["name"]] = {}
        for arm in task["arms"]:
            ended = [cell["metrics"]["held-out"][task["metric"]] for cell in arm["cells"] if cell["metrics"]]
            failed, cells = failed + len(arm["cells"]) - len(ended), cells + len(arm["cells"])
            if ended:
                figures[task["name"]][arm["label"]] = fmean(ended)
    claims = sum(verdict["claim"] for verdict in answer["verdicts"])
    seeds = answer["seeds"]
    told = f"{claims} of {len(answer['verdicts'])} verdicts claim a difference"
    detail = f"{seeds} seed{'s' if seeds != 1 else ''}, {told}"
    return {
        "title": title,
        "status": "finished",
        "figures": figures,
        "metrics": {task["name"]: task["metric"] for task in answer["tasks"]},
        "detail": detail + (f", {failed} of {cells} runs failed" if failed else ""),
    }


def _study(place: Path) -> dict[str, Any]:
    plan = read_json(place / "plan.json", "the plan of a study")
    title = f"{plan['study']}, {plan['budget']} budget"
    if not (place / "study.json").exists():
        return {"title": title, "status": "unfinished", "detail": "nothing is judged yet"}
    answer = read_json(place / "study.json", "the answer of a study")
    statuses = [run["status"] for row in answer["rows"] for run in row["runs"]]
    verdicts = ", ".join(f"{number} {verdict}" for verdict, number in answer["verdicts"].items() if number)
    seeds = answer["seeds"]
    left = f", {statuses.count('missing')} of {len(statuses)} runs are missing" if "missing" in statuses else ""
    return {
        "title": title,
        "status": "unfinished" if left else "finished",
        "detail": f"{seeds} seed{'s' if seeds != 1 else ''}, {verdicts or 'no claims'}{left}",
    }


def _run(place: Path) -> dict[str, Any]:
    described = read_json(place / "run.json", "the description of a run")
    model, task, seed = described["model"], described["task"], described["training"]["seed"]
    position = "" if model["position"] == "learned" else f"+{model['position']}"
    arm = f"{model['mixer']}{position}"
    title = f"{arm} on {task}, seed {seed}"
    path = next((place / name for name in ("result.json", "crash.json") if (place / name).exists()), None)
    if path is None:
        return {"title": title, "status": "unfinished", "detail": f"of {described['training']['steps']} steps"}
    result = read_json(path, "the result of a run")
    if result["status"] == "failed":
        return {"title": title, "status": "failed", "detail": " ".join(str(result["reason"]).split())}
    held_out = result["metrics"]["held-out"]
    metric = next(name for name in ("bits_per_byte", "accuracy", "loss") if name in held_out)
    return {
        "title": title,
        "status": "finished",
        "figures": {task: {arm: held_out[metric]}},
        "metrics": {task: metric},
        "detail": f"{result['steps_done']} steps",
    }
