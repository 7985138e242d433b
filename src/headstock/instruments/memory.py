"""How many bytes tensors hold while something runs: counted from every allocation, never sampled."""

import gc
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile


def peak_bytes(run: Callable[[], object], device: str | torch.device = "cpu") -> int:
    """Give the most bytes that tensors on the device held at any moment of `run()`, beyond what was held before.

    What `run` gives back counts until it returns; what was held before and is let go inside is not taken off. On the
    CPU every byte is one that was asked for, buffers inside kernels included, and the count is the same every time; a
    reference cycle counts as held. On CUDA the allocator's own count is given, which rounds every tensor up to 512
    bytes. Not seen: what a library takes without torch's allocator, or a kernel's worker thread for itself.
    """
    with _no_collection():
        if torch.device(device).type == "cuda":
            torch.cuda.synchronize(device)
            before = torch.cuda.memory_allocated(device)
            torch.cuda.reset_peak_memory_stats(device)
            run()
            torch.cuda.synchronize(device)
            return torch.cuda.max_memory_allocated(device) - before
        return _peak(_allocations_of(run))


def held_bytes(run: Callable[[], object], device: str | torch.device = "cpu") -> int:
    """Give the bytes that tensors on the device still hold when `run()` is over, while what it gave back lives.

    That is what it gave back and all that hangs on it: of an output with a gradient to come, what is kept for the
    backward pass. Counted as by `peak_bytes`.
    """
    with _no_collection():
        if torch.device(device).type == "cuda":
            torch.cuda.synchronize(device)
            before = torch.cuda.memory_allocated(device)
            given = run()
            torch.cuda.synchronize(device)
            held = torch.cuda.memory_allocated(device) - before
            del given
            return held
        return _still_held(_allocations_of(run))


def free_bytes(device: str | torch.device = "cpu") -> int | None:
    """Give how many bytes can still be taken on the device; None where the system does not tell."""
    if torch.device(device).type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    known = [_available(Path("/proc/meminfo")), _left_to_container(Path("/sys/fs/cgroup"))]
    return min((count for count in known if count is not None), default=None)


def _available(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)


def _left_to_container(folder: Path) -> int | None:
    """Give what a container's limit leaves; what the system keeps of files is given back when it is needed."""
    try:
        limit = (folder / "memory.max").read_text(encoding="utf-8").strip()
        used = int((folder / "memory.current").read_text(encoding="utf-8"))
        kept = dict(line.split() for line in (folder / "memory.stat").read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError):
        return None
    return None if limit == "max" else int(limit) - used + int(kept.get("file", 0))


def _allocations_of(run: Callable[[], object]) -> list[tuple[int, int, int]]:
    """Give every allocation on the CPU while `run()` runs, and while what it gives back lives."""
    with _quiet(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        given = run()
    del given
    assert profiled.profiler is not None
    assert profiled.profiler.kineto_results is not None
    return _allocations(profiled.profiler.kineto_results.experimental_event_tree())


def _allocations(events: Iterable[Any]) -> list[tuple[int, int, int]]:
    """Give every allocation (time, address, bytes), freeing as negative bytes, in the order of time."""
    found = []
    waiting = list(events)
    while waiting:
        event = waiting.pop()
        waiting.extend(event.children)
        if event.tag == _EventType.Allocation and event.extra_fields.device.type == "cpu":
            found.append((event.start_time_ns, event.extra_fields.ptr, event.extra_fields.alloc_size))
    return sorted(found, key=lambda allocation: allocation[0])


def _peak(allocations: Iterable[tuple[int, int, int]]) -> int:
    return max(_held(allocations), default=0)


def _still_held(allocations: Iterable[tuple[int, int, int]]) -> int:
    *_, last = [0, *_held(allocations)]
    return last


def _held(allocations: Iterable[tuple[int, int, int]]) -> Iterator[int]:
    """Add up, after each allocation; what is freed without having been allocated here was held before."""
    held: dict[int, int] = {}
    now = 0
    for _, address, size in allocations:
        now -= held.pop(address, 0)
        if size > 0:
            held[address] = size
            now += size
        yield now


@contextmanager
def _no_collection() -> Iterator[None]:
    """Let cycles be: when they are collected depends on what ran before."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the profiler, which reads this variable when it is first used, from writing that it begins and ends."""
    key, silent = "KINETO_LOG_LEVEL", "6"
    given = os.environ.get(key)
    os.environ.setdefault(key, silent)
    try:
        yield
    finally:
        if given is None:
            os.environ.pop(key, None)
