"""Files that outlive a process: the cache folder, and remembering in it what took long to make.

Knows nothing of what the bytes mean.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from headstock.checkpoints.files import write_atomically
from headstock.errors import UserError


def cache_folder() -> Path:
    """Give the folder for what can be made or fetched again: $HEADSTOCK_CACHE, else headstock in the user's cache."""
    if chosen := os.environ.get("HEADSTOCK_CACHE"):
        return Path(chosen)
    user_cache = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rule: a relative path there is to be ignored.
    return (Path(user_cache) if os.path.isabs(user_cache) else Path(os.path.expanduser("~/.cache"))) / "headstock"


def remembered(name: str, make: Callable[[], bytes]) -> bytes:
    """Give what `make` gives, made once for all processes of this user: kept in the cache under `name`.

    An entry carries its own sha256, and one that does not fit it is made again. A cache that cannot be written costs
    time, never a result.
    """
    path = cache_folder() / name
    with contextlib.suppress(OSError):
        digest, _, content = path.read_bytes().partition(b"\n")
        if digest == hashlib.sha256(content).hexdigest().encode():
            return content
    content = make()
    keep(path, hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    return content


def keep(path: Path, content: bytes) -> None:
    """Write a file of the cache, whole or not at all; a cache that cannot be written is passed over."""
    with contextlib.suppress(UserError):
        write_atomically(path, lambda beside: beside.write_bytes(content))
