import hashlib
import io
import os
import urllib.request
from pathlib import Path
from urllib.error import URLError

import pytest

from headstock.errors import UserError
from headstock.tasks import corpora
from headstock.tasks.corpora import SHAKESPEARE_FILE, SHAKESPEARE_SHA256, SHAKESPEARE_URL, corpus_name, read, state_of


def test_python_docs_are_the_help_texts_of_this_python() -> None:
    from pydoc_data.topics import topics

    corpus = read("python-docs")
    assert len(corpus.text) == sum(map(len, topics.values()))
    assert all(topic in corpus.text for topic in topics.values())
    assert corpus.facts["topics"] == str(len(topics))
    assert corpus.sha256 == hashlib.sha256(corpus.text.encode()).hexdigest()
    if corpus.facts["Python"] == "3.11.7":
        assert len(corpus.text) == 464_970


def test_shakespeare_is_found_where_headstock_data_points(shakespeare: Path) -> None:
    corpus = read("shakespeare")
    assert len(corpus.text) == 1_115_394
    assert corpus.sha256 == SHAKESPEARE_SHA256


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Give an empty data folder and an empty cache folder, both in force."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    cache.mkdir()
    monkeypatch.setenv("HEADSTOCK_DATA", str(data))
    monkeypatch.setenv("HEADSTOCK_CACHE", str(cache))
    return data, cache


def serve(monkeypatch: pytest.MonkeyPatch, content: bytes) -> list[str]:
    asked: list[str] = []

    def answer(url: str, *, timeout: float) -> io.BytesIO:
        asked.append(url)
        assert timeout <= 30
        return io.BytesIO(content)

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    return asked


@pytest.mark.parametrize("place", [0, 1], ids=["data", "cache"])
def test_a_text_of_another_checksum_is_refused_with_both(place: int, elsewhere: tuple[Path, Path]) -> None:
    (elsewhere[place] / SHAKESPEARE_FILE).write_text("To be, or not")
    found = hashlib.sha256(b"To be, or not").hexdigest()
    with pytest.raises(UserError, match=f"its sha256 is {found}, not {SHAKESPEARE_SHA256}"):
        read("shakespeare")


def test_a_download_of_another_checksum_is_refused_and_not_kept(
    elsewhere: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = serve(monkeypatch, b"<html>log in first</html>")
    with pytest.raises(UserError, match="not the text that corpus shakespeare names"):
        read("shakespeare")
    assert asked == [SHAKESPEARE_URL]
    assert not list(elsewhere[1].iterdir())


def test_a_download_is_checked_kept_and_not_repeated(
    elsewhere: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    play = b"First Citizen:\nBefore we proceed any further, hear me speak.\n"
    monkeypatch.setattr(corpora, "SHAKESPEARE_SHA256", hashlib.sha256(play).hexdigest())
    asked = serve(monkeypatch, play)
    assert read("shakespeare").text == read("shakespeare").text == play.decode()
    assert len(asked) == 1
    assert (elsewhere[1] / SHAKESPEARE_FILE).read_bytes() == play


def test_a_download_is_used_where_the_cache_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("HEADSTOCK_CACHE", str(tmp_path / "file"))
    monkeypatch.setenv("HEADSTOCK_DATA", str(tmp_path))
    monkeypatch.setattr(corpora, "SHAKESPEARE_SHA256", hashlib.sha256(b"To be").hexdigest())
    serve(monkeypatch, b"To be")
    assert read("shakespeare").text == "To be"


@pytest.mark.parametrize("error", [URLError("no route"), TimeoutError("timed out"), ConnectionResetError("reset")])
def test_without_a_network_the_sentence_says_what_to_do(
    error: OSError, elsewhere: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(urllib.request, "urlopen", fail)
    with pytest.raises(
        UserError, match=r"set HEADSTOCK_DATA to a folder that holds tinyshakespeare\.txt, or use corpus"
    ):
        read("shakespeare")


def test_a_file_is_read_to_the_letter(tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_bytes("\ufeffété\r\n\n".encode())
    assert read(str(file)).text == "été\r\n\n"  # a byte order mark is no part of the text; line ends are


def test_a_folder_is_its_text_files_in_order_with_hidden_ones_left_out_and_others_counted(tmp_path: Path) -> None:
    for name, content in {
        "b.txt": b"second",
        "a/z.txt": b"first\n",
        "c/d/e.md": "third é".encode(),
        ".hidden": b"no",
        ".git/config": b"no",
        "picture.png": b"\x89PNG\0\0",
        "latin1.txt": b"\xe9t\xe9",
        "empty.txt": b" \n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "loop").symlink_to(tmp_path)
    corpus = read(str(tmp_path))
    assert corpus.text == "first\n\nsecond\n\nthird é\n"
    assert corpus.facts == {"files": "3", "files left out": "1 empty, 1 binary, 1 not UTF-8"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty: choose a file that holds some text"),
        (b" \n\t", "is empty"),
        (b"MZ\0\1", "is a binary file"),
        (b"caf\xe9", r"is not UTF-8 \(byte 3 does not fit\)"),
    ],
    ids=["empty", "blank", "binary", "latin-1"],
)
def test_a_file_without_a_text_is_refused_by_name(content: bytes, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_bytes(content)
    with pytest.raises(UserError, match=f"{file} {sentence}"):
        read(str(file))


def test_a_folder_without_a_text_is_refused_with_what_it_held(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\0")
    with pytest.raises(UserError, match=r"holds no text file \(left out: 1 binary\)"):
        read(str(tmp_path))


def test_a_file_that_may_not_be_read_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret.txt"
    file.write_text("text")

    def deny(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", deny)  # a mode of 0 would not stop an administrator
    for corpus in (file, tmp_path):
        with pytest.raises(UserError, match=f"{file} cannot be read: Permission denied"):
            read(str(corpus))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="is neither a file nor a folder"):
        read(str(tmp_path / "pipe"))


def test_a_file_that_vanished_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.txt cannot be read: No such file"):
        read(str(tmp_path / "gone.txt"))
    (tmp_path / "broken").symlink_to(tmp_path / "gone.txt")
    with pytest.raises(UserError, match="broken cannot be read: No such file"):
        read(corpus_name("corpus", str(tmp_path / "broken")))


def test_a_path_becomes_absolute_and_a_name_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "python-docs").write_text("a file of that name")
    assert corpus_name("corpus", "python-docs") == "python-docs"
    assert corpus_name("corpus", "./python-docs") == str(tmp_path / "python-docs")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert corpus_name("corpus", "~/python-docs") == str(tmp_path / "python-docs")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("shakespear", "there is no corpus, file or folder 'shakespear': did you mean 'shakespeare'"),
        ("./shakespear", "there is no file or folder ./shakespear: corpus takes python-docs, shakespeare, or a path"),
        ("novel.txt", r"there is no file or folder novel\.txt"),
    ],
)
def test_what_is_neither_a_name_nor_a_path_is_refused_with_the_nearest(
    name: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=sentence):
        corpus_name("corpus", name)


def test_the_state_of_a_corpus_changes_with_its_files_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one")
    of_file, of_folder = state_of(str(file)), state_of(str(tmp_path))
    assert (state_of(str(file)), state_of(str(tmp_path))) == (of_file, of_folder)
    file.write_text("three")
    assert state_of(str(file)) != of_file
    assert state_of(str(tmp_path)) != of_folder
    assert state_of("python-docs") is None
    assert corpora.names() == ["python-docs", "shakespeare"]
