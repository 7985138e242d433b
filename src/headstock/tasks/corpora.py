"""Where text comes from: two named corpora, and any file or folder of text files.

A corpus is its text; where the text lay is told to the person and decides nothing. Knows nothing of tokens and torch.
"""

import hashlib
import os
import platform
import stat
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path

from headstock.errors import UserError, near_name
from headstock.tasks.files import cache_folder, keep

SHAKESPEARE_FILE = "tinyshakespeare.txt"
SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
SHAKESPEARE_URL = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
_PATIENCE_SECONDS = 10
_MOST_BYTES = 8_000_000  # of a download whose true size is 1,115,394: what is longer is not it


@dataclass(frozen=True)
class Corpus:
    """A text and what a person should know of it."""

    text: str
    source: str
    """One sentence: what the text is and where it came from."""
    facts: dict[str, str]
    """Versions, counts of files read and left out; what the text itself tells (sizes, hash) is not repeated here."""

    @property
    def sha256(self) -> str:
        """The sha256 of the text in UTF-8."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def names() -> list[str]:
    """Give the names of the corpora that need no path."""
    return list(_NAMED)


def corpus_name(option: str, value: str | int | float) -> str:
    """Read a corpus as a person gives it: a named one stays, a path becomes absolute; raises UserError.

    A named corpus goes before a file of that name, which `./name` reaches.
    """
    given = str(value)
    if given in _NAMED:
        return given
    path = Path(given).expanduser()
    if not os.path.lexists(path):
        if path.name == given and not path.suffix:
            raise UserError(f"there is no corpus, file or folder {given!r}: {near_name(given, _NAMED)}")
        raise UserError(
            f"there is no file or folder {given}: {option} takes {', '.join(_NAMED)}, or a path that exists."
        )
    return os.path.abspath(path)


def read(name: str) -> Corpus:
    """Read a named corpus, or the file or folder at an absolute path, as `corpus_name` gives it.

    Raises UserError where there is no text: missing, unreadable, empty, binary, not UTF-8, of a wrong checksum, or
    not to be had without a network.
    """
    if name in _NAMED:
        return _NAMED[name]()
    path = Path(name)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _folder(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    if not stat.S_ISREG(mode):  # reading a pipe or a device may never end
        raise UserError(f"{path} is neither a file nor a folder: give the path of a text file or a folder of them.")
    text = _text_of(path)
    if not text.strip():
        raise UserError(f"{path} is empty: choose a file that holds some text.")
    return Corpus(text, f"The file {path}.", {"files": "1"})


def state_of(name: str | int | float) -> Hashable:
    """Give what changes when the files under a corpus are written to: their paths, sizes and times."""
    if name in _NAMED:
        return None
    path = Path(str(name))
    try:
        files = [path, *_files_in(path)] if path.is_dir() else [path]
        return tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    except OSError:
        return None  # reading will say what is wrong


def _python_docs() -> Corpus:
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise UserError(
            "this Python was installed without pydoc_data, which python-docs is read from: choose another corpus."
        ) from None
    # Each topic ends with a newline of its own, so nothing is put between two of them.
    return Corpus(
        "".join(topics[topic] for topic in sorted(topics)),
        "Python's own help texts (pydoc_data.topics in the standard library), joined in the order of their names; "
        "another Python version has another text.",
        {"Python": platform.python_version(), "topics": f"{len(topics)}"},
    )


def shakespeare_places() -> list[Path]:
    """Give where Tiny Shakespeare is looked for before it is fetched, in order; the last is where it is kept."""
    places = [cache_folder() / SHAKESPEARE_FILE]
    if chosen := os.environ.get("HEADSTOCK_DATA"):
        places.insert(0, Path(chosen).expanduser() / SHAKESPEARE_FILE)
    return places


def _shakespeare() -> Corpus:
    places = shakespeare_places()
    for place in places:
        if place.is_file():
            content = _bytes_of(place)
            _check(content, str(place))
            break
    else:
        content = _download()
        _check(content, SHAKESPEARE_URL)
        keep(places[-1], content)
    return Corpus(
        content.decode(),
        "Tiny Shakespeare: 40,000 lines of the plays, public domain, as published with char-rnn.",
        {"files": "1"},
    )


_NAMED: dict[str, Callable[[], Corpus]] = {"python-docs": _python_docs, "shakespeare": _shakespeare}


def _download() -> bytes:
    from http.client import HTTPException  # these take a while to import and are seldom needed
    from urllib.request import urlopen

    try:
        with urlopen(SHAKESPEARE_URL, timeout=_PATIENCE_SECONDS) as answer:
            content: bytes = answer.read(_MOST_BYTES)
            return content
    except (OSError, HTTPException) as error:
        raise UserError(
            f"corpus shakespeare is not on this machine and could not be fetched ({error}): set HEADSTOCK_DATA to a "
            f"folder that holds {SHAKESPEARE_FILE}, or use corpus=python-docs."
        ) from None


def _check(content: bytes, place: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != SHAKESPEARE_SHA256:
        raise UserError(
            f"{place} is not the text that corpus shakespeare names: its sha256 is {found}, not {SHAKESPEARE_SHA256}; "
            "remove or replace it."
        )


def _folder(folder: Path) -> Corpus:
    texts: list[str] = []
    left_out = {"empty": 0, "binary": 0, "not UTF-8": 0}
    for file in _files_in(folder):
        content = _bytes_of(file)
        if _is_binary(content):
            left_out["binary"] += 1
            continue
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            left_out["not UTF-8"] += 1
            continue
        if text.strip():
            texts.append(text)
        else:
            left_out["empty"] += 1
    said = ", ".join(f"{count} {reason}" for reason, count in left_out.items() if count) or "none"
    if not texts:
        raise UserError(f"{folder} holds no text file (left out: {said}): choose a folder that holds some text.")
    return Corpus(
        # One blank line between two files: most end with a newline already.
        "\n".join(text if text.endswith("\n") else text + "\n" for text in texts),
        f"The text files in {folder} and its subfolders, in the order of their paths, hidden ones left out.",
        {"files": f"{len(texts)}", "files left out": said},
    )


def _files_in(folder: Path) -> Iterator[Path]:
    """Give the files to be read, in an order that every file system and locale gives; raises OSError."""

    def stop(error: OSError) -> None:
        raise error  # os.walk would pass over a subfolder that it may not enter

    found: list[Path] = []
    for here, subfolders, files in os.walk(folder, onerror=stop):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        found += [Path(here, name) for name in files if not name.startswith(".")]
    yield from sorted((file for file in found if file.is_file()), key=lambda file: file.relative_to(folder).parts)


def _text_of(file: Path) -> str:
    content = _bytes_of(file)
    if _is_binary(content):
        raise UserError(f"{file} is a binary file (it holds a zero byte): choose a text file in UTF-8.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 (byte {error.start} does not fit): convert it to UTF-8 first.") from None


def _is_binary(content: bytes) -> bool:
    return b"\0" in content


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise _unreadable(file, error) from None


def _unreadable(path: Path, error: OSError) -> UserError:
    return UserError(f"{error.filename or path} cannot be read: {error.strerror or error}.")
